"""An audit: the recorded schedule against what would have been fair, and use as time went by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shapleyprio.common.errors import Remedy, ReplayError
from shapleyprio.replay.alone import with_singles
from shapleyprio.replay.audit.guarantees import Guarantees, guarantees_under
from shapleyprio.replay.audit.stability import GoingFirst, Stability, going_first, stability
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.measures.series import Rows, executed_where, series_of
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
from shapleyprio.replay.workloads.choices import DEFAULT_SEED, MOST_FOR_ALL, PERIOD
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload

MOST_PERIODS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A stretch of the window; one entry of each tuple for each organization.

    Attributes:
        start, end: seconds from the window's begin.
        used: processor-seconds that its jobs executed in the period.
        contributed: processor-seconds executed on its processors, whoever's jobs they were.
        utilities: ψ at the period's end, of all since the window's begin, in part-seconds.
        contributions: φ̃ at the period's end, likewise.

    `contributed` and `contributions` are None if owners are not known.
    """

    start: int
    end: int
    used: tuple[int, ...]
    contributed: tuple[int, ...] | None
    utilities: tuple[int, ...]
    contributions: tuple[int, ...] | None

    @property
    def lent(self) -> tuple[int, ...] | None:
        """Processor-seconds contributed less used; None if owners are not known."""
        if self.contributed is None:
            return None
        return tuple(
            contributed - used
            for contributed, used in zip(self.contributed, self.used, strict=True)
        )


def periods(workload: Workload, schedule: Schedule, seconds: int) -> tuple[Period, ...]:
    """Returns what everybody used and contributed in each period from the window's begin on.

    Args:
        workload: what was scheduled.
        schedule: of it; starts lie in the window.
        seconds: of each period; the last one ends with the window.

    Raises:
        ReplayError: there would be more than `MOST_PERIODS`.
    """
    length = workload.window.length
    if -(-length // seconds) > MOST_PERIODS:
        raise ReplayError(
            f"{-(-length // seconds)} periods of {seconds} s in the window; an audit takes "
            f"{MOST_PERIODS} at most",
            Remedy.PERIOD_AT_LEAST,
            bound=-(-length // MOST_PERIODS),
        )
    ends = (*range(seconds, length, seconds), length)
    found = series_of(workload, schedule, ends)
    unknown = [None] * len(ends)
    return tuple(
        Period(
            start=start,
            end=end,
            used=used,
            contributed=contributed,
            utilities=utilities,
            contributions=contributions,
        )
        for start, end, used, contributed, utilities, contributions in zip(
            (0, *ends[:-1]),
            ends,
            _growth(found.parts),
            unknown if found.contributed is None else _growth(found.contributed),
            zip(*found.utilities, strict=True),
            unknown if found.contributions is None else zip(*found.contributions, strict=True),
            strict=True,
        )
    )


def _growth(rows: Rows) -> Iterator[tuple[int, ...]]:
    """Yields by how much the number of each organization grew until each moment since the last."""
    before = (0,) * len(rows)
    for now in zip(*rows, strict=True):
        yield tuple(new - old for new, old in zip(now, before, strict=True))
        before = now


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
