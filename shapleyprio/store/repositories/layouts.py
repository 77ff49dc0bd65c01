"""Nodes and the tree of accounts, and since when they are so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

from sqlalchemy import select

from shapleyprio.store.rows import AccountRow, NodeRow
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import account, node

Row = TypeVar("Row", NodeRow, AccountRow)


class LayoutsView(Scope):
    """Reads layouts."""

    def node_rows(self) -> list[NodeRow]:
        """Returns every change of every node, by name, the oldest first."""
        query = select(*columns(node)).where(self._here(node))
        return self._read(NodeRow, query.order_by(node.c.name, node.c.since))

    def account_rows(self) -> list[AccountRow]:
        """Returns every change of every account's place in the tree, by name, the oldest first."""
        query = select(*columns(account)).where(self._here(account))
        return self._read(AccountRow, query.order_by(account.c.name, account.c.since))


class Layouts(LayoutsView):
    """Writes layouts."""

    def observe_layout(
        self,
        nodes: Mapping[str, tuple[int, tuple[str, ...]]],
        parents: Mapping[str, str | None],
        second: int,
        *,
        opened: int,
    ) -> None:
        """Stores which nodes and accounts are other than before.

        Args:
            nodes: name -> processors and partitions, as in `NodeRow`; one that is missing is gone.
            parents: account -> parent, as in `AccountRow`.
            second: from which it is so; not before what is stored.
            opened: since when what is seen at the first time is taken to have been so.
        """
        known = self.node_rows()
        since = second if known else opened
        gone: dict[str, tuple[int, tuple[str, ...]]] = {row.name: (0, ()) for row in known}
        seen = [
            NodeRow(name=name, since=since, processors=processors, partitions=partitions)
            for name, (processors, partitions) in (gone | dict(nodes)).items()
        ]
        self._replace(node, [values_of(row) for row in _changed(known, seen)])
        tree = self.account_rows()
        since = second if tree else opened
        placed = [
            AccountRow(name=name, since=since, parent=parent) for name, parent in parents.items()
        ]
        self._replace(account, [values_of(row) for row in _changed(tree, placed)])

    def put_layout(self, nodes: Sequence[NodeRow], accounts: Sequence[AccountRow]) -> None:
        """Stores rows, in place of those of the same names and seconds."""
        self._replace(node, [values_of(row) for row in nodes])
        self._replace(account, [values_of(row) for row in accounts])

    def prune_layout(self, before: int) -> None:
        """Deletes rows that others had taken the place of by then."""
        self._delete(node, _outdated(self.node_rows(), before))
        self._delete(account, _outdated(self.account_rows(), before))


def _outdated(rows: Iterable[Row], before: int) -> list[dict[str, Any]]:
    """Returns the keys of rows, sorted by name and second, that others follow by then."""
    return [
        {"name": row.name, "since": row.since}
        for row, following in pairwise(rows)
        if following.name == row.name and following.since <= before
    ]


def _changed(known: Iterable[Row], seen: Iterable[Row]) -> list[Row]:
    """Returns the rows that say something else than the last ones of their names."""
    last = {row.name: row for row in known}
    return [
        row
        for row in seen
        if row.name not in last or replace(last[row.name], since=row.since) != row
    ]
