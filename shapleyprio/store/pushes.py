"""What was written to Slurm, what it replaced, and what became of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Select, delete, func, select, update

from shapleyprio.slurm.port import Channel
from shapleyprio.store.rows import Mark, NewPush, Push, PushState
from shapleyprio.store.scope import KEYS_AT_ONCE, Scope, batches, columns, values_of
from shapleyprio.store.tables import mark, push

VALUES_REMEMBERED = 64
"""Values of a mark: more than the places that an organization changes between."""


class PushesView(Scope):
    """Reads what was written to Slurm."""

    def marks(self, channel: Channel) -> dict[str, Mark]:
        """Job id or QOS -> what we did to it on the channel."""
        query = select(mark.c.key, mark.c.asked, mark.c.written)
        rows = self._connection.execute(query.where(self._here(mark), mark.c.channel == channel))
        return {key: Mark(asked, written) for key, asked, written in rows}

    def open_pushes(self) -> list[Push]:
        """Pushes still planned, oldest first: left behind by a crash."""
        planned = self._pushes().where(push.c.state == PushState.PLANNED)
        # sorted here: asked to sort, a database may read all pushes in order instead of these few
        return sorted(self._read(Push, planned), key=lambda item: item.number)

    def pushes(self, limit: int = 20, key: str | None = None) -> list[Push]:
        """Pushes (to the job or QOS with that key), newest first."""
        query = self._pushes()
        if key is not None:
            query = query.where(push.c.key == key)
        return self._read(Push, query.order_by(push.c.number.desc()).limit(limit))

    def _pushes(self) -> Select[Any]:
        return select(*columns(push)).where(self._here(push))


class Pushes(PushesView):
    """Writes what was written to Slurm."""

    def plan_pushes(self, pushes: Sequence[NewPush]) -> list[int]:
        """Notes pushes as planned, to be committed before they are tried; returns their numbers.

        Their targets are marked in the same transaction.
        """
        first = self._next_push()
        numbers = list(range(first, first + len(pushes)))
        self._insert(
            push,
            [
                {**values_of(item), "number": number, "state": PushState.PLANNED, "note": ""}
                for number, item in zip(numbers, pushes, strict=True)
            ],
        )
        for channel in {item.channel for item in pushes}:
            self._mark(channel, [item for item in pushes if item.channel is channel])
        return numbers

    def settle_pushes(self, numbers: Mapping[int, tuple[PushState, str]]) -> None:
        """Notes what became of pushes.

        Args:
            numbers: of pushes -> state and note (at most 500 characters are kept).
        """
        alike: dict[tuple[PushState, str], list[int]] = {}
        for number, fate in numbers.items():
            alike.setdefault(fate, []).append(number)
        for (state, note), settled in alike.items():
            for some in batches(settled, KEYS_AT_ONCE):
                statement = update(push).where(self._here(push), push.c.number.in_(some))
                self._connection.execute(statement.values(state=state, note=note))

    def prune_marks(self, channel: Channel, live: Collection[str]) -> int:
        """Forgets what we did to jobs that are gone, and returns how many they were.

        Args:
            channel: which.
            live: keys of all jobs or QOS that Slurm still has.
        """
        gone = self.marks(channel).keys() - set(live)
        self._delete(mark, [{"channel": channel, "key": key} for key in gone])
        return len(gone)

    def _mark(self, channel: Channel, pushes: Sequence[NewPush]) -> None:
        marks = self.marks(channel)
        for item in pushes:
            old = marks.get(item.key)
            written = old.written if old is not None and old.asked == item.asked else ()
            if item.old != item.asked:  # inherited from an array, under whose key it is explained
                written = (item.old, *written)
            others = tuple(value for value in dict.fromkeys(written) if value != item.new)
            marks[item.key] = Mark(item.asked, (*others, item.new)[-VALUES_REMEMBERED:])
        self._replace(
            mark,
            [
                {"channel": channel, "key": key, **values_of(marks[key])}
                for key in {item.key for item in pushes}
            ],
        )

    def _prune_pushes(self, before: int) -> int:
        """Deletes settled pushes older than `before`, but for the newest, and returns how many."""
        return self._connection.execute(
            delete(push).where(
                self._here(push),
                push.c.at < before,
                push.c.state != PushState.PLANNED,
                push.c.number != self._next_push() - 1,  # or its number would be used again
            )
        ).rowcount

    def _next_push(self) -> int:
        query = select(func.max(push.c.number)).where(self._here(push))
        return (self._connection.execute(query).scalar_one() or 0) + 1
