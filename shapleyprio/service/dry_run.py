"""Cycles that change nothing: they work on a copy of the store, and show what would happen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from shapleyprio.fairness.rule import by_score
from shapleyprio.fairness.tenure import Kind, Tenures
from shapleyprio.service.report import CycleReport
from shapleyprio.service.status import OrganizationStatus, organization_rows
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.store import ClusterStore, ManagedValue, NewPush, StandingRow, Store, StoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStanding:
    """Where an organization stands.

    Attributes:
        rank: 1 for the first to be served.
        status: its row as `shapleyprio status` shows it.
    """

    rank: int
    status: OrganizationStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A node or an account that has another holder than in the store.

    Attributes:
        kind: ``node`` or ``account``.
        name: of it.
        before, after: organizations, NOBODY for none.
    """

    kind: Kind
    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a cycle would do, and what of it is other than in the store.

    Attributes:
        cluster: its name.
        store: what the store is called.
        t: second at which the ledger stands.
        opened: first second that counts.
        is_new: whether the store does not know the cluster yet.
        since: second of the store's last standings; None without any.
        standings: of the configuration's organizations, the first to be served first.
        before: organization -> where it stood at the store's last standings.
        moves: what would change hands.
        pushes: what would be written into Slurm.
        postponed: how many more writes would be left to the next cycle.
    """

    cluster: str
    store: str
    t: int
    opened: int
    is_new: bool
    since: int | None
    standings: Sequence[PlannedStanding]
    before: Mapping[str, PlannedStanding]
    moves: Sequence[Move]
    pushes: Sequence[NewPush]
    postponed: int

    @property
    def writes(self) -> Mapping[str, int]:
        """Organization -> how many writes are for it; NOBODY's are put back as found."""
        return Counter(push.organization for push in self.pushes)

    def as_json(self, *, verbose: bool) -> dict[str, Any]:
        """Returns a value for json.dumps.

        Args:
            verbose: with every single write.
        """
        shown: dict[str, Any] = {
            "cluster": self.cluster,
            "t": self.t,
            "opened": self.opened,
            "new_store": self.is_new,
            "before_t": self.since,
            "organizations": [
                _as_json(standing)
                | {
                    "writes": self.writes.get(standing.status.organization, 0),
                    "before": before and _as_json(before),
                }
                for standing in self.standings
                for before in [self.before.get(standing.status.organization)]
            ],
            "moves": [asdict(move) for move in self.moves],
            "writes": len(self.pushes),
            "postponed": self.postponed,
        }
        return shown | ({"pushes": [asdict(push) for push in self.pushes]} if verbose else {})


class DryRun:
    """A daemon's cycles on a copy of its store.

    Attributes:
        store: of the cluster, in the copy.
        url: of the copy.
    """

    def __init__(
        self,
        original: str,
        store: ClusterStore,
        url: str,
        show: Callable[[Forecast], None],
    ) -> None:
        self.store = store
        self.url = url
        self._original = original
        self._show = show
        self._is_new = True
        self._last: Sequence[StandingRow] = ()
        self._tenures = Tenures()

    def begin(self) -> None:
        """Takes over what a daemon beside has written into Slurm since, and how it ranked.

        Raises:
            StoreError: the store cannot be read.
        """
        managed: dict[str, dict[str, ManagedValue]] = {}
        original = Store.open_existing(self._original)
        if original is None:
            return
        with original, original.cluster(self.store.cluster).reading() as view:
            self._is_new = view.watermark() is None
            self._last = view.latest_standings()
            self._tenures = view.tenures()
            managed = {channel: view.managed_values(channel) for channel in CHANNELS}
            published = view.published_points()
        with self.store.transaction() as transaction:
            for channel, found in managed.items():
                transaction.save_managed_values(channel, found)
            transaction.save_published_points(published)

    def end(self, report: CycleReport) -> None:
        """Shows what the cycle found."""
        with self.store.reading() as view:
            watermark, tenures = view.watermark(), view.tenures()
        assert watermark is not None, "a cycle saves how far it came"
        self._show(
            Forecast(
                cluster=self.store.cluster,
                store=Store.name_of(self._original),
                t=report.t,
                opened=watermark.opened,
                is_new=self._is_new,
                since=self._last[0].t if self._last else None,
                standings=_standings(report.standings),
                before={
                    standing.status.organization: standing for standing in _standings(self._last)
                },
                moves=list(_moves(self._tenures, tenures, report.t)),
                pushes=report.planned,
                postponed=report.postponed,
            )
        )


@contextmanager
def rehearse(url: str, cluster: str, show: Callable[[Forecast], None]) -> Iterator[DryRun]:
    """Copies the store for cycles that change nothing; the copy is deleted at the end.

    Args:
        url: of the store, which need not exist yet, and of which only reading is asked.
        cluster: whose cycles.
        show: called after every cycle with what it would have done.

    Raises:
        StoreError: the store cannot be read, or not be copied.
    """
    try:
        temporary = TemporaryDirectory(prefix="shapleyprio-dry-run-")
    except OSError as error:
        raise StoreError(
            f"no copy of the store can be made: {error.filename or error}: {error.strerror}; "
            "TMPDIR says where it is made"
        ) from error
    with temporary as directory:
        file = Path(directory, "store.db")
        original = Store.open_existing(url)
        if original is not None:
            with original:
                original.cluster(cluster).copy(file)
        copy_url = f"sqlite:///{file}"
        with Store.open(copy_url, create=True) as store:
            yield DryRun(url, store.cluster(cluster), copy_url, show)


def _standings(rows: Sequence[StandingRow]) -> list[PlannedStanding]:
    status = {row.organization: row for row in organization_rows(list(rows))}
    order = by_score({row.organization: row.priority for row in rows})
    return [
        PlannedStanding(rank=rank, status=status[name]) for rank, name in enumerate(order, start=1)
    ]


def _as_json(standing: PlannedStanding) -> dict[str, Any]:
    names = OrganizationStatus.__slots__
    return {"rank": standing.rank} | {name: getattr(standing.status, name) for name in names}


def _moves(before: Tenures, after: Tenures, second: int) -> Iterator[Move]:
    """Yields what another holds at that second, of what was heard of before."""
    seen: set[tuple[Kind, str]] = set()
    for tenure in after:
        key = (tenure.kind, tenure.name)
        if key not in seen and before.knows(*key):
            held = before.holder(*key, second)
            holds = after.holder(*key, second)
            if holds != held:
                yield Move(kind=tenure.kind, name=tenure.name, before=held, after=holds)
        seen.add(key)
