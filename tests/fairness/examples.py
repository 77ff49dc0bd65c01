"""Records, runs and allocations to test with, and the definitions spelled out part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from shapleyprio.fairness.ledger import Ledger, Standing
from shapleyprio.fairness.rule import Contributions, OrganizationState, Situation
from shapleyprio.fairness.runs import JobRecord, Run, RunKey
from shapleyprio.fairness.tenure import NOBODY, Allocation, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

NAMES = ["physics", "biology", NOBODY]
LAST_EVENT = 80
HORIZONS = st.none() | st.integers(1, 60)

ALLOCATIONS = st.builds(
    lambda organization, owner, processors, begin, length: Allocation(
        organization, owner, processors, begin, None if length is None else begin + length
    ),
    st.sampled_from(["physics", "biology", ""]),
    st.sampled_from(["physics", "biology", ""]),
    st.integers(1, 9),
    st.integers(0, 50),
    st.none() | st.integers(0, 30),
)
"""Allocations with no event after second 80."""


def situation_of(
    ledger: Ledger,
    t: int,
    names: Iterable[str] = NAMES,
    *,
    estimated: Contributions | None = None,
) -> Situation:
    """What a rule may go by where no job waits, in no pool."""
    states = tuple(OrganizationState(name=name, processors=0) for name in names)
    situation = Situation(t=t, free=0, organizations=states, estimated=estimated)
    return situation.counted_by(ledger)


def job_record(
    job_id: int = 1,
    *,
    start: int | None,
    end: int | None = None,
    state: str = "COMPLETED",
    elapsed: int | None = None,
    suspended: int = 0,
    submit: int = 0,
    eligible: int | None = None,
    limit: int | None = None,
    account: str = "phys",
    processors: Mapping[str, int] | None = None,
    label: str | None = None,
) -> JobRecord:
    """A record; what was executed follows from the other times where it can."""
    if elapsed is None:
        elapsed = 0 if start is None or end is None else end - start - suspended
    return JobRecord(
        job_id=job_id,
        label=label or str(job_id),
        account=account,
        user="ann",
        partition="batch",
        submit=submit,
        eligible=eligible,
        start=start,
        end=end,
        limit=limit,
        elapsed=elapsed,
        suspended=suspended,
        state=state,
        nodes=("n1",) if processors is None else tuple(processors),
        processors=1 if processors is None else sum(processors.values()),
    )


def a_run(
    begin: int,
    end: int | None,
    processors: Mapping[str, int] | None = None,
    *,
    account: str = "phys",
    partition: str = "",
    job_id: int = 1,
) -> Run:
    return Run(
        key=RunKey(job_id, 0, begin),
        label=str(job_id),
        account=account,
        user="ann",
        partition=partition,
        state="RUNNING" if end is None else "COMPLETED",
        release=0,
        limit=None,
        begin=begin,
        end=end,
        processors={"n1": 1} if processors is None else processors,
    )


def parts_of(begin: int, end: int | None, t: int) -> range:
    """Seconds in which a part was executed and completed by t."""
    return range(begin, t if end is None else min(end, t))


def worth_of_part(second: int, t: int, horizon: int | None) -> int:
    """Eq. 3 for one part, and the horizon: min(t − τ, H)."""
    return t - second if horizon is None else min(t - second, horizon)


def worth_by_parts(begin: int, end: int | None, t: int, horizon: int | None = None) -> int:
    return sum(worth_of_part(second, t, horizon) for second in parts_of(begin, end, t))


def standings_by_parts(
    runs: Iterable[Run],
    holder: Callable[[Kind, str, int], str],
    names: Iterable[str],
    t: int,
    horizon: int | None,
) -> dict[str, Standing]:
    """Part by part: the job's organization gains utility, the processor's owner contribution.

    What was executed for NOBODY's jobs counts for nobody.
    """
    names = list(names)
    contribution, utility, parts = (dict.fromkeys(names, 0) for _ in range(3))
    for run in runs:
        for second in parts_of(run.begin, run.end if run.paused_at is None else run.paused_at, t):
            worth = worth_of_part(second, t, horizon)
            organization = holder("account", run.account, second)
            if organization == NOBODY:
                continue
            for node, processors in run.processors.items():
                owner = holder("node", node, second)
                if owner in contribution:
                    contribution[owner] += processors * worth
                if organization in utility:
                    utility[organization] += processors * worth
                    if horizon is None or t - second <= horizon:
                        parts[organization] += processors
    return {name: Standing(contribution[name], utility[name], parts[name]) for name in names}


def expected_standings(
    allocations: list[Allocation], t: int, horizon: int | None
) -> dict[str, Standing]:
    """Each allocation as a run of one node, whose account and node hold its two names."""
    runs = [
        a_run(p.begin, p.end, {p.owner: p.processors}, account=p.organization) for p in allocations
    ]
    return standings_by_parts(runs, lambda _kind, name, _second: name, NAMES, t, horizon)


def events_between(allocations: Iterable[Allocation], one: int, other: int) -> list[Allocation]:
    """Allocations that begin or end after the earlier and not after the later of two seconds."""
    low, high = sorted((one, other))
    return [
        allocation
        for allocation in allocations
        if low < allocation.begin <= high
        or (allocation.end is not None and low < allocation.end <= high)
    ]


def ledger_of(allocations: Iterable[Allocation], t: int, horizon: int | None = None) -> Ledger:
    """The ledger of these allocations, folded for time t."""
    allocations = list(allocations)
    ledger = Ledger(horizon)
    ledger.add(allocations)
    if horizon is not None:
        ledger.fold(t - horizon, events_between(allocations, 0, t - horizon))
    return ledger
