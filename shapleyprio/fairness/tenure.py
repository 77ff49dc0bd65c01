"""The history of who held which node, account and partition, and what a run means under it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from shapleyprio.fairness.runs import Run

NOBODY = ""
"""Stands for the organization of an unowned node and of an unclaimed account, and for the
holder of every partition that takes part."""

LEFT_OUT = " left out"
"""Stands for the holder of an account or a partition whose jobs do not count at all; no
organization has a name that begins with a blank."""

Kind = Literal["node", "account", "partition"]


@dataclass(frozen=True, slots=True)
class Tenure:
    """A node owned, or an account claimed, by one organization from one second to another.

    No organization holds a partition: it takes part or is left out.

    Attributes:
        kind: ``node``, ``account`` or ``partition``.
        name: of it.
        organization: its holder, NOBODY if it had none, LEFT_OUT where it was left out.
        since: first second, None for "always before".
        until: second after the last, None while it lasts.
    """

    kind: Kind
    name: str
    organization: str
    since: int | None
    until: int | None

    def lasts_in(self, begin: int, end: int | None) -> bool:
        """Returns whether a part of it is in [begin, end); end is None for any later second."""
        begun = self.since is None or end is None or self.since < end
        return begun and (self.until is None or self.until > begin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A node, an account or a partition that has passed from one holder to another.

    Attributes:
        kind: ``node``, ``account`` or ``partition``.
        name: of it.
        before, after: organizations, NOBODY for none, LEFT_OUT where it is left out.
        since: first second for which it counts as the later one's.
    """

    kind: Kind
    name: str
    before: str
    after: str
    since: int


@dataclass(frozen=True, slots=True)
class Allocation:
    """Some processors of one owner, working for one organization, from begin to end.

    The organization gains the parts' worth as utility, the owner as contribution (DirectContr,
    SPAA 2013 Fig. 9, with the roles as its definition has them).

    Attributes:
        organization: whose job it is (NOBODY: an unclaimed account).
        owner: whose processors they are (NOBODY: unowned nodes).
        processors: how many.
        begin, end: seconds since the epoch; end is None while it runs.
    """

    organization: str
    owner: str
    processors: int
    begin: int
    end: int | None


class Tenures:
    """The history of ownership: for all nodes, accounts and partitions tenures without gaps.

    A name that was never heard of belongs to NOBODY.
    """

    def __init__(self, tenures: Iterable[Tenure] = ()) -> None:
        self._rows: dict[tuple[Kind, str], list[Tenure]] = {}
        for tenure in tenures:
            self._rows.setdefault((tenure.kind, tenure.name), []).append(tenure)
        for rows in self._rows.values():
            rows.sort(key=lambda row: (row.since is not None, row.since or 0))

    def __iter__(self) -> Iterator[Tenure]:
        for rows in self._rows.values():
            yield from rows

    def knows(self, kind: Kind, name: str) -> bool:
        """Returns whether such a node, account or partition was ever heard of."""
        return (kind, name) in self._rows

    def of(self, kind: Kind, name: str) -> list[Tenure]:
        """Returns all tenures of a node, account or partition, the oldest first."""
        return list(self._rows.get((kind, name), ()))

    def holder(self, kind: Kind, name: str, second: int) -> str:
        """Returns the organization that holds the node or account at that second.

        An account that is left out is NOBODY's.
        """
        found = self._found(kind, name, second)
        return NOBODY if found == LEFT_OUT else found

    def left_out(self, kind: Kind, second: int) -> frozenset[str]:
        """Returns the accounts or partitions that are left out at that second."""
        return frozenset(
            name for one, name in self._rows if one == kind and self.is_left_out(kind, name, second)
        )

    def is_left_out(self, kind: Kind, name: str, second: int) -> bool:
        """Returns whether an account or partition is left out at that second."""
        return self._found(kind, name, second) == LEFT_OUT

    def _found(self, kind: Kind, name: str, second: int) -> str:
        rows = self._rows.get((kind, name), ())
        for row in reversed(rows):
            if row.since is None or row.since <= second:
                return row.organization
        return NOBODY

    def moves(self, since: int) -> list[Move]:
        """Returns what has changed hands at that second or later, in the order in which it did."""
        return sorted(
            (
                Move(
                    kind=kind,
                    name=name,
                    before=before.organization,
                    after=after.organization,
                    since=after.since,
                )
                for (kind, name), rows in self._rows.items()
                for before, after in pairwise(rows)
                if after.since is not None
                and after.since >= since
                and after.organization != before.organization
            ),
            key=lambda move: move.since,
        )

    def without_any(self, organizations: Iterable[str]) -> list[str]:
        """Returns those of the organizations that hold no node and no account now."""
        holders = {rows[-1].organization for rows in self._rows.values()}
        return [name for name in organizations if name not in holders]

    def observe(self, kind: Kind, holders: Mapping[str, str], second: int) -> list[Tenure]:
        """Takes in who holds what now, and returns the tenures that are new or have changed.

        A name first heard of has been its holder's always; a later change counts from `second`
        on, and what was earned before stays where it was. A name that is no longer mentioned
        keeps its holder: a node that is away for repair has not changed hands.

        Args:
            kind: what the names are.
            holders: name -> organization.
            second: now.
        """
        changed = []
        for name, organization in holders.items():
            rows = self._rows.setdefault((kind, name), [])
            if not rows:
                rows.append(Tenure(kind, name, organization, None, None))
            elif rows[-1].organization != organization:
                last = rows[-1]
                if last.since is not None and last.since >= second:
                    rows[-1] = Tenure(kind, name, organization, last.since, None)
                else:
                    rows[-1] = Tenure(kind, name, last.organization, last.since, second)
                    changed.append(rows[-1])
                    rows.append(Tenure(kind, name, organization, second, None))
            else:
                continue
            changed.append(rows[-1])
        return changed

    def correct(self, kind: Kind, name: str, organization: str, since: int | None) -> bool:
        """Makes something an organization's from then on, whatever counted until now.

        Args:
            kind: what the name is.
            name: one that was heard of.
            organization: NOBODY for none.
            since: first second; None for always.

        Returns:
            Whether anything is other than before.
        """
        old = self._rows[kind, name]
        rows = []
        if since is not None:
            rows = [row for row in old if row.since is None or row.since < since]
            if rows[-1].organization == organization:
                since = rows.pop().since
            else:
                rows[-1] = replace(rows[-1], until=since)
        rows.append(Tenure(kind, name, organization, since, None))
        self._rows[kind, name] = rows
        return rows != old

    def allocations(self, run: Run) -> tuple[Allocation, ...]:
        """Returns what a run means for whom, cut where something of it changed hands.

        While its account or its partition is left out a run means nothing for anybody.
        """
        until = run.end if run.paused_at is None else run.paused_at
        cuts = self._cuts(names_of(run), run.begin, until)
        allocations = []
        for begin, end in pairwise([run.begin, *cuts, until]):
            if begin is None or begin == end:
                continue
            organization = self._found("account", run.account, begin)
            if LEFT_OUT in {organization, self._found("partition", run.partition, begin)}:
                continue
            by_owner: dict[str, int] = {}
            for node, processors in run.processors.items():
                owner = self.holder("node", node, begin)
                by_owner[owner] = by_owner.get(owner, 0) + processors
            allocations += [
                Allocation(organization, owner, processors, begin, end)
                for owner, processors in sorted(by_owner.items())
                if processors
            ]
        return tuple(allocations)

    def _cuts(self, names: list[tuple[Kind, str]], begin: int, end: int | None) -> list[int]:
        return sorted(
            {
                row.since
                for name in names
                for row in self._rows.get(name, ())[1:]
                if row.since is not None and row.since > begin and (end is None or row.since < end)
            }
        )


def names_of(run: Run) -> list[tuple[Kind, str]]:
    """Returns all of a run whose holders decide what it means for whom: account, partition, nodes.

    A partition that is not known is not among them.
    """
    partition: list[tuple[Kind, str]] = [("partition", run.partition)] if run.partition else []
    return [("account", run.account), *partition, *(("node", node) for node in run.processors)]


def takes_part(partitions: str, left_out: Collection[str]) -> bool:
    """Returns whether a waiting job may start where jobs count.

    Args:
        partitions: in which it may start, with commas between.
        left_out: partitions.

    >>> takes_part("test,batch", {"test"})
    True
    >>> takes_part("test", {"test"})
    False
    """
    return not left_out or any(name not in left_out for name in partitions.split(","))
