"""Cycles that change nothing: they work on a copy of the store, or on a new one that is deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from shapleyprio.config import Config
from shapleyprio.config.segments import segments_of
from shapleyprio.daemon.answering.status import OrganizationStatus, organization_rows
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.daemon.steering.report import CycleReport
from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.fairness.rule import by_score
from shapleyprio.fairness.tenure import Move, Tenures
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.port import Slurm
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
class Forecast:
    """What a cycle would do, and how it differs from the store.

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
        without_any: organizations that own no node and no account.
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
    without_any: Sequence[str]
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
            "without_any": list(self.without_any),
            "writes": len(self.pushes),
            "postponed": self.postponed,
        }
        return shown | ({"pushes": [asdict(push) for push in self.pushes]} if verbose else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """What the store has of a ledger: whether it is new to it, its last standings and tenures."""

    is_new: bool = True
    standings: Sequence[StandingRow] = ()
    tenures: Tenures = field(default_factory=Tenures)


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
        show: Callable[[Sequence[Forecast]], None],
    ) -> None:
        self.store = store
        self.url = url
        self._original = original
        self._show = show
        self._before: dict[str, _Before] = {}
        self._forecasts: list[Forecast] = []

    def begin(self, ledgers: Iterable[str]) -> None:
        """Takes over what a daemon beside has written into Slurm since, and how it ranked.

        Args:
            ledgers: of the cluster, a cycle of each of which follows.

        Raises:
            StoreError: the store cannot be read.
        """
        managed: dict[str, dict[str, ManagedValue]] = {}
        original = Store.open_existing(self._original)
        if original is None:
            return
        with original:
            for ledger in ledgers:
                with original.cluster(ledger).reading() as view:
                    self._before[ledger] = _Before(
                        is_new=view.ledger.watermark() is None,
                        standings=view.history.latest_standings(),
                        tenures=view.ledger.tenures(),
                    )
            with original.cluster(self.store.cluster).reading() as view:
                managed = {channel: view.pushes.managed_values(channel) for channel in CHANNELS}
                published = view.pushes.published_points()
        with self.store.transaction() as transaction:
            for channel, found in managed.items():
                transaction.pushes.save_managed_values(channel, found)
            transaction.pushes.save_published_points(published)

    def end(self, ledger: str, report: CycleReport) -> None:
        """Takes in what the cycle of a ledger found."""
        with self.store.ledger(ledger).reading() as view:
            watermark, tenures = view.ledger.watermark(), view.ledger.tenures()
        assert watermark is not None, "a cycle saves how far it came"
        before = self._before.get(ledger, _Before())
        standings = report.ranked.standings
        self._forecasts.append(
            Forecast(
                cluster=ledger,
                store=Store.name_of(self._original),
                t=report.t,
                opened=watermark.opened,
                is_new=before.is_new,
                since=before.standings[0].t if before.standings else None,
                standings=_standings(standings),
                before={one.status.organization: one for one in _standings(before.standings)},
                moves=list(_moves(before.tenures, tenures, report.t)),
                without_any=tenures.without_any(row.organization for row in standings),
                pushes=report.plan.pushes,
                postponed=report.plan.postponed,
            )
        )

    def show(self) -> None:
        """Shows what the cycles found since the last time."""
        found, self._forecasts = self._forecasts, []
        if found:
            self._show(found)


@contextmanager
def rehearse(
    url: str, ledgers: Sequence[str], show: Callable[[Sequence[Forecast]], None]
) -> Iterator[DryRun]:
    """Copies the store for cycles that change nothing; the copy is deleted at the end.

    Args:
        url: of the store, which need not exist yet, and of which only reading is asked.
        ledgers: of the cluster whose cycles they are.
        show: called after every cycle with what it would have done, ledger by ledger.

    Raises:
        StoreError: the store cannot be read, or not be copied.
    """
    with private_copy(url, ledgers) as (store, copy_url):
        yield DryRun(url, store, copy_url, show)


@contextmanager
def private_copy(url: str, ledgers: Sequence[str]) -> Iterator[tuple[ClusterStore, str]]:
    """Copies a store to try something on it; the copy is deleted at the end.

    Args:
        url: of the store, of which only reading is asked; if there is none, the copy is empty.
        ledgers: of one cluster, whose rows are wanted.

    Yields:
        the rows of the cluster or of the only ledger in the copy, and the copy's URL.

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
    cluster = ledgers[0] if len(ledgers) == 1 else cluster_behind(ledgers[0])
    with temporary as directory:
        file = Path(directory, "store.db")
        original = Store.open_existing(url)
        if original is not None:
            with original:
                original.cluster(cluster).copy(file, ledgers)
        copy_url = f"sqlite:///{file}"
        with Store.open(copy_url, create=True) as store:
            yield store.cluster(cluster), copy_url


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
    last = {(tenure.kind, tenure.name): tenure for tenure in after}
    for (kind, name), tenure in last.items():
        held = before.holder(kind, name, second)
        if before.knows(kind, name) and tenure.organization != held:
            assert tenure.since is not None, "a known node or account has a new holder"
            yield Move(
                kind=kind, name=name, before=held, after=tenure.organization, since=tenure.since
            )


@contextmanager
def accounted_afresh(
    config: Config, slurm: Slurm, cluster: str, since: int | None
) -> Iterator[Sequence[ClusterStore]]:
    """Reads all of Slurm's accounting from a second on; nothing is written into Slurm.

    Args:
        config: who owns accounts and nodes, now and in the past.
        slurm: the cluster.
        cluster: its name.
        since: second; None for when a new ledger opens.

    Yields:
        the cluster's ledgers.

    Raises:
        SlurmError: Slurm is away.
        AccountingError: the records are not as they must be.
        StoreError: there is no room for what was read; TMPDIR says where it is kept.
    """
    if since is not None:
        fairness = config.fairness.model_copy(update={"since": since})
        config = config.model_copy(update={"fairness": fairness})
    with TemporaryDirectory(prefix="shapleyprio-export-") as directory:
        url = f"sqlite:///{Path(directory, 'store.db')}"
        with Store.open(url, create=True) as store:
            ledgers = []
            for segment in segments_of(config, cluster):
                ledger = store.cluster(segment.ledger)
                Cycle(segment.configured(config), slurm, ledger).run(dry_run=True)
                ledgers.append(ledger)
            yield ledgers
