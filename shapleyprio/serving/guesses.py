"""Slows down who guesses at the password."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

FREE_GUESSES = 5
"""Wrong passwords of a client that are answered at once."""

SECONDS_A_GUESS = 10.0
"""Seconds after which one more is."""

MOST_CLIENTS = 10_000


class Guesses:
    """Counts wrong passwords for each client.

    A client that has none left is not answered whether a password is right, or it would learn as
    much as before.

    Args:
        clock: seconds of a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._all_back: dict[str, float] = {}  # client -> when it has all its guesses again
        self._lock = Lock()

    def take(self, client: str) -> bool:
        """Returns whether a client has a guess left, and takes it.

        >>> guesses = Guesses(clock=lambda: 7.0)
        >>> [guesses.take("10.0.0.1") for _ in range(6)]
        [True, True, True, True, True, False]
        """
        now = self._clock()
        with self._lock:
            all_back = max(self._all_back.get(client, now), now) + SECONDS_A_GUESS
            if all_back - now > FREE_GUESSES * SECONDS_A_GUESS:
                return False
            self._all_back.pop(client, None)  # the last one to guess stands last
            self._all_back[client] = all_back
            if len(self._all_back) > MOST_CLIENTS:
                del self._all_back[next(iter(self._all_back))]
        return True

    def give_back(self, client: str) -> None:
        """Gives a guess back: the password was right."""
        with self._lock:
            if client in self._all_back:
                self._all_back[client] -= SECONDS_A_GUESS
