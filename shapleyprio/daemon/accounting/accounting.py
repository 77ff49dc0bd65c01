"""Accounting records into the ledger, exactly once.

The ledger depends on the final records alone: every record is compared with what the store holds
of the same run, the old allocations are subtracted and the new ones added, in one transaction
with the watermark. Reading a record twice, late, corrected or out of order changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from shapleyprio.daemon.accounting.allocating import (
    CorrectedTenures,
    OpenTenures,
    SplitRuns,
)
from shapleyprio.daemon.accounting.cluster_clock import (
    CLOCK_TOLERANCE_SECONDS,
    AccountingError,
    after_look,
    from_the_future,
)
from shapleyprio.daemon.accounting.remembered import Accounted, Remembered, Seal
from shapleyprio.daemon.accounting.tally import Tally
from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.pool import Stay, StayLedger
from shapleyprio.fairness.runs import JobRecord, Run, RunKey, run_of
from shapleyprio.fairness.tenure import Kind, Move, Tenures
from shapleyprio.slurm.port import Controller, Malformed
from shapleyprio.store import AllocatedRun, KeptBack, Transaction, Watermark, batches

CHUNK = 5000


class OpenLedger:
    """The ledger of one cluster, open for changes within one transaction.

    Args:
        transaction: where everything is read from and written to.
        horizon: age in seconds from which a part gains nothing more, None for never.
        opens: second from which parts count, if the store does not hold a ledger yet.
        weight: what counts as a processor.
        sizes: returns node -> its processors, as Slurm has it now.
        ask_holders: says who holds what now, kind -> name -> organization; called at most
            once, when a record names a node or an account that was never heard of.
        mentioned: runs in the answer that is being accounted, if it takes several transactions.
        remembered: the ledger as it was after an earlier transaction; it is reread if it does
            not hold any more. It must not be used again unless this transaction is committed.

    Attributes:
        is_new: whether the store did not hold a ledger yet.
        stay: of the cluster in a pool; None if it is in none.
        started: runs that were not known before.
        runs: that accounting may have news of.
        uncounted: returns runs that were mentioned in this transaction, for which it matters how
            many processors they hold on each node; see `SplitRuns.note_uncounted`.
    """

    def __init__(
        self,
        transaction: Transaction,
        *,
        horizon: int | None,
        opens: int,
        ask_holders: Callable[[], Mapping[Kind, Mapping[str, str]]],
        weight: str = "cpus",
        sizes: Callable[[], Mapping[str, int]] = dict,
        mentioned: set[RunKey] | None = None,
        remembered: Remembered | None = None,
    ) -> None:
        self._transaction = transaction
        self._sizes = sizes
        self._horizon = horizon
        seal = Seal.of(transaction)
        self.is_new = seal.watermark is None
        self.watermark = seal.watermark or Watermark(
            weight=weight,
            observed_until=opens,
            sure_until=opens,
            opened=opens,
            pruned_until=opens,
            horizon=horizon,
        )
        if self.watermark.weight != weight:
            raise AccountingError(
                f"fairness.weight: the store counts in {self.watermark.weight!r}, not {weight!r}; "
                "put the old value back, or give store.url a new database"
            )
        if remembered is None or not remembered.holds(seal, horizon):
            remembered = Remembered.read(transaction, seal, horizon)
        self._remembered = remembered
        self.runs, self._records = remembered.runs, remembered.records
        self._holders = OpenTenures(transaction, remembered, ask_holders)
        self.tenures: Tenures = self._holders.tenures
        self.ledger: StayLedger = remembered.ledger
        self.stay = seal.stay
        self._counts: Counter[str] = Counter()
        self.started: list[Run] = []
        self._last_event = self.watermark.accounted_to
        self._mentioned: set[RunKey] = set() if mentioned is None else mentioned
        self._split = SplitRuns(sizes, self._holders)
        self.uncounted = self._split.uncounted

    @property
    def tally(self) -> Tally:
        """What became of the records since it was opened."""
        return Tally(**self._counts)

    @property
    def moves(self) -> list[Move]:
        """What has changed hands since it was opened."""
        return self._holders.moves

    @property
    def _latest(self) -> int:
        return max(self._last_event, self._holders.latest)

    def look(self, controller: Controller, *, overlap: int) -> None:
        """Takes in what the cluster's clock shows; see `after_look`."""
        self.watermark = after_look(self.watermark, controller, overlap)

    def enter(self, stay: Stay | None) -> None:
        """Takes in which pool the cluster is in.

        Args:
            stay: as the configuration has it now, beginning now, or when the ledger was opened if
                all of that is to count; None for no pool. If the cluster is in that pool already,
                the stay continues.
        """
        before = self.stay
        if stay is None:
            if before is not None:
                self.ledger.earlier = None
                self._transaction.pools.end_stay()
        elif before is not None and before.pool == stay.pool:
            stay = replace(stay, since=before.since)
            if stay != before:
                self._transaction.pools.change_stay(stay)
        else:
            if stay.since <= self.watermark.opened:
                self.ledger.begin_stay(stay.since, with_all=True)
            else:
                stay = replace(stay, since=max(stay.since, self._latest))
                self.ledger.begin_stay(stay.since)
            self._transaction.pools.end_stay()
            self._transaction.pools.change_stay(stay)
        self.stay = stay

    def observe_holders(self, kind: Kind, holders: Mapping[str, str], second: int) -> None:
        """Takes in who holds which node or account from now on; see `OpenTenures.observe`."""
        self._holders.observe(kind, holders, second)

    def correct_holders(
        self, holders: Mapping[Kind, Mapping[str, str]], since: int
    ) -> list[CorrectedTenures]:
        """Makes names their holders' from then on, in the past too; see `OpenTenures.correct`."""
        return self._holders.correct(holders, since, self.watermark.opened)

    def ingest(self, records: Iterable[JobRecord | Malformed], now: int) -> None:
        """Accounts records, in any order, as often as they come.

        Args:
            records: of accounting.
            now: the cluster's clock when they were asked for.
        """
        latest_credible = now + CLOCK_TOLERANCE_SECONDS
        for chunk in batches(records, CHUNK):
            sizes = self._sizes()
            self._records.hold_for(sizes, now)
            self._counts["seen"] += len(chunk)
            runs: dict[RunKey, tuple[JobRecord, Run]] = {}
            aside: list[Malformed] = []
            for record, known in self._records.find(chunk):
                if isinstance(known, JobRecord):
                    self._counts["unstarted"] += 1
                    continue
                if known is not None and self._is_stored(known, runs):
                    continue
                if isinstance(record, Malformed):
                    aside.append(record)
                    continue
                run = run_of(record, sizes)
                if run is None:
                    self._counts["unstarted"] += 1
                    self._records.add_unstarted(record)
                elif run.last_event > latest_credible:
                    aside.append(from_the_future(record, now))
                else:
                    runs[run.key] = record, run
            if aside:
                self._transaction.observed.quarantine(aside, now)
                self._counts["quarantined"] += len(aside)
            self._merge(runs, now)

    def _is_stored(self, accounted: Accounted, runs: dict[RunKey, tuple[JobRecord, Run]]) -> bool:
        """Returns whether what is stored is still what a record says that was accounted.

        Args:
            accounted: what became of it then.
            runs: of records before it, of which one of the same run does not count.
        """
        _, key, placed = accounted
        if self.runs.get(key) is not placed:
            return False
        self._mentioned.add(key)
        runs.pop(key, None)
        return True

    def settle_unfinished(
        self, asked: Sequence[RunKey], answer: Iterable[JobRecord | Malformed], now: int
    ) -> None:
        """Accounts the full answer about jobs whose runs the last window did not mention.

        An unfinished run that accounting does not know of any more is withdrawn, unless a line
        of the answer could not be read.
        """
        quarantined_before = self._counts["quarantined"]
        self.ingest(answer, now)
        if self._counts["quarantined"] == quarantined_before:
            self.withdraw([key for key in asked if key not in self._mentioned])

    def count(self, held: Mapping[RunKey, Mapping[str, int]]) -> None:
        """Splits runs as Slurm says.

        Args:
            held: uncounted run -> node -> processors, as `SplitRuns.counted` has it.
        """
        known = self.runs.known(self._transaction.runs, held.keys())
        self.place_again(
            (stored, run)
            for key, stored in known.items()
            if (run := self._split.counted(stored[0], held[key])) is not None
        )

    def place_again(self, runs: Iterable[tuple[AllocatedRun, Run]]) -> None:
        """Puts runs in the place of stored ones, which have the same keys.

        Args:
            runs: what is stored, and what is to be.
        """
        placed: list[AllocatedRun] = []
        for (_, old), run in runs:
            allocations = self.tenures.allocations(run)
            self.ledger.subtract(old)
            self.ledger.add(allocations)
            placed.append((run, allocations))
        self.runs.put(self._transaction.runs, placed, [run.key for run, _ in placed])

    def withdraw(self, keys: Collection[RunKey]) -> None:
        """Takes runs out of the ledger, as if they had never been."""
        for _, allocations in self.runs.known(self._transaction.runs, keys).values():
            self.ledger.subtract(allocations)
        self.runs.remove(self._transaction.runs, keys)
        self._counts["withdrawn"] += len(keys)

    def unmentioned(self) -> list[RunKey]:
        """Returns the unfinished runs that no record of the answer has mentioned so far."""
        return sorted(self.runs.unfinished(self._transaction.runs) - self._mentioned)

    def begin_answer(self) -> None:
        """Begins with the answer to another question."""
        self._records.begin()

    def end_answer(self) -> None:
        """Forgets what no record of the whole answer was about."""
        self.runs.keep(self._mentioned)

    def remember(self) -> Remembered:
        """Returns the ledger for later transactions, once this one is committed."""
        self._remembered.seal = replace(
            self._remembered.seal, watermark=self.watermark, stay=self.stay
        )
        return self._remembered

    def close(self, now: int, *, observed_until: int) -> int:
        """Folds what has grown older than the horizon and saves ledger and watermark.

        Args:
            now: the cluster's clock after the last record was read.
            observed_until: second up to which accounting was complete.

        Returns:
            t, the time at which the ledger stands: no event lies after it.
        """
        t = max(now, self._latest)
        if self._horizon is not None:
            self._fold(t - self._horizon)
        self.watermark = replace(
            self.watermark,
            observed_until=max(observed_until, self.watermark.observed_until),
            accounted_to=t,
            folded_to=self.ledger.folded_to,
            horizon=self._horizon,
        )
        self._save(self.ledger)
        if self.ledger.earlier is not None:
            self._save(self.ledger.earlier, earlier=True)
        self._transaction.ledger.save_watermark(self.watermark)
        return t

    def set_back(self, now: int) -> None:
        """Closes it at an earlier second than that at which it stands; no run lies after it."""
        self._last_event = now
        observed_until = min(self.watermark.observed_until, now)
        self.watermark = replace(self.watermark, accounted_to=now, observed_until=observed_until)
        self.close(now, observed_until=observed_until)

    def _merge(self, records: Mapping[RunKey, tuple[JobRecord, Run]], now: int) -> None:
        for _, run in records.values():  # first, for news of holders may place known runs again
            self._holders.hear_of(run, now)
        self._mentioned.update(records)  # in place: others go on with this set
        known = self.runs.known(self._transaction.runs, records.keys())
        kept_back = {} if records.keys() <= known.keys() else self._transaction.observed.kept_back()
        changed: list[AllocatedRun] = []
        final: list[tuple[JobRecord, AllocatedRun]] = []
        for key, (record, whole) in records.items():
            old = known.get(key)
            run = self._clipped(self._split.as_before(whole, old and old[0]))
            run = _released(run, old and old[0], kept_back)
            if old is None and run.end is not None and self._may_be_pruned(run, run.end):
                self._counts["late"] += run.end > self.watermark.opened
                continue
            placed = run, self.tenures.allocations(run)
            is_open = self._split.note_uncounted(run, now)
            if old == placed:
                placed = old
            else:
                if old is not None:
                    self.ledger.subtract(old[1])
                else:
                    self.started.append(run)
                self.ledger.add(placed[1])
                self._last_event = max(self._last_event, run.last_event)
                changed.append(placed)
            if not is_open:
                final.append((record, placed))
        self._counts["kept"] += len(changed)
        self.runs.put(self._transaction.runs, changed, known)
        for record, placed in final:
            self._records.add(record, placed[0].key, placed)

    def _may_be_pruned(self, run: Run, end: int) -> bool:
        """Returns whether a finished run that is not stored may have counted before.

        A record may be corrected to a later end. What began before others were pruned has been
        read while these were stored; if it is not stored now, only its start was corrected while
        another run of the job is. A run that was never read while its start was corrected to
        before the pruning looks like one that was pruned: it is late, and is not counted.
        """
        opened, pruned = self.watermark.opened, self.watermark.pruned_until
        if end <= pruned:
            return True
        began_before = run.key.start < pruned and opened < pruned
        return began_before and not self._transaction.runs.has_runs_of(run.key.job_id)

    def _clipped(self, run: Run) -> Run:
        """Returns the run without what was executed before the ledger was opened."""
        opened = self.watermark.opened
        if run.begin >= opened:
            return run
        return replace(
            run,
            begin=opened,
            end=None if run.end is None else max(run.end, opened),
            paused_at=None if run.paused_at is None else max(run.paused_at, opened),
        )

    def _save(self, ledger: Ledger, *, earlier: bool = False) -> None:
        changed = {pair: ledger.entries[pair] for pair in sorted(ledger.changed)}
        self._transaction.ledger.save_entries(changed, earlier=earlier)
        ledger.changed.clear()

    def _fold(self, to: int) -> None:
        low, high = sorted((self.ledger.folded_to, to))
        pruned = self.watermark.pruned_until
        if to < pruned and pruned > self.watermark.opened:
            raise AccountingError(
                f"fairness.horizon: runs that ended before {pruned} are pruned "
                "already, so the horizon cannot be lengthened beyond them now; "
                "put the old value back, or lengthen it step by step as time passes"
            )
        self.ledger.fold(to, self._transaction.runs.allocations_with_event_between(low, high))


def _released(run: Run, old: Run | None, kept_back: Mapping[int, KeptBack]) -> Run:
    """Returns the run with the second from which its job counted, which no record has.

    Args:
        run: of a record.
        old: the same run as it is stored; None if it is new.
        kept_back: the jobs that counted later than Slurm called them eligible.
    """
    if old is not None:
        return replace(run, release=max(run.release, old.release))
    row = kept_back.get(run.key.job_id) or kept_back.get(run.array_job_id)
    return run if row is None else replace(run, release=row.release(run.release, run.key.start))
