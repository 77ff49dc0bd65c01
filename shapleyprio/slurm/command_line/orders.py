"""Orders that Slurm's commands read from their standard input."""

from __future__ import annotations

import math
import os
import selectors
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import IO

ORDERS_AT_ONCE_BYTES = 1 << 10
"""What is given to a command after one check."""

OUT_OF_TIME = "Slurm took too long over those before it"
TOO_SLOW = "Slurm took too long over it"


class Orders:
    """Orders for the standard input of commands, one command after the other.

    Args:
        program: name of the commands, as in their prompts.
        orders: each one line, and no two alike.
        check: called before any are written.

    Attributes:
        until: after that second of the monotonic clock none is taken.
        are_done: whether there was none left to be taken.
        are_unread: whether a command ended before it had read them.
    """

    def __init__(self, program: str, orders: Iterable[str], check: Callable[[], float]) -> None:
        self._prompt = f"\n{program}: ".encode()
        self._orders = iter(orders)
        self._check = check
        self._again = deque[str]()
        self._cut_at: str | None = None
        self._too_slow: list[str] = []
        self.until = math.inf
        self.are_done = self.are_unread = False
        self.begin()

    @property
    def undone(self) -> dict[str, str]:
        """Order that was taken and perhaps not done -> why."""
        return dict.fromkeys(self._too_slow, TOO_SLOW) | dict.fromkeys(self._again, OUT_OF_TIME)

    def hear(self, printed: bytes) -> None:
        """Notes what a command printed: it prompts before the first order and after each one."""
        self._printed += printed
        self._heard = time.monotonic()

    def begin(self) -> None:
        """Goes on with another command, after one that ended by itself."""
        self._most: float = math.inf
        self._left = b""
        self._given: list[str] = []
        self._printed = bytearray(b"\n")
        self._heard = time.monotonic()

    def repeat(self, patience: float) -> None:
        """Goes on with another command after one that was killed, and repeats its orders.

        A command that is killed does not say what it has done; to do it twice changes nothing. It
        was given too much for its time, so the next one is given half of it at most. An order over
        which two commands were killed is not repeated: slurmctld may keep an order waiting for
        seconds, say for a job that slurmdbd does not know yet, and would do so again.

        Args:
            patience: seconds from which on it was this order that took too long.
        """
        at = self._in_work() if time.monotonic() - self._heard >= patience else None
        if at is not None and at == self._cut_at:
            self._too_slow.append(at)
            self._given.remove(at)
        self._cut_at = at
        self._again.extendleft(reversed(self._given))
        self.are_done = self.are_unread = False
        half = max(len(self._given) // 2, 1)
        self.begin()
        self._most = half

    def _in_work(self) -> str | None:
        """Returns the order that the command works at; None if that is not known."""
        prompts = self._printed.count(self._prompt)
        return self._given[prompts - 1] if 0 < prompts <= len(self._given) else None

    def write(self, stream: IO[bytes], selector: selectors.BaseSelector) -> None:
        """Writes what the command has room for; closes the stream when there is nothing left."""
        self._left = self._left or self._taken()
        try:
            if self._left:
                self._check()
                self._left = self._left[os.write(stream.fileno(), self._left) :]
                return
        except BlockingIOError:
            return
        except BrokenPipeError:  # its exit code says why
            self.are_unread = True
        selector.unregister(stream)
        stream.close()

    def _taken(self) -> bytes:
        taken = bytearray()
        while (
            len(taken) < ORDERS_AT_ONCE_BYTES
            and len(self._given) < self._most
            and time.monotonic() < self.until
        ):
            order = self._again.popleft() if self._again else next(self._orders, None)
            if order is None:
                self.are_done = True
                break
            self._given.append(order)
            if not (order.isascii() and order.isprintable()):
                raise ValueError(f"{order!r} is not an order of one line")
            taken += order.encode() + b"\n"
        return bytes(taken)
