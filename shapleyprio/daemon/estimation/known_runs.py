"""The runs of a cluster that the store knows, reread only where they can have changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from shapleyprio.fairness.pool import Stay
from shapleyprio.fairness.runs import RunKey
from shapleyprio.fairness.tenure import NOBODY, Allocation
from shapleyprio.store import AllocatedRun, CapacityRow, View, Watermark


@dataclass(frozen=True, slots=True)
class PastRun:
    """What an estimate needs of a run.

    Attributes:
        job_id: Slurm's own number.
        organization: whose job it was when it began, NOBODY's perhaps.
        user: of the job, in each account apart.
        account: of the job.
        array: number of the array that it is a task of; its own if it is none.
        release: second since which it could have started.
        begin: second at which its first part was executed.
        behind: second after its last part so far, None while it runs.
        ended: whether there will be no more parts.
        limit: its time limit in seconds, None without one.
        processors: that it held when it began.
        partition: where it ran; empty where that is not known.
        nodes: processors that it holds on each of its nodes; empty once it has ended.
        allocations: what it means for whom.
    """

    job_id: int
    organization: str
    user: str
    account: str
    array: int
    release: int
    begin: int
    behind: int | None
    ended: bool
    limit: int | None
    processors: int
    partition: str
    nodes: Mapping[str, int]
    allocations: tuple[Allocation, ...]


class KnownPast:
    """Runs, processors and watermark of a cluster as of one moment, brought up to date cheaply.

    Args:
        since: second; runs that ended before are left out.

    Attributes:
        watermark: of the ledger.
        stay: of the cluster in a pool; None if it is in none.
        capacities: how many processors each organization has brought to which partitions since
            when.
        runs: by key.
        ended: those that have ended, in the order in which this was heard of; it only grows until
            the edition changes.
        edition: counts up when what was known of ended runs holds no more.
    """

    def __init__(self, since: int = 0) -> None:
        self._since = since
        self.watermark: Watermark | None = None
        self.stay: Stay | None = None
        self.capacities: list[CapacityRow] = []
        self.runs: dict[RunKey, PastRun] = {}
        self.ended: list[PastRun] = []
        self.edition = 0
        self._tenures: frozenset[object] = frozenset()
        self._revised = False

    def update(self, view: View, overlap: int) -> None:
        """Takes in what has changed in the store since the last call.

        A record changes a run only if it ended within the overlap that every cycle reads again,
        or was unfinished. A change of holders may concern any, so all are read again.

        Args:
            view: of the cluster.
            overlap: seconds of accounting that every cycle reads again.
        """
        before, self.watermark = self.watermark, view.ledger.watermark()
        self.stay = view.pools.stay()
        self.capacities = view.observed.capacities()
        if self.watermark is None:
            return
        tenures = frozenset(view.ledger.tenures())
        self._revised = False
        since = self._since
        went_on = before is not None and before.accounted_to <= self.watermark.accounted_to
        if before is not None and went_on and tenures == self._tenures:
            since = before.complete_until - overlap - 1
        else:
            self.runs.clear()
            self._revised = True
        self._tenures = tenures
        open_before = [key for key, run in self.runs.items() if not run.ended]
        for key in open_before:
            del self.runs[key]
        self._take(view.runs.runs_alive_after(since))
        self._take(view.runs.known([key for key in open_before if key not in self.runs]).values())
        pruned_until = self.watermark.pruned_until
        if pruned_until > self.watermark.opened and (
            before is None or pruned_until != before.pruned_until
        ):
            self.runs = {
                key: run
                for key, run in self.runs.items()
                if not run.ended or run.behind is None or run.behind > pruned_until
            }
            self._revised = True
        if self._revised:
            self.edition += 1
            self.ended = [run for run in self.runs.values() if run.ended]

    @property
    def unfinished(self) -> Iterator[PastRun]:
        """The runs that have not ended."""
        return (run for run in self.runs.values() if not run.ended)

    @property
    def begin(self) -> int:
        """The first second for which all runs are known and count in the cluster's pool."""
        assert self.watermark is not None, "nothing is known before the first cycle"
        known = max(self.watermark.opened, self.watermark.pruned_until)
        return known if self.stay is None else max(known, self.stay.since)

    def _take(self, placed: Iterable[AllocatedRun]) -> None:
        for run, allocations in placed:
            behind = run.end if run.paused_at is None else run.paused_at
            known = self.runs.get(run.key)
            found = PastRun(
                job_id=run.key.job_id,
                organization=allocations[0].organization if allocations else NOBODY,
                user=user_in_account(run.user, run.account),
                account=run.account,
                array=run.array_job_id,
                release=min(run.release, run.begin),
                begin=run.begin,
                behind=behind,
                ended=run.end is not None,
                limit=run.limit,
                processors=sum(run.processors.values()),
                partition=run.partition,
                nodes=run.processors if run.end is None else {},
                allocations=allocations,
            )
            if found == known:
                continue
            self.runs[run.key] = found
            if found.ended:
                self.ended.append(found)
            self._revised |= known is not None  # one that had ended has changed


def user_in_account(user: str, account: str) -> str:
    """Names whose jobs are expected to last alike: those of a user in one account."""
    return f"{user} in {account}"
