"""An audit: the recorded schedule of a workload against what would have been fair."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shapleyprio.common.errors import Remedy, ReplayError
from shapleyprio.replay.alone import with_singles
from shapleyprio.replay.audit.defaults import MOST_FOR_ALL, PERIOD
from shapleyprio.replay.audit.going_first import GoingFirst, going_first
from shapleyprio.replay.audit.guarantees import Guarantees, guarantees_under
from shapleyprio.replay.audit.over_time import Period, periods
from shapleyprio.replay.audit.stability import Stability, stability
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.measures.series import executed_where
from shapleyprio.replay.policies import (
    COMPARED,
    ORDERINGS,
    RECORDED,
    REFERENCE,
    SAMPLED_REFERENCE,
    guarantee_in,
    guaranteed,
    run_policy,
)
from shapleyprio.replay.progress import ProgressCallback
from shapleyprio.replay.results import Result, results_of
from shapleyprio.replay.workloads.choices import DEFAULT_SEED
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessed:
    """A schedule held against the fair one and against being alone.

    Attributes:
        result: its measures and drifts against the reference.
        stability: who would have left.
    """

    result: Result
    stability: Stability

    @property
    def delays(self) -> tuple[Fraction, ...]:
        """Seconds by which each organization was late (ahead, if negative): drifts, negated."""
        return tuple(-drift for drift in self.result.drifts or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit found out.

    Attributes:
        workload: that was audited.
        orderings: from how many random orderings coalitions were sampled; None if all count.
        schedules: recorded, the reference, and the others.
        carried: processor-seconds of X's jobs (rows) on Y's processors (columns, the last one
            nobody's) in the recorded schedule; None if owners are not known.
        periods: use and contribution in the recorded schedule.
        unknown_starts: jobs whose start the log does not have; they count as not started.
        going_first: members that bring next to nothing and whose jobs always go first.
        guarantees: schedule -> what became of the guarantees of each organization; those of the
            recorded schedule and of policies that keep them, empty if none were to be judged.
    """

    workload: Workload
    orderings: int | None
    schedules: tuple[Assessed, ...]
    carried: tuple[tuple[int, ...], ...] | None
    periods: tuple[Period, ...]
    unknown_starts: int
    going_first: tuple[GoingFirst, ...]
    guarantees: Mapping[str, tuple[Guarantees, ...]]

    @property
    def recorded(self) -> Assessed:
        """What happened."""
        return self.schedules[0]

    @property
    def reference(self) -> Assessed:
        """The schedule that counts as fair: Ref's, or Rand's where coalitions were sampled."""
        return self.schedules[1]

    def of_unions(self, seconds: Sequence[Fraction]) -> dict[str, Fraction]:
        """Returns the parent of each union -> the sum of what its members have."""
        names, parents = self.workload.organizations, self.workload.parents
        found = dict.fromkeys(parents.values(), Fraction(0))
        for name, its in zip(names, seconds, strict=True):
            if (head := parents.get(name, name)) in found:
                found[head] += its
        return found

    @property
    def latest(self) -> tuple[int, Fraction]:
        """The organization that was latest in the recorded schedule, and its delay."""
        delays = self.recorded.delays
        u = max(range(len(delays)), key=delays.__getitem__)
        return u, delays[u]


def audit(
    workload: Workload,
    *,
    orderings: int | None = None,
    compared: Sequence[str] = COMPARED,
    guarantee: str | None = None,
    period: int = PERIOD,
    seed: int = DEFAULT_SEED,
    cores: int = 1,
    bar: Callable[[str], ProgressCallback | None] = lambda _: None,
) -> Audit:
    """Holds the recorded schedule of a workload against Ref's and those of other policies.

    Args:
        workload: with the recorded starts.
        orderings: random orderings from which to sample coalitions, with Rand as the reference;
            None for all coalitions, or `ORDERINGS` with more than `MOST_FOR_ALL` organizations.
        compared: policies that are held against the reference, too.
        guarantee: that is judged, and with which the policies are compared as well, such as 4h;
            None for none.
        period: seconds of each period.
        seed: of all random draws.
        cores: how many Ref may use.
        bar: policy -> what shows how far its schedule has come.

    Raises:
        ReplayError: the log does not say when jobs started, that is no guarantee, or numbers get
            too large.
    """
    if (workload.start == UNKNOWN).all():
        raise ReplayError(
            "the log does not say when jobs started, which an audit needs",
            Remedy.NO_STARTS_NEEDED,
        )
    if orderings is None and len(workload.organizations) > MOST_FOR_ALL:
        orderings = ORDERINGS
    recorded = run_policy(workload, RECORDED)
    found = periods(workload, recorded, period)

    def run(policy: str) -> Schedule:
        return run_policy(
            workload,
            policy,
            seed=seed,
            orderings=orderings or ORDERINGS,
            cores=cores,
            progress=bar(policy),
        )

    fair = run(REFERENCE if orderings is None else SAMPLED_REFERENCE)
    others = list(map(run, guaranteed(compared, guarantee)))
    known = recorded.contribution is not None
    judged = None if guarantee is None else guarantee_in(guarantee)
    return Audit(
        workload=workload,
        orderings=orderings,
        schedules=_assessed(workload, [recorded, fair, *others], fair),
        carried=executed_where(workload, recorded) if known else None,
        periods=found,
        unknown_starts=int(np.count_nonzero(workload.start == UNKNOWN)),
        going_first=going_first(workload),
        guarantees={}
        if judged is None
        else guarantees_under(
            workload,
            [recorded, *(one for one in others if "@" in one.policy)],
            judged.wait,
        ),
    )


def _assessed(
    workload: Workload, schedules: Sequence[Schedule], reference: Schedule
) -> tuple[Assessed, ...]:
    assert reference.coalitions is not None
    values = with_singles(workload, reference.coalitions)
    results = results_of(workload, schedules, reference.policy)
    fair = next(result.measures for result in results if result.schedule is reference)
    return tuple(
        Assessed(result=result, stability=stability(values, result.measures, fair))
        for result in results
    )
