"""The cycles of all ledgers of a cluster, run one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import structlog

from shapleyprio.common.wording import DAY, visible
from shapleyprio.daemon.answering.changes import read_changes
from shapleyprio.daemon.pushing.lease import LeaseHeldError
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.daemon.steering.dry_run import DryRun
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.daemon.steering.report import FAILURES, CycleReport, outcome_of
from shapleyprio.slurm.port import AdapterInUse, SlurmError
from shapleyprio.slurm.releases import untested
from shapleyprio.slurm.remembering import SharedReading, Source
from shapleyprio.store import ClusterStore, StoreError

log = structlog.get_logger(__name__)


class LedgerCycles:
    """Runs a cycle of each ledger, and says in log, metrics and systemd's status how it went.

    Args:
        cycles: one for each ledger.
        metrics: of the cluster.
        notify: tells systemd.
        dry_run: shows what cycles found that write nothing into Slurm; None to steer.

    Attributes:
        each: the cycles.
    """

    def __init__(
        self,
        cycles: Sequence[Cycle],
        metrics: Metrics,
        notify: Callable[[str], object],
        dry_run: DryRun | None,
    ) -> None:
        self.each = cycles
        self._metrics = metrics
        self._notify = notify
        self._dry_run = dry_run
        self._slurm_version = ""
        self._adapter: AdapterInUse | None = None

    def run(self) -> tuple[int | None, dict[str, Exception]]:
        """Runs one cycle of each ledger, whatever becomes of the others.

        Returns:
            seconds until the order changes in one of them, None if in none; and ledger -> why its
            cycle failed.

        Raises:
            LeaseHeldError: another process steers the cluster.
        """
        if self._dry_run is not None:
            self._dry_run.begin([cycle.ledger for cycle in self.each])
        reorders: list[int] = []
        failed: dict[str, Exception] = {}
        for cycle, source in self._shared():
            try:
                report = self._run_one(cycle, source)
            except LeaseHeldError:
                raise
            except Exception as failure:  # noqa: BLE001  # who called logs it, or raises it
                failed[cycle.ledger] = failure
                if isinstance(failure, StoreError):
                    self._go_on(cycle, source)
            else:
                reorders += [s for s in [report.seconds_until_reorder] if s is not None]
        if self._dry_run is not None:
            self._dry_run.show()
        return min(reorders, default=None), failed

    def fail(self, failure: Exception, ledger: str) -> None:
        """Says that a ledger's cycle has failed."""
        outcome = outcome_of(failure)
        foreseen = isinstance(failure, tuple(FAILURES))
        log.error(
            "cycle failed",
            **self._naming(ledger),
            outcome=outcome,
            **({"why": str(failure)} if foreseen else {"exc_info": failure}),
        )
        self._metrics.of(ledger).publish_failure(outcome)
        if foreseen:
            self._notify(f"STATUS=cycle failed: {visible(str(failure))}")

    def fail_all(self, failure: Exception) -> None:
        """Says that the cycles of all ledgers have failed."""
        for cycle in self.each:
            self.fail(failure, cycle.ledger)

    def end(self) -> None:
        """Ends what works beside the cycles, and shows no more what was found."""
        for cycle in self.each:
            cycle.end()
            self._metrics.of(cycle.ledger).withdraw()

    def replace(self, cycles: Sequence[Cycle]) -> None:
        """Runs these cycles from now on, and ends what served ledgers that are no more."""
        before, self.each = self.each, cycles
        new = {cycle.ledger: cycle for cycle in cycles}
        self._metrics.withdraw_others(new.keys())
        for cycle in before:
            if cycle.ledger in new:
                new[cycle.ledger].continue_from(cycle)
            else:
                cycle.end()

    def prune(self, until: float) -> None:
        """Prunes the rows of each ledger; begins nothing when the monotonic clock shows `until`."""
        for cycle, source in self._shared():
            try:
                pruned = cycle.prune(source, until=until)
            except tuple(FAILURES) as failure:
                log.error("pruning failed", **self._naming(cycle.ledger), why=str(failure))
            else:
                log.info("pruned", **self._naming(cycle.ledger), runs=pruned)

    def publish_changes(self, store: ClusterStore, patience: int) -> None:
        """Publishes what changed in the last day; if it cannot be read, what is known of it.

        Args:
            store: of the cluster.
            patience: seconds without a cycle that are a change.
        """
        since = int(time.time()) - DAY
        for cycle in self.each:
            with suppress(StoreError), store.ledger(cycle.ledger).reading() as view:
                changes = read_changes(view, since, patience)
                self._metrics.of(cycle.ledger).publish_changes(changes)

    def _naming(self, ledger: str) -> dict[str, str]:
        """Returns what to log of a ledger: nothing where there is one alone."""
        return {"ledger": ledger} if len(self.each) > 1 else {}

    def _go_on(self, cycle: Cycle, source: Source | None) -> None:
        """Steers what it can without the store."""
        try:
            written = cycle.go_on(source)
        except (SlurmError, StoreError) as why:
            log.error("cannot go on without the store", why=str(why))
        else:
            self._metrics.of(cycle.ledger).publish_without_store(written)

    def _shared(self) -> Iterator[tuple[Cycle, Source | None]]:
        """Yields each cycle, and what it shares with the others as long as that is young."""
        reading: SharedReading | None = None
        for cycle in self.each:
            if len(self.each) > 1 and (reading is None or reading.is_old):
                reading = cycle.share()
            yield cycle, reading

    def _run_one(self, cycle: Cycle, source: Source | None) -> CycleReport:
        dry_run = self._dry_run is not None
        report = cycle.run(dry_run=dry_run, source=source)
        self._log_version(report.slurm_version)
        self._log_adapter(report.adapter)
        self._metrics.of(cycle.ledger).publish(report, dry_run=dry_run)
        self._notify(f"STATUS=cycle {report.number}: {report.pushed.applied} written")
        log.info(
            "cycle",
            **self._naming(cycle.ledger),
            number=report.number,
            t=report.t,
            records_read=report.tally.seen,
            runs_new_or_changed=report.tally.kept,
            quarantined=report.tally.quarantined,
            planned=len(report.plan.pushes),
            written=report.pushed.applied,
            touched=report.touched,
            postponed=report.plan.postponed,
            seconds=round(sum(report.seconds.values()), 3),
        )
        if self._dry_run is not None:
            self._dry_run.end(cycle.ledger, report)
        return report

    def _log_version(self, version: str) -> None:
        """Logs which Slurm this is, once and again when it is another one."""
        if version != self._slurm_version:
            self._slurm_version = version
            log.info("Slurm", version=version)
            if reason := untested(version):
                log.warning(f"this release of Slurm {reason}", version=version)

    def _log_adapter(self, adapter: AdapterInUse | None) -> None:
        """Logs that another adapter is used than is preferred, once and again when that changes."""
        if adapter != self._adapter:
            self._adapter = adapter
            if adapter is not None and adapter.why:
                log.warning(
                    "the preferred adapter is not used",
                    adapter=adapter.name,
                    instead_of=adapter.instead_of,
                    why=adapter.why,
                )
