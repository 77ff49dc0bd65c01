"""What we did to all that carries priorities, in memory from one cycle to the next."""

from __future__ import annotations

from collections.abc import Mapping

from shapleyprio.store import ManagedValue, View


class KnownValues:
    """What we did to all that carries priorities on one channel, as the store has it.

    It changes by pushes alone, whose numbers grow; whoever prunes has to `forget`.

    Args:
        channel: its name.
    """

    def __init__(self, channel: str) -> None:
        self._channel = channel
        self._values: dict[str, ManagedValue] | None = None
        self._token: int | None = None
        self._last = 0

    def forget(self) -> None:
        """Has everything reread."""
        self._values = None

    def read(self, view: View) -> Mapping[str, ManagedValue]:
        """Returns key -> managed value; reads what was pushed since the last time."""
        lease, last = view.lease.read(), view.pushes.last_push()
        token = None if lease is None else lease.token
        if self._values is None or token != self._token or last < self._last:
            self._values = view.pushes.managed_values(self._channel)
        elif last > self._last:
            keys = view.pushes.keys_pushed_after(self._channel, self._last)
            self._values |= view.pushes.managed_values(self._channel, keys)
        self._token, self._last = token, last
        return self._values
