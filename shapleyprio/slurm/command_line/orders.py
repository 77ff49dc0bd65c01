"""Orders that Slurm's commands read from their standard input."""

from __future__ import annotations

import math
import os
import selectors
import time
from collections.abc import Callable, Iterable
from itertools import chain
from typing import IO

ORDERS_AT_ONCE_BYTES = 1 << 10
"""What is given to a command after one check."""


class Orders:
    """Orders for the standard input of commands, one command after the other.

    Args:
        orders: each one line.
        check: called before any are written.

    Attributes:
        until: after that second of the monotonic clock none is taken.
        are_done: whether there was none left to be taken.
        are_unread: whether a command ended before it had read them.
    """

    def __init__(self, orders: Iterable[str], check: Callable[[], float]) -> None:
        self._orders = iter(orders)
        self._check = check
        self._left = b""
        self._given: list[str] = []
        self._most: float = math.inf
        self.until = math.inf
        self.are_done = self.are_unread = False

    def begin(self, *, again: bool) -> None:
        """Goes on with another command, which may have to repeat all that the last one was given.

        A command that is killed does not say what it has done; to do it twice changes nothing. It
        was given too much for its time, so the next ones are given half of it at most.
        """
        if again:
            self._most = max(len(self._given) // 2, 1)
            self._orders = chain(self._given, self._orders)
            self.are_done = self.are_unread = False
        self._left, self._given = b"", []

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
            order = next(self._orders, None)
            if order is None:
                self.are_done = True
                break
            self._given.append(order)
            if not (order.isascii() and order.isprintable()):
                raise ValueError(f"{order!r} is not an order of one line")
            taken += order.encode() + b"\n"
        return bytes(taken)
