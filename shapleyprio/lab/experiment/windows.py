"""The cell of most experiments: one window of a log, dealt out once, under every policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from shapleyprio.common.errors import Remedy
from shapleyprio.lab.experiment.cells import ExperimentError, Row
from shapleyprio.lab.experiment.logs import log_of
from shapleyprio.lab.experiment.parameters import CellParameters
from shapleyprio.lab.experiment.window_schedules import WindowSchedules
from shapleyprio.replay.finish_times import finish_times
from shapleyprio.replay.measures.measures import unfairness
from shapleyprio.replay.measures.turns.counting import Turns
from shapleyprio.replay.policies import COMPARED, REFERENCE
from shapleyprio.replay.results import as_float
from shapleyprio.replay.workloads.choices import DEFAULT_WIDE, Shares, Wide
from shapleyprio.replay.workloads.dealing import deal
from shapleyprio.replay.workloads.log import UNKNOWN, Log
from shapleyprio.replay.workloads.workload import Consortium, Window, whole_log, workload_of

MOST_DRAWS = 10_000
"""Number of windows drawn until one has a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCell(CellParameters):
    """One window of a log, its users and processors dealt out, under every policy and `ref`.

    Attributes:
        source: the log's file, or URL of a store.
        log: what the log is called in the results.
        organizations: how many users are dealt out to.
        shares: how processors are dealt out.
        window: the window's number; together with seed, log's name and length it sets where the
            window is, so all shares, deals and numbers of organizations see the same windows,
            unless they are to be contended.
        deal: the deal's number; together with these it sets whose each user is.
    """

    source: str
    log: str
    organizations: int
    shares: Shares
    window: int
    deal: int = 0

    @property
    def name(self) -> str:
        """Unique in an experiment with one seed, one set of policies and one kind of job."""
        kind = f"{self.log}-{self.length}s-{self.organizations}-{self.shares}"
        return f"{kind}-{self.window}-{self.deal}"

    def run(self) -> list[Row]:
        """Returns a row for each policy.

        A schedule that is not available, since numbers may leave the range in which they are exact,
        leaves its values out, and has the reason under `problem` and the code of what mends it
        under `remedy`; without `ref` there is no unfairness.

        Raises:
            ReplayError: the log cannot be read, or has no window as wanted.
        """
        log = log_of(self.source)
        dealt = self._dealt(log)
        whole = whole_log(log).length
        if self.window > 0 and self.length >= whole:
            raise ExperimentError(
                f"{log.source}: jobs were released in {whole} s, so all windows of {self.length} s "
                f"are the same",
                Remedy.FEWER_WINDOWS,
            )
        random = self._random()
        for _ in range(MOST_DRAWS):
            window = window_at_random(log, self.length, dealt, random, wide=self.wide)
            workload = workload_of(
                log, dealt, window=window, wide=self.wide, backfill=self.backfill
            )
            schedules = WindowSchedules(
                log, workload, seed=self._drawn_seed("policy"), estimation=self.estimation
            )
            if self._is_wanted(schedules):
                turns = schedules.turns_under(self.policies)
                return [self._row(schedules, turns, policy) for policy in self.policies]
        raise ExperimentError(
            f"{log.source}: in none of {MOST_DRAWS} windows of {self.length} s drawn is "
            f"{' or '.join(COMPARED)} {self.contended} s away from {REFERENCE}",
            Remedy.LONGER_WINDOW,
        )

    def _is_wanted(self, schedules: WindowSchedules) -> bool:
        fair = schedules.under(REFERENCE)
        if self.contended is None or isinstance(fair, dict):
            return True
        return any(
            isinstance(found, tuple) and unfairness(found[1], fair[1]) >= self.contended
            for found in map(schedules.under, COMPARED)
        )

    def _dealt(self, log: Log) -> Consortium:
        return deal(
            log,
            self.organizations,
            shares=self.shares,
            processors=self.processors,
            seed=self._drawn_seed("deal"),
        )

    def _drawn_seed(self, purpose: str) -> int:
        # random() is the one draw that Python promises never to change
        return int(self._random(purpose, self.deal).random() * 2**53)

    def _random(self, *more: str | int) -> Random:
        of = (self.seed, self.log, self.length, self.window, *more)
        return Random("/".join(map(str, of)))  # noqa: S311  # an experiment, no secret

    def _row(self, schedules: WindowSchedules, turns: Mapping[str, Turns], policy: str) -> Row:
        tried, fair = schedules.under(policy), schedules.under(REFERENCE)
        workload = schedules.workload
        row: Row = {
            "log": self.log,
            "length": self.length,
            "shares": self.shares,
            "organizations": self.organizations,
            "window": self.window,
            "deal": self.deal,
            "start": workload.window.start,
            "jobs": len(workload.job),
            "processors": workload.system_processors,
            "policy": policy,
            "unfairness": None,
            "p_tot": None,
            "contested": None,
            "out_of_turn": None,
            "largest_rho": None,
            "mean_wait": None,
            "utilization": None,
            "decision_seconds": None,
            "problem": None,
            "remedy": None,
        }
        if isinstance(tried, dict):
            return row | tried
        schedule, measures = tried
        row |= {
            "largest_rho": as_float(finish_times(workload, [schedule])[0].largest),
            "mean_wait": float(measures.mean_wait),
            "utilization": float(measures.utilization),
            "decision_seconds": schedule.seconds,
        }
        if isinstance(fair, dict):
            return row | fair
        against = fair[1]
        row |= {"unfairness": float(unfairness(measures, against)), "p_tot": against.p_tot}
        if policy not in turns:
            return row
        found = turns[policy]
        return row | {"contested": found.contested, "out_of_turn": found.out_of_turn}


def window_at_random(
    log: Log, length: int, consortium: Consortium, random: Random, *, wide: Wide = DEFAULT_WIDE
) -> Window:
    """Draws a window in which a job of some organization is released that is not too wide.

    Every second from the log's first release to `length` before its end is equally likely to be
    the start; windows without jobs are redrawn.

    Args:
        log: all jobs.
        length: seconds; a longer one than the log's is the whole log.
        consortium: the jobs' organizations.
        random: to draw with.
        wide: what becomes of jobs of several processors.

    Raises:
        WorkloadError: the log has no jobs.
        ExperimentError: no window with a job was found.
    """
    whole = whole_log(log)
    starts = max(1, whole.length - length + 1)
    fits = (wide == "expand") | (log.processors <= consortium.owned.sum())
    releases = log.release[fits & (consortium.organization != UNKNOWN)]
    for _ in range(MOST_DRAWS):
        start = whole.start + int(random.random() * starts)
        if ((releases >= start) & (releases < start + length)).any():
            return Window(start=start, length=length)
    raise ExperimentError(
        f"{log.source}: none of {MOST_DRAWS} windows of {length} s drawn has a job of any "
        "organization",
        Remedy.LONGER_WINDOW,
    )
