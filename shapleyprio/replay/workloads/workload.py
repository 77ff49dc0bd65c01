"""The workload that policies schedule: some organizations' jobs in a window of a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from shapleyprio.common.errors import Remedy
from shapleyprio.common.wording import dates, duration, whole
from shapleyprio.fairness.shapley import unions_of
from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.workloads.bays import Bays, Nodes
from shapleyprio.replay.workloads.choices import (
    DEFAULT_BACKFILL,
    DEFAULT_WIDE,
    Backfill,
    Placement,
    Wide,
)
from shapleyprio.replay.workloads.log import COLUMNS, UNKNOWN, Labels, Log, RecordedProcessors


@dataclass(frozen=True, slots=True, kw_only=True)
class Consortium:
    """Who owns how many processors, and whose every job of a log is.

    Attributes:
        organizations: names; ties go to the one that comes first.
        owned: int64[organizations], processors each brings.
        parents: organization -> its parent, of those that have one.
        organization: int32[jobs of the log], index of its organization; UNKNOWN if it has none.
        placed: whose processors each job of the log really got, with owners named as in
            organizations; None where the log does not say.
        nodes: whose they are; None where the log does not name them, or they do not matter.
        clusters: what each cluster of a pool adds, with all organizations, in the log's order;
            `nodes` are there alone. Empty for a log of one cluster.
    """

    organizations: tuple[str, ...]
    owned: NDArray[np.int64]
    organization: NDArray[np.int32]
    parents: Mapping[str, str] = field(default_factory=dict)
    placed: RecordedProcessors | None = None
    nodes: Nodes | None = None
    clusters: tuple[Consortium, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A stretch of a log: jobs released in [start, start + length), in the log's seconds."""

    start: int
    length: int

    def includes(self, release: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns which of the releases are in the window."""
        return (release >= self.start) & (release < self.start + self.length)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserHistory:
    """Whose the jobs of a workload are, and what was known of the users when the window began.

    Attributes:
        user: int64[jobs of the workload], code of each job's user; UNKNOWN where not known.
        past_user, past_limit, past_processors, past_processing_time: int64[n], of the jobs of the
            log that had ended by the window's begin, the last to end at the end.
    """

    user: NDArray[np.int64]
    past_user: NDArray[np.int64]
    past_limit: NDArray[np.int64]
    past_processors: NDArray[np.int64]
    past_processing_time: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Jobs of organizations, rebased to a window that begins at 0 with an empty system.

    The columns have one entry for each job, sorted by organization, release and position in the
    log: within an organization jobs start in this order.

    Attributes:
        organizations, owned, parents: as in Consortium.
        unions: number of each organization's union, in the order in which they are listed; None
            if all stand alone, or all together, which is the same.
        window: in the log's seconds.
        job: int64, the log's number of the job.
        organization: int32, index into organizations.
        release: int64, from 0 on and before window.length.
        processing_time, processors: int64, above 0.
        limit: int64, requested processing time; UNKNOWN in a workload not of a log.
        start: int64, when it really started, rebased; UNKNOWN where the log does not say.
        position: int64, its place in the log.
        placed: whose processors each job really got; None where the log does not say.
        wide: "expand": a job of q processors is q sequential copies; "rigid": it needs all q at
            once.
        backfill: what happens behind a job that needs more processors than are free: "none":
            everything waits for it; "easy": heads of other organizations may start that do not
            delay it. Without meaning when wide is "expand".
        placement: whose free processors a job gets: "random": each as likely as any other, as in
            the papers; "least-loaded": those of the one with the most free, ties to the one
            listed first, as Slurm's CR_LLN has it with one node for each organization; "recorded":
            those it really got (`placed`) as far as they are free, else as with "least-loaded".
        left_out: reason -> how many jobs of the log are missing because of it.
        horizon: age in seconds from which a part gains no more worth; None for never.
        history: what predictions of processing times may rely on; None where nothing is.
        bays: which processors each job may have; None if all.
    """

    organizations: tuple[str, ...]
    owned: NDArray[np.int64]
    window: Window
    job: NDArray[np.int64]
    organization: NDArray[np.int32]
    release: NDArray[np.int64]
    processing_time: NDArray[np.int64]
    processors: NDArray[np.int64]
    limit: NDArray[np.int64]
    start: NDArray[np.int64]
    position: NDArray[np.int64]
    unions: tuple[int, ...] | None = None
    parents: Mapping[str, str] = field(default_factory=dict)
    placed: RecordedProcessors | None = None
    wide: Wide = DEFAULT_WIDE
    backfill: Backfill = DEFAULT_BACKFILL
    placement: Placement = "random"
    left_out: Mapping[str, int] = field(default_factory=dict)
    horizon: int | None = None
    history: UserHistory | None = None
    bays: Bays | None = None

    @property
    def system_processors(self) -> int:
        """All processors of all organizations."""
        return int(self.owned.sum())

    @property
    def saturation(self) -> int | None:
        """The horizon, if a part can come to be older within the window; else None."""
        horizon = self.horizon
        return horizon if horizon is not None and horizon < self.window.length else None

    @property
    def estimate(self) -> NDArray[np.int64]:
        """int64[jobs], the processing times that backfilling expects: limits, where there are."""
        return np.where(self.limit == UNKNOWN, self.processing_time, self.limit)

    @property
    def left_out_in_words(self) -> str:
        """How many jobs of the log are missing and why; empty if none is."""
        reasons = self.left_out.items()
        return ", ".join(f"{whole(count)} {why.replace('_', ' ')}" for why, count in reasons)


def whole_log(log: Log) -> Window:
    """Returns the log's own window, else that from the first release to just after the last.

    Raises:
        WorkloadError: the log has no jobs.
    """
    if len(log.release) == 0:
        raise WorkloadError(f"{log.source}: no job with a known processing time; nothing to replay")
    if log.window is not None:
        begin, end = log.window
        return Window(start=begin, length=end - begin)
    first = int(log.release.min())
    return Window(start=first, length=int(log.release.max()) + 1 - first)


def period_in_words(log: Log, window: Window) -> str:
    """Returns when a window was, for after a verb: in dates, where the log has them.

    Without dates it counts from the log's first release, as options do.
    """
    if log.epoch is not None:
        begin = log.epoch + window.start
        return f"from {dates(begin, begin + window.length)}"
    first = window.start - int(log.release.min())
    return f"in {duration(window.length)} from second {whole(first)} on"


def workload_of(
    log: Log,
    consortium: Consortium,
    *,
    window: Window | None = None,
    wide: Wide = DEFAULT_WIDE,
    backfill: Backfill = DEFAULT_BACKFILL,
    horizon: int | None = None,
) -> Workload:
    """Takes the jobs of a window out of a log.

    Args:
        log: all jobs.
        consortium: whose they are.
        window: the stretch to take; None for the whole log.
        wide: what becomes of jobs that need several processors.
        backfill: what may pass a rigid job that does not fit.
        horizon: age in seconds from which a part gains no more worth; None for never.

    Raises:
        WorkloadError: nothing is left, or there are no processors.
    """
    window = window or whole_log(log)
    inside = window.includes(log.release)
    owned_by_somebody = consortium.organization != UNKNOWN
    total = int(consortium.owned.sum())
    fits = log.processors <= total if wide == "rigid" else np.ones(len(log.job), dtype=bool)
    taken = np.flatnonzero(inside & owned_by_somebody & fits)
    if total == 0:
        raise WorkloadError(
            "no organization has processors; give it partitions, nodes or `processors = N`"
        )
    if len(taken) == 0:
        raise WorkloadError(
            f"no job of any organization was released {period_in_words(log, window)}; the log's "
            f"jobs were released {period_in_words(log, whole_log(log))}",
            Remedy.OTHER_WINDOW,
        )
    order = taken[np.lexsort((taken, log.release[taken], consortium.organization[taken]))]
    left_out = {
        **log.left_out,
        "no_organization": int((inside & ~owned_by_somebody).sum()),
        "too_wide": int((inside & owned_by_somebody & ~fits).sum()),
    }
    start = log.start[order]
    return Workload(
        organizations=consortium.organizations,
        owned=consortium.owned,
        window=window,
        job=log.job[order],
        organization=consortium.organization[order],
        release=log.release[order] - window.start,
        processing_time=log.processing_time[order],
        processors=log.processors[order],
        limit=log.limit[order],
        start=np.where(start == UNKNOWN, UNKNOWN, start - window.start),
        position=order.astype(np.int64),
        unions=unions_of(consortium.organizations, consortium.parents),
        parents=consortium.parents,
        placed=None if consortium.placed is None else parts_of(consortium.placed, order),
        wide=wide,
        backfill=backfill,
        left_out={reason: count for reason, count in left_out.items() if count},
        horizon=horizon,
    )


def jobs_of(workload: Workload, jobs: NDArray[np.int64]) -> Workload:
    """Returns some jobs of a workload, by indices, in that order; any index may come often."""
    placed, history, bays = workload.placed, workload.history, workload.bays
    return replace(
        workload,
        placed=None if placed is None else parts_of(placed, jobs),
        history=None if history is None else replace(history, user=history.user[jobs]),
        bays=None if bays is None else bays.of_jobs(jobs),
        **{name: getattr(workload, name)[jobs] for name in (*COLUMNS, "organization", "position")},
    )


def with_history(workload: Workload, log: Log) -> Workload:
    """Adds what is known of users, as far as the log names them.

    It is as long as the log before the window, and only policies that predict make use of it.

    Args:
        workload: taken out of the log.
        log: all jobs.
    """
    if "user" not in log.labels:
        return workload
    user = log.labels["user"].codes
    end = log.start + log.processing_time
    known = (log.start != UNKNOWN) & (user != UNKNOWN)
    past = np.flatnonzero(known & (end <= workload.window.start))
    past = past[np.argsort(end[past], kind="stable")]
    history = UserHistory(
        user=user[workload.position].astype(np.int64),
        past_user=user[past].astype(np.int64),
        past_limit=log.limit[past],
        past_processors=log.processors[past],
        past_processing_time=log.processing_time[past],
    )
    return replace(workload, history=history)


def parts_of(placed: RecordedProcessors, jobs: NDArray[np.int64]) -> RecordedProcessors:
    """Returns the parts of some jobs, by indices, in that order; any index may come often."""
    counts = np.diff(placed.first)[jobs]
    first = np.concatenate(([0], np.cumsum(counts)))
    parts = np.arange(first[-1]) + np.repeat(placed.first[:-1][jobs] - first[:-1], counts)
    owners = Labels(placed.owners.codes[parts], placed.owners.names)
    return RecordedProcessors(first, owners, placed.processors[parts])
