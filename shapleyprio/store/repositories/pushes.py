"""Writes into Slurm, what stood there before, and the table of points."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from sqlalchemy import bindparam, select, update

from shapleyprio.store.rows.pushes import ManagedValue, NewPush, PublishedPoints, Push, PushState
from shapleyprio.store.scope import KEYS_AT_ONCE, Scope, batches, values_of
from shapleyprio.store.tables import managed_value, published_points, push

VALUES_REMEMBERED = 64
"""Written values that a managed value remembers: more than there are ranks to change between."""

WORTH_A_STATEMENT = 20
"""Pushes that fared alike from which on they are settled by a statement of their own: to make one
takes as long as to change that many rows."""

GIVEN_REMEMBERED = 1000
"""Points that may still stand at jobs: many more than there are ranks."""


class PushesView(Scope):
    """Reads pushes, managed values and the table of points."""

    def managed_values(
        self, channel: str, keys: Collection[str] | None = None
    ) -> dict[str, ManagedValue]:
        """Returns job id or QOS -> what we did to it on the channel.

        Args:
            channel: which.
            keys: of those that are wanted; None for all.
        """
        query = select(
            managed_value.c.key,
            managed_value.c.original,
            managed_value.c.written,
            managed_value.c.by_hand,
        ).where(self._here(managed_value), managed_value.c.channel == channel)
        queries = (
            [query]
            if keys is None
            else [
                query.where(managed_value.c.key.in_(some)) for some in batches(keys, KEYS_AT_ONCE)
            ]
        )
        alike = cache(ManagedValue)  # many jobs have the same
        return {
            key: alike(*found) for each in queries for key, *found in self._connection.execute(each)
        }

    def last_push(self) -> int:
        """Returns the number of the newest push; 0 if there is none. It is never pruned."""
        return self._last(push.c.number)

    def keys_pushed_after(self, channel: str, number: int) -> set[str]:
        """Returns the keys of pushes on the channel with larger numbers."""
        query = select(push.c.key).where(
            self._here(push), push.c.channel == channel, push.c.number > number
        )
        return set(self._connection.execute(query).scalars())

    def open_pushes(self) -> list[Push]:
        """Returns pushes still planned, oldest first: left behind by a crash."""
        planned = self._rows(push, push.c.state == PushState.PLANNED)
        # sorted here: asked to sort, a database may read all pushes in order instead of these few
        return sorted(self._read(Push, planned), key=lambda item: item.number)

    def latest(self, limit: int = 20, key: str | None = None) -> list[Push]:
        """Returns pushes (to the job or QOS with that key), newest first."""
        query = self._rows(push)
        if key is not None:
            query = query.where(push.c.key == key)
        return self._read(Push, query.order_by(push.c.number.desc()).limit(limit))

    def published_points(self) -> PublishedPoints | None:
        """Returns what the table of points has given; None if there never was one."""
        return self._read_one(PublishedPoints, self._rows(published_points))


class Pushes(PushesView):
    """Writes pushes, managed values and the table of points."""

    def plan(self, pushes: Sequence[NewPush], state: PushState = PushState.PLANNED) -> list[int]:
        """Notes pushes as planned, to be committed before they are tried; returns their numbers.

        The managed values of their targets are written in the same transaction.

        Args:
            pushes: to be tried, or whose values were found there already.
            state: what is known to have become of them.
        """
        first = self.last_push() + 1
        numbers = list(range(first, first + len(pushes)))
        self._insert(
            push,
            (
                {**values_of(item), "number": number, "state": state, "note": ""}
                for number, item in zip(numbers, pushes, strict=True)
            ),
        )
        for channel in {item.channel for item in pushes}:
            self._manage(channel, [item for item in pushes if item.channel == channel])
        return numbers

    def settle(self, numbers: Mapping[int, tuple[PushState, str]]) -> None:
        """Notes what became of pushes.

        Args:
            numbers: of pushes -> state and note (at most 500 characters are kept).
        """
        alike: dict[tuple[PushState, str], list[int]] = {}
        for number, fate in numbers.items():
            alike.setdefault(fate, []).append(number)
        alone = []
        for (state, note), settled in alike.items():
            if len(settled) < WORTH_A_STATEMENT:
                alone += [{"settled": number, "state": state, "note": note} for number in settled]
                continue
            for some in batches(settled, KEYS_AT_ONCE):
                statement = update(push).where(self._here(push), push.c.number.in_(some))
                self._connection.execute(statement.values(state=state, note=note))
        if alone:
            each = update(push).where(self._here(push), push.c.number == bindparam("settled"))
            self._connection.execute(each, alone)

    def note_left(self, pushes: Iterable[NewPush]) -> None:
        """Notes that what stood there before some pushes counts as standing there still."""
        by_channel: dict[str, dict[str, int]] = {}
        for item in pushes:
            by_channel.setdefault(item.channel, {})[item.key] = item.old
        for channel, left in by_channel.items():
            managed = self.managed_values(channel, left)
            for key, value in managed.items():
                others = tuple(one for one in value.written if one != left[key])
                managed[key] = ManagedValue(
                    value.original, (*others, left[key])[-VALUES_REMEMBERED:]
                )
            self._keep(channel, managed)

    def note_by_hand(self, channel: str, values: Mapping[str, int]) -> None:
        """Notes what somebody else has set: it stands there, and is what a rollback leaves.

        Args:
            channel: where.
            values: key -> what was set there.
        """
        managed = self.managed_values(channel, values)
        for key, value in values.items():
            known = managed.get(key) or ManagedValue(value, (value,))
            managed[key] = replace(known, by_hand=value)
        self._keep(channel, managed)

    def prune_managed_values(self, channel: str, live: Collection[str]) -> int:
        """Forgets what we did to jobs that are gone, and returns how many they were.

        Args:
            channel: which.
            live: keys of all jobs or QOS that Slurm still has.
        """
        gone = self.managed_values(channel).keys() - set(live)
        self._delete(managed_value, [{"channel": channel, "key": key} for key in gone])
        return len(gone)

    def save_managed_values(self, channel: str, managed: Mapping[str, ManagedValue]) -> None:
        """Makes these managed values all of the channel's."""
        self._clear(managed_value, managed_value.c.channel == channel)
        rows = [{"channel": channel, "key": key, **values_of(row)} for key, row in managed.items()]
        self._insert(managed_value, rows)

    def _manage(self, channel: str, pushes: Sequence[NewPush]) -> None:
        managed = self.managed_values(channel, {item.key for item in pushes})
        for item in pushes:
            old = managed.get(item.key)
            written = () if old is None else old.written
            if old is not None and old.original != item.original:  # somebody may ask for it again
                written = tuple(value for value in written if value != old.original)
            if item.old != item.original:  # inherited from an array, whose key explains it
                written = (item.old, *written)
            others = tuple(value for value in dict.fromkeys(written) if value != item.new)
            managed[item.key] = ManagedValue(
                item.original, (*others, item.new)[-VALUES_REMEMBERED:]
            )
        self._keep(channel, managed)

    def _keep(self, channel: str, managed: Mapping[str, ManagedValue]) -> None:
        self._replace(
            managed_value,
            ({"channel": channel, "key": key, **values_of(row)} for key, row in managed.items()),
        )

    def prune(self, before: int) -> int:
        """Deletes settled pushes older than `before`, but for the newest, and returns how many."""
        old = (push.c.at < before) & (push.c.state != PushState.PLANNED)
        newest = self.last_push()  # without it, its number would be used again
        return self._delete_some(push, old & (push.c.number != newest), push.c.number)

    def will_publish(self, path: Path, points: Collection[int]) -> None:
        """Notes, before it is written, what a table gives from now on.

        Args:
            path: of the table.
            points: that it gives.
        """
        before = self.published_points()
        known = () if before is None else before.given
        new = sorted(set(points).difference(known))
        self._save(
            before,
            PublishedPoints(
                path=str(path),
                given=(*known, *new)[-GIVEN_REMEMBERED:],
                since=None if before is None else before.since,
                until=None,
            ),
        )

    def is_published(self, second: int) -> None:
        """Notes that the table is there; where it was before, since when stays as it is."""
        before = self.published_points()
        if before is not None and before.since is None:
            self._save(before, replace(before, since=second))

    def is_withdrawn(self, second: int) -> None:
        """Notes that jobs submitted later than that get nothing from a table."""
        before = self.published_points()
        if before is not None and before.until is None:
            self._save(before, replace(before, since=None, until=second))

    def save_published_points(self, row: PublishedPoints | None) -> None:
        """Makes this all that is known of it; None for nothing."""
        before = self.published_points()
        if row is not None:
            self._save(before, row)
        elif before is not None:
            self._clear(published_points)

    def _save(self, before: PublishedPoints | None, row: PublishedPoints) -> None:
        if row != before:
            self._replace(published_points, [values_of(row)])
