"""A cluster whose accounting is scripted, and the service's way of asking it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.daemon.accounting.ownership import Correction
from shapleyprio.daemon.steering.pruning import prune_runs
from shapleyprio.fairness.runs import JobRecord, Run, run_of
from shapleyprio.slurm.port import Controller
from shapleyprio.slurm.running import Moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from shapleyprio.daemon.accounting.remembered import Remembered
    from shapleyprio.fairness.ledger import Standing
    from shapleyprio.fairness.tenure import Kind, Tenures
    from shapleyprio.slurm.port import Malformed
    from shapleyprio.store import Store, Transaction

OVERLAP = 20
CATCH_UP = 60
LAYOUT = 400
NAMES = ["physics", "biology", "chemistry", ""]

Holders = dict["Kind", dict[str, str]]


class Crash(Exception):  # noqa: N818  # the daemon's death, not an error it could handle
    """The daemon dies."""


@dataclass
class Execution:
    """What really happened: one execution of a job, or its wait for one."""

    job_id: int
    submit: int
    account: str
    processors: Mapping[str, int]
    start: int | None = None
    end: int | None = None
    state: str = "PENDING"
    suspended: int = 0
    paused_at: int | None = None

    @property
    def unfinished(self) -> bool:
        return self.start is not None and self.end is None

    def record(self, now: int) -> JobRecord:
        """As accounting shows it at some time."""
        suspended, elapsed = self.suspended, 0
        if self.start is not None:
            if self.paused_at is not None and self.end is None:
                suspended += now - self.paused_at
            elapsed = max(0, (now if self.end is None else self.end) - self.start - suspended)
        return JobRecord(
            job_id=self.job_id,
            label=str(self.job_id),
            account=self.account,
            user="ann",
            partition="batch",
            submit=self.submit,
            eligible=self.submit,
            start=self.start,
            end=self.end,
            limit=None,
            elapsed=elapsed,
            suspended=suspended,
            state=self.state,
            nodes=tuple(self.processors),
            processors=sum(self.processors.values()),
        )


@dataclass
class ScriptedCluster:
    """Executions as they are, as accounting has heard of them so far, and what is on its way.

    Attributes:
        now: the controller's clock.
        holders: kind -> name -> organization, as Slurm's layout has it now.
        truth: row -> execution.
        heard: row -> the same, as far as accounting has heard.
        on_their_way: (due, row, state), in the order they were sent.
        down: whether accounting is away; the controller counts what it has not handed over.
    """

    now: int
    holders: Holders
    truth: dict[int, Execution] = field(default_factory=dict)
    heard: dict[int, Execution] = field(default_factory=dict)
    on_their_way: list[tuple[int, int, Execution]] = field(default_factory=list)
    down: bool = False

    @property
    def backlog(self) -> int:
        return len(self.on_their_way) if self.down else 0

    def change(self, row: int, delay: int = 0) -> None:
        """Sends accounting the state of a row, to arrive after a delay, in order."""
        earlier = [due for due, other, _ in self.on_their_way if other == row]
        due = max([self.now + delay, *earlier])
        self.on_their_way.append((due, row, replace(self.truth[row])))
        self.deliver()

    def deliver(self) -> None:
        """Lets arrive what is due."""
        if self.down:
            return
        for due, row, state in self.on_their_way:
            if due <= self.now:
                self.heard[row] = state
        self.on_their_way = [item for item in self.on_their_way if item[0] > self.now]

    def withdraw(self, row: int) -> None:
        """Takes a row out of accounting, as if it had never been."""
        del self.truth[row]
        self.heard.pop(row, None)
        self.on_their_way = [item for item in self.on_their_way if item[1] != row]

    def records(self, since: int, until: int) -> list[JobRecord]:
        """Records of the jobs that existed at some time in [since, until]."""
        return [
            execution.record(self.now)
            for execution in self.heard.values()
            if execution.submit <= until and (execution.end is None or execution.end >= since)
        ]

    def records_of(self, job_ids: Iterable[int]) -> list[JobRecord]:
        """All records of some jobs."""
        wanted = set(job_ids)
        return [
            execution.record(self.now)
            for execution in self.heard.values()
            if execution.job_id in wanted
        ]


@dataclass
class StoredLedger:
    """The daemon, as far as accounts go: it opens the ledger, polls, and may die at any time.

    Attributes:
        store, name: where the ledger is kept.
        cluster: whom it asks.
        horizon: as configured.
        opens: as configured.
        remembered: the ledger in memory, as long as it lives.
        printed: every record that came, to be the same object when it comes again.
    """

    store: Store
    name: str
    cluster: ScriptedCluster
    horizon: int | None
    opens: int
    layout: Holders | None = None
    layout_read: int = 0
    remembered: Remembered | None = None
    printed: dict[JobRecord, JobRecord] = field(default_factory=dict)

    def poll(self, order: Random, crash_after: int | None = None) -> tuple[int, OpenLedger]:
        """One round of accounting, the way the service does it.

        Args:
            order: in which records come, and how often the same.
            crash_after: so many records and the daemon dies; if there are fewer, at the end.

        Returns:
            t, and the account that stands at t.
        """
        steps = _Countdown(crash_after)
        while True:
            now, backlog = self.cluster.now, self.cluster.backlog
            remembered, self.remembered = self.remembered, None
            with self.store.cluster(self.name).transaction() as transaction:
                account = self.open(transaction, remembered)
                account.look(controller_at(now), overlap=OVERLAP)
                account.begin_answer()
                for kind, holders in self._holders(now, refresh=False).items():
                    account.observe_holders(kind, holders, now)
                observed = account.watermark.observed_until
                until = now if backlog else min(now, observed + CATCH_UP)
                start = max(account.watermark.opened, observed - OVERLAP)
                heard = self.cluster.records(start, until)
                # a record that has not changed is the same object, as from the command line
                heard = [self.printed.setdefault(record, record) for record in heard]
                account.ingest(steps.through(_as_they_come(heard, order)), now)
                if until == now and (unmentioned := account.unmentioned()):
                    answer = self.cluster.records_of(key.job_id for key in unmentioned)
                    found = steps.through(_as_they_come(answer, order))
                    account.settle_unfinished(unmentioned, found, now)
                t = account.close(self.cluster.now, observed_until=observed if backlog else until)
                if until == now and crash_after is not None:
                    raise Crash
            account.end_answer()
            self.remembered = account.remember()
            if until == now:
                return t, account

    def prune(self) -> int:
        with self.store.cluster(self.name).transaction() as transaction:
            return prune_runs(transaction, self.horizon, overlap=OVERLAP)

    def restart(self) -> None:
        """Forgets what was only in memory."""
        self.layout = None
        self.remembered = None

    def open(self, transaction: Transaction, remembered: Remembered | None = None) -> OpenLedger:
        return OpenLedger(
            transaction,
            horizon=self.horizon,
            opens=self.opens,
            ask_holders=lambda: self._holders(self.cluster.now, refresh=True),
            remembered=remembered,
        )

    def _holders(self, now: int, *, refresh: bool) -> Holders:
        if self.layout is None or refresh or now - self.layout_read >= LAYOUT:
            self.layout = {kind: dict(names) for kind, names in self.cluster.holders.items()}
            self.layout_read = now
        return self.layout


class _Countdown:
    def __init__(self, steps: int | None) -> None:
        self._left = steps

    def through(self, records: Iterable[JobRecord]) -> Iterator[JobRecord]:
        for record in records:
            if self._left is not None:
                if self._left == 0:
                    raise Crash
                self._left -= 1
            yield record


def _as_they_come(records: list[JobRecord], order: Random) -> list[JobRecord]:
    again = [record for record in records if order.random() < 0.3]
    mixed = records + again
    order.shuffle(mixed)
    return mixed


def correction_of(
    holders: Mapping[Kind, Mapping[str, str]], since: int, *, at: int, **more: Any
) -> Correction:
    """A correction that somebody asks for."""
    return Correction(
        holders=holders,
        since=since,
        at=at,
        user="eve",
        processors=(processors := more.get("processors", {})),
        partitions_of=dict.fromkeys(processors, ("batch",)),
        organizations=NAMES,
        longest_age=more.get("longest_age", 900),
    )


def fed_once(
    store: Store,
    name: str,
    records: Iterable[JobRecord | Malformed],
    *,
    tenures: Tenures,
    horizon: int | None,
    opens: int,
    t: int,
) -> dict[str, Standing]:
    """Standings at t of a fresh ledger that gets all records at once."""

    def nobody_asks() -> Mapping[Kind, Mapping[str, str]]:
        raise AssertionError("all holders are known")

    with store.cluster(name).transaction() as transaction:
        names = {(one.kind, one.name) for one in tenures}
        transaction.ledger.save_tenures({name: tenures.of(*name) for name in names})
        account = OpenLedger(transaction, horizon=horizon, opens=opens, ask_holders=nobody_asks)
        account.ingest(records, t)
        stands_at = account.close(t, observed_until=t)
        assert stands_at == t
        return account.ledger.standings(t, NAMES)


def controller_at(now: int) -> Controller:
    """A controller whose clock nobody sets."""
    return Controller(
        time=now, accounting_backlog=0, submitted=0, seen=Moment(boot="steady", seconds=now)
    )


def runs_since(
    opened: int, records: Iterable[JobRecord], sizes: Mapping[str, int] | None = None
) -> list[Run]:
    """The runs of records, without what was executed before the ledger was opened."""
    return [
        replace(
            run,
            begin=max(run.begin, opened),
            end=None if run.end is None else max(run.end, opened),
            paused_at=None if run.paused_at is None else max(run.paused_at, opened),
        )
        for record in records
        if (run := run_of(record, sizes or {})) is not None
    ]
