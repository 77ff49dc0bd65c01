"""Takes Slurm's accounting into the ledger: asks Slurm first, then writes in short transactions.

While sacct answers, no transaction is open that others would wait for. Every transaction leaves a
ledger that is right for the records it has: if the next one never comes, they are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import structlog

from shapleyprio.common.wording import DAY, clock_time
from shapleyprio.config import Config
from shapleyprio.config.segments import Segment
from shapleyprio.daemon.accounting.accounting import CHUNK, OpenLedger
from shapleyprio.daemon.accounting.cluster_clock import after_look, check_clock
from shapleyprio.daemon.accounting.known_layout import KnownLayout
from shapleyprio.daemon.accounting.moves import holds_nothing, sentences
from shapleyprio.daemon.accounting.ownership import Holders
from shapleyprio.daemon.accounting.remembered import Remembered
from shapleyprio.daemon.accounting.tally import AccountedSoFar, Opening
from shapleyprio.fairness.pool import Stay
from shapleyprio.fairness.runs import JobRecord, Run, RunKey
from shapleyprio.slurm.port import Controller, Malformed, Slurm
from shapleyprio.slurm.remembering import Source
from shapleyprio.store import ClusterStore, Transaction, Watermark, batches

CATCH_UP_SECONDS = DAY
"""This much of unread accounting is asked for at once, and twice as much after a quiet time.

So a year of a busy cluster asks slurmdbd for no more at once than it can answer, and a month
without jobs is five questions.
"""

QUIET_RECORDS = 5000
"""A time with fewer records was quiet."""

MOST_COUNTED = 100
"""In one cycle Slurm is asked for at most so many runs how many processors they hold where."""

DEFAULT_OPENING_SECONDS = 30 * DAY
"""Where the horizon is unlimited and nothing else is said, the ledger opens this far back."""

log = structlog.get_logger(__name__)


class _UnheardOfError(Exception):
    """Records name a node or an account that Slurm's layout, as read some time ago, lacks."""


@dataclass(slots=True)
class _Round:
    """One question to accounting, and what has been written of the answer.

    Attributes:
        source: to which it is put.
        controller: as it was before the question.
        mentioned: runs in the answer so far.
        uncounted: of these, see `OpenLedger.uncounted`.
        is_begun: whether something was written.
    """

    source: Source
    controller: Controller
    mentioned: set[RunKey] = field(default_factory=set)
    uncounted: list[Run] = field(default_factory=list)
    is_begun: bool = False

    @property
    def asked_at(self) -> int:
        """The controller's clock before the question."""
        return self.controller.time


class Intake:
    """Accounts for one cluster.

    Args:
        config: who owns accounts and nodes.
        slurm: the cluster.
        store: of the cluster.
        on_opening: called when the store has got a ledger that it did not have before.
        segment: of the cluster, whose jobs and nodes alone it accounts.

    Attributes:
        known: the cluster's layout.
    """

    def __init__(
        self,
        config: Config,
        slurm: Slurm,
        store: ClusterStore,
        on_opening: Callable[[Opening], None],
        segment: Segment,
    ) -> None:
        self._config = config
        self._segment = segment
        self.known = KnownLayout(config, segment)
        self._slurm = slurm
        self._store = store
        self._on_opening = on_opening
        self._asked_to_count: set[RunKey] = set()
        self._without_any: list[str] = []
        self._stay: Stay | None = None
        self._remembered: Remembered | None = None

    def forget(self) -> None:
        """Has the ledger reread from the store."""
        self._remembered = None

    def account(self, source: Source) -> Iterator[tuple[OpenLedger, AccountedSoFar]]:
        """Accounts everything up to now, piece by piece.

        Args:
            source: answers what is asked of the whole cluster.

        Yields:
            after each transaction, which has ended, the ledger as it stands and what was accounted.

        Raises:
            SlurmError: accounting was not read completely; what was written is right.
            AccountingError: the records or the clock are not as they must be.
            StoreError: so for the store.
        """
        at_once = CATCH_UP_SECONDS
        so_far = AccountedSoFar()
        while True:
            before = source.controller()
            now = before.time
            complete = before.accounting_backlog == 0
            self.known.refresh(source, now)
            watermark = self._trusted_watermark(before)
            opened_at = self._opens(now) if watermark is None else watermark.opened
            read_until = opened_at if watermark is None else watermark.observed_until
            until = min(now, read_until + at_once) if complete else now
            caught_up = until == now
            records = self._segment.records(
                source.records(max(opened_at, read_until - self._overlap), until)
            )
            reached = until if complete else None
            seen = so_far.tally.seen
            for opened in self._take_in(records, _Round(source, before), reached, last=caught_up):
                watermark = opened.watermark
                lag = max(0, watermark.accounted_to - watermark.observed_until)
                so_far = so_far.and_then(opened.tally, opened.started, lag)
                yield opened, so_far
            if caught_up:
                opened.end_answer()
                return
            quiet = so_far.tally.seen - seen < QUIET_RECORDS
            at_once = 2 * at_once if quiet else CATCH_UP_SECONDS

    def open(
        self,
        transaction: Transaction,
        now: int,
        mentioned: set[RunKey] | None = None,
        remembered: Remembered | None = None,
    ) -> OpenLedger:
        """Opens the ledger, or a new one.

        Args:
            transaction: to work in.
            now: the controller's clock.
            mentioned: see `OpenLedger`.
            remembered: so as well.
        """
        fairness = self._config.fairness
        return OpenLedger(
            transaction,
            horizon=fairness.horizon,
            opens=self._opens(now),
            ask_holders=lambda: self._news_of_holders(now),
            weight=fairness.weight,
            sizes=lambda: self.known.sizes,
            mentioned=mentioned,
            remembered=remembered,
        )

    def _opens(self, now: int) -> int:
        fairness = self._config.fairness
        if fairness.since is not None:
            return fairness.since
        return now - (fairness.horizon or DEFAULT_OPENING_SECONDS)

    @property
    def _overlap(self) -> int:
        return self._config.service.overlap

    def _trusted_watermark(self, controller: Controller) -> Watermark | None:
        """Returns the watermark, set back where records may bear earlier times.

        Raises:
            ClockError: the clock has come back by more than clocks may differ.
        """
        with self._store.reading() as view:
            watermark = view.ledger.watermark()
        if watermark is None:
            return None
        looked = after_look(watermark, controller, self._overlap)
        if looked.observed_until < watermark.observed_until:
            self._store.transact(lambda transaction: transaction.ledger.save_watermark(looked))
        check_clock(looked, controller.time)
        return looked

    def _take_in(
        self,
        records: Iterable[JobRecord | Malformed],
        this: _Round,
        reached: int | None,
        *,
        last: bool,
    ) -> Iterator[OpenLedger]:
        """Writes records, some thousand new ones a transaction, and what became of missing runs.

        Args:
            records: as Slurm gives them.
            this: the question that they answer.
            reached: second up to which they are complete; None if they are not.
            last: whether they are all there are up to now.

        Yields:
            the ledger after each transaction.
        """
        chunks = self._chunks(records)
        chunk = next(chunks, [])
        while (following := next(chunks, None)) is not None:  # read before the lock is taken
            yield self._write(this, partial(OpenLedger.ingest, records=chunk, now=this.asked_at))
            chunk = following
        now = self._slurm.controller().time
        missing: list[RunKey] = []

        def write_rest(opened: OpenLedger) -> None:
            opened.ingest(chunk, this.asked_at)
            missing[:] = opened.unmentioned() if last else []

        yield self._write(this, write_rest, now, lambda: None if missing else reached)
        if missing:
            asked = sorted({key.job_id for key in missing})
            answer = list(self._segment.records(self._slurm.records_of(asked)))
            now = self._slurm.controller().time
            yield self._write(
                this,
                lambda opened: opened.settle_unfinished(missing, answer, this.asked_at),
                now,
                lambda: reached,
            )
        if last:
            yield from self._count_processors(this, now)

    def _chunks(
        self, records: Iterable[JobRecord | Malformed]
    ) -> Iterator[list[JobRecord | Malformed]]:
        """Cuts records into lists of as many as are worth a transaction.

        Those that were accounted before cost next to nothing, and those of jobs that wait write
        nothing, so they do not count.
        """
        chunk: list[JobRecord | Malformed] = []
        new = 0
        for some in batches(records, CHUNK // 10):
            chunk += some
            remembered = self._remembered
            unknown = some if remembered is None else remembered.records.new_among(some)
            new += sum(isinstance(one, Malformed) or one.start is not None for one in unknown)
            if new >= CHUNK:
                yield chunk
                chunk, new = [], 0
        if chunk:
            yield chunk

    def _count_processors(self, this: _Round, now: int) -> Iterator[OpenLedger]:
        """Asks Slurm once for each run that it concerns how many processors it holds where.

        A run counts as asked for only when the answer is stored.
        """
        self._asked_to_count &= {run.key for run in this.uncounted}
        asked = [run for run in this.uncounted if run.key not in self._asked_to_count]
        asked = asked[:MOST_COUNTED]
        held = self._slurm.processors_of(asked) if asked else {}
        if held:
            yield self._write(this, partial(OpenLedger.count, held=held), now)
        self._asked_to_count |= {run.key for run in asked}

    def _write(
        self,
        this: _Round,
        work: Callable[[OpenLedger], None],
        now: int | None = None,
        reached: Callable[[], int | None] = lambda: None,
    ) -> OpenLedger:
        """Runs one transaction on the ledger, and returns the ledger as it then stands.

        Args:
            this: the question that is being answered.
            work: what to do; it is repeated, in a transaction of its own, after a failed one.
            now: the controller's clock after the last record was read, if later than asked.
            reached: called at the end: second up to which accounting is complete, if it is.
        """
        try:
            opened = self._transact(this, work, now, reached)
        except _UnheardOfError:
            self.known.read(this.source, this.asked_at)
            opened = self._transact(this, work, now, reached)
        self._log_holders(opened)
        self._log_stay(opened.stay)
        if opened.is_new:
            self._on_opening(Opening.of(opened.watermark.opened, opened.tenures))
        this.uncounted += opened.uncounted()
        this.is_begun = True
        return opened

    def _transact(
        self,
        this: _Round,
        work: Callable[[OpenLedger], None],
        now: int | None,
        reached: Callable[[], int | None],
    ) -> OpenLedger:
        def account(transaction: Transaction) -> OpenLedger:
            remembered, self._remembered = self._remembered, None  # unless this is committed
            opened = self.open(transaction, this.asked_at, this.mentioned, remembered)
            opened.look(this.controller, overlap=self._overlap)
            if not this.is_begun:
                opened.begin_answer()
                opened.enter(self._stay_in_pool(this.asked_at, opened))
                for kind, names in self.known.holders().items():
                    opened.observe_holders(kind, names, this.asked_at)
            work(opened)
            opened.close(now or this.asked_at, observed_until=reached() or 0)
            return opened

        opened = self._store.transact(account)
        self._remembered = opened.remember()
        return opened

    def _stay_in_pool(self, now: int, opened: OpenLedger) -> Stay | None:
        """Returns a stay that begins now, in the pool that the configuration has for us.

        Where no other cluster is in it, it begins with the ledger, whose past is the pool's.
        """
        pool = self._segment.pool
        if pool is None:
            return None
        consortium = self._config.consortium
        alone = len(pool.clusters) == 1
        return Stay(
            pool=pool.name,
            since=opened.watermark.opened if alone else now,
            clusters=self._segment.together,
            stale_after=consortium.stale_after,
            consortium=consortium.name or "",
        )

    def _news_of_holders(self, now: int) -> Holders:
        if self.known.read_at != now:
            raise _UnheardOfError
        return self.known.holders()

    def _log_stay(self, stay: Stay | None) -> None:
        """Logs once, and when it changes, in which pool the cluster is."""
        before, self._stay = self._stay, stay
        if stay != before:
            if stay is None:
                log.info("no longer in a pool")
            else:
                log.info("in a pool", pool=stay.pool, since=clock_time(stay.since))

    def _log_holders(self, opened: OpenLedger) -> None:
        """Logs what has changed hands, and once for whom nothing can count."""
        for sentence in sentences(opened.moves):
            log.info("changed hands", what=sentence)
        names = [organization.name for organization in self._config.organizations]
        without_any = opened.tenures.without_any(names)
        for name in without_any if without_any != self._without_any else ():
            log.warning(holds_nothing(name))
        self._without_any = without_any
