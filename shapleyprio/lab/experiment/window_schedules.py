"""The schedules of one window under the policies that an experiment names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from shapleyprio.lab.experiment.cells import Row
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.measures.measures import Measures, measure
from shapleyprio.replay.measures.turns.counting import Turns, turns_of
from shapleyprio.replay.policies import (
    ORDERINGS,
    REFERENCE,
    SAMPLED_REFERENCE,
    Estimation,
    policy_named,
    run_policy,
)
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.workload import Workload, with_history

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
