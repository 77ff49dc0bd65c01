"""The cell of most experiments: one window of a log, dealt out once, under every policy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random

from shapleyprio.common.errors import Remedy
from shapleyprio.lab.experiment.cells import CellParameters, ExperimentError, Row
from shapleyprio.lab.experiment.logs import log_of
from shapleyprio.replay.alone import finish_times
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.measures.measures import Measures, measure, unfairness
from shapleyprio.replay.measures.turns import Turns, turns_of
from shapleyprio.replay.policies import (
    COMPARED,
    ORDERINGS,
    REFERENCE,
    SAMPLED_REFERENCE,
    Estimation,
    policy_named,
    run_policy,
)
from shapleyprio.replay.results import as_float
from shapleyprio.replay.workloads.choices import DEFAULT_WIDE, Shares, Wide
from shapleyprio.replay.workloads.dealing import deal
from shapleyprio.replay.workloads.log import UNKNOWN, Log
from shapleyprio.replay.workloads.workload import (
    Consortium,
    Window,
    Workload,
    whole_log,
    with_history,
    workload_of,
)

Tried = tuple[Schedule, Measures] | Row
"""A schedule and its measures; or, as columns of a row, why there is none."""

_RAND = re.compile(rf"{SAMPLED_REFERENCE}-([1-9][0-9]*)")


class WindowSchedules:
    """Schedules the jobs of a window under policies, each once.

    Args:
        log: whose window it is.
        workload: the window's jobs.
        seed: of the policies' random draws.
        estimation: of contributions by shapley and live.
    """

    def __init__(self, log: Log, workload: Workload, *, seed: int, estimation: Estimation) -> None:
        self.workload = workload
        self._log = log
        self._seed = seed
        self._estimation = estimation
        self._tried: dict[str, Tried] = {}

    def under(self, contender: str) -> Tried:
        """Returns what came of a policy.

        Args:
            contender: as for `policy_of`.
        """
        if contender not in self._tried:
            self._tried[contender] = self._run(contender)
        return self._tried[contender]

    def turns_under(self, contenders: Iterable[str]) -> Mapping[str, Turns]:
        """Judges the decisions of those policies that have a schedule.

        Returns:
            Nothing where `ref` has none, or where there are too many jobs and coalitions.
        """
        if isinstance(self.under(REFERENCE), dict):
            return {}
        tried = {contender: self.under(contender) for contender in contenders}
        schedules = {name: one[0] for name, one in tried.items() if isinstance(one, tuple)}
        found = turns_of(self.workload, list(schedules.values()))
        return {} if found is None else dict(zip(schedules, found, strict=True))

    def _run(self, contender: str) -> Tried:
        policy, orderings = policy_of(contender)
        workload = self.workload
        if policy_named(policy).uses_history:
            workload = with_history(workload, self._log)
        try:
            schedule = run_policy(
                workload,
                policy,
                seed=self._seed,
                orderings=orderings,
                estimation=self._estimation,
            )
        except PolicyError as error:
            problem = f"{contender}: {error}"
            return {"problem": problem, "remedy": error.remedy and error.remedy.value}
        return schedule, measure(workload, schedule)


def policy_of(contender: str) -> tuple[str, int]:
    """Returns the policy and the number of orderings that a name of an experiment means.

    >>> policy_of("rand-75"), policy_of("fairshare")
    (('rand', 75), ('fairshare', 15))
    """
    if found := _RAND.fullmatch(contender):
        return SAMPLED_REFERENCE, int(found[1])
    return contender, ORDERINGS


def check_policies(contenders: Iterable[str]) -> None:
    """Refuses unknown names before anything is read.

    Raises:
        PolicyError: there is no such policy.
    """
    for contender in contenders:
        policy_named(policy_of(contender)[0])


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
        return seed_from(self._random(purpose, self.deal))

    def _random(self, *more: str | int) -> Random:
        return seeded(self.seed, self.log, self.length, self.window, *more)

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


def seeded(*parts: str | int) -> Random:
    """Returns a generator whose draws depend on all parts, and on nothing else."""
    return Random("/".join(map(str, parts)))  # noqa: S311  # an experiment, no secret


def seed_from(random: Random) -> int:
    """Draws the seed of another generator."""
    # random() is the one draw that Python promises never to change
    return int(random.random() * 2**53)


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
