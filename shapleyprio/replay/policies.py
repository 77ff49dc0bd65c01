"""The policies by name, and how each makes a schedule of a workload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from fractions import Fraction
from random import Random
from time import perf_counter

import numpy as np

from shapleyprio.fairness.shapley import shapley
from shapleyprio.replay.kernel import choice, engine, lattice, pipeline, sampling
from shapleyprio.replay.kernel.state import (
    Coalitions,
    Ints,
    Record,
    World,
    coalitions_of,
    jobs_of,
    no_keys,
    record_of,
)
from shapleyprio.replay.kernel.values import value_at
from shapleyprio.replay.kernel.worth import worth
from shapleyprio.replay.limits import PolicyError, check_range, rand_block, ref_block
from shapleyprio.replay.log import UNKNOWN
from shapleyprio.replay.measures import contributed
from shapleyprio.replay.schedule import CoalitionValues, Schedule
from shapleyprio.replay.workload import Workload, parts_of

Progress = Callable[[int], None]
"""Is told the second of the window that was reached."""

POLICIES: Mapping[str, str] = {
    "ref": "exact Shapley values in every coalition (ref:UTILITY for other utilities)",
    "rand": "Shapley values estimated from random orderings",
    "directcontr": "work done on an organization's processors less its own utility",
    "fairshare": "the least processor time for its share",
    "utfairshare": "the least utility for its share",
    "currfairshare": "the fewest processors at work for its share",
    "roundrobin": "the organizations in turn",
    "fcfs": "the earliest release",
    "orig-direct": "CloudShare's directcontr with ψ, the worth of parts by their age",
    "rel-direct": "CloudShare's directcontr with ψ′, by release and age",
    "simpl-direct": "CloudShare's directcontr with ψ″, the number of parts",
    "recorded": "what really happened, according to the log",
}
"""Policy -> what decides who is served next."""

ALONE = {
    "directcontr": choice.DIRECT,
    "orig-direct": choice.DIRECT,
    "rel-direct": choice.RELATIVE,
    "simpl-direct": choice.SURFACE,
    "fairshare": choice.FAIR_SHARE,
    "utfairshare": choice.UTILITY_SHARE,
    "currfairshare": choice.CURRENT_SHARE,
    "roundrobin": choice.ROUND_ROBIN,
    "fcfs": choice.FIRST_COME,
}
"""Policies that look at one schedule alone."""


def run_policy(
    workload: Workload,
    policy: str,
    *,
    seed: int = 0,
    orderings: int = 15,
    cores: int = 1,
    progress: Progress | None = None,
) -> Schedule:
    """The schedule that a policy makes of a workload.

    Args:
        workload: what is to be scheduled.
        policy: one of `POLICIES`, or ``ref:UTILITY`` for one of `shapleyprio.replay.utilities`.
        seed: of all random draws.
        orderings: how many rand draws.
        cores: how many ref may use.
        progress: is told how far the schedule has come.

    Raises:
        PolicyError: there is no such policy, it needs what the log does not tell, or numbers may
            get larger than can be compared exactly.
    """
    check_policy(policy)
    if policy == "recorded":
        return _recorded(workload, seed)
    name, _, utility = policy.partition(":")
    if utility:
        from shapleyprio.replay.arbitrary import ref_for
        from shapleyprio.replay.utilities import utility_named

        return ref_for(workload, utility_named(utility), name=utility, seed=seed, progress=progress)
    check_range(workload)
    tell = progress or (lambda _: None)
    if name == "ref":
        return _ref(workload, seed, cores, tell)
    if name == "rand":
        return _rand(workload, _orderings(workload, orderings, seed), seed, tell)
    return _alone(workload, policy, seed, tell)


def check_policy(policy: str) -> None:
    """Refuses unknown names.

    Raises:
        PolicyError: there is no such policy.
    """
    name, colon, _ = policy.partition(":")
    if name not in POLICIES or (colon and name != "ref"):
        near = get_close_matches(name, POLICIES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"take one of {', '.join(POLICIES)}"
        raise PolicyError(f"unknown policy {policy!r}; {hint}")


def _alone(workload: Workload, policy: str, seed: int, tell: Progress) -> Schedule:
    jobs = jobs_of(workload)
    state = coalitions_of(jobs, workload.owned, np.array([_everybody(workload)]))
    record = record_of(workload, jobs, 0, seed)
    world = World(jobs, state, no_keys(), record)
    seconds = _timed(engine.run(ALONE[policy], world, workload.window.length), tell)
    return _schedule(workload, policy, seed, record, None, seconds)


def _ref(workload: Workload, seed: int, cores: int, tell: Progress) -> Schedule:
    k, length = len(workload.organizations), workload.window.length
    block = ref_block(workload)  # refuses what would need too much memory below
    jobs = jobs_of(workload)
    state = coalitions_of(jobs, workload.owned, np.arange(2**k, dtype=np.int64))
    record = record_of(workload, jobs, _everybody(workload), seed)
    if cores > 1 and k >= pipeline.FEWEST_ORGANIZATIONS:
        steps = pipeline.on_many_cores(jobs, state, record, block, length, cores)
    else:
        steps = lattice.on_one_core(jobs, state, record, block, length)
    seconds = _timed(steps, tell)
    values = _values(state, length)
    schedule = _schedule(workload, "ref", seed, record, shapley(values.tolist()), seconds)
    return replace(schedule, coalitions=CoalitionValues(state.members[1:], values[1:]))


def _rand(workload: Workload, orderings: Ints, seed: int, tell: Progress) -> Schedule:
    length, count = workload.window.length, len(orderings)
    members, weights = sampling.weights_of(orderings)
    jobs = jobs_of(workload)
    state = coalitions_of(jobs, workload.owned, np.append(members, _everybody(workload)))
    record = record_of(workload, jobs, len(members), seed)
    block = rand_block(workload, count)
    keys = sampling.sampled_keys(len(members), len(workload.organizations), count, block)
    seconds = _timed(sampling.run(World(jobs, state, keys, record), weights, length), tell)
    values = _values(state, length)[:-1]
    contribution = tuple(
        Fraction(sum(v * w for v, w in zip(values.tolist(), column, strict=True)), count)
        for column in weights.T.tolist()
    )
    schedule = _schedule(workload, "rand", seed, record, contribution, seconds)
    return replace(schedule, coalitions=CoalitionValues(members, values))


def _timed(steps: Iterator[int], tell: Progress) -> float:
    """Takes all steps and tells of them; the seconds they took, the first, compiling, left out."""
    next(steps)
    began = perf_counter()
    for reached in steps:
        tell(reached)
    return perf_counter() - began


def _orderings(workload: Workload, count: int, seed: int) -> Ints:
    if count < 1:
        raise PolicyError(f"rand with {count} orderings; draw one at least")
    random = Random(seed)  # noqa: S311  # reproducible draws are what is wanted
    organizations = range(len(workload.organizations))
    drawn = [sorted(organizations, key=lambda _: random.random()) for _ in range(count)]
    return np.array(drawn, dtype=np.int64)


def _recorded(workload: Workload, seed: int) -> Schedule:
    if (workload.start == UNKNOWN).all():
        raise PolicyError("recorded: the log does not tell when jobs started; leave it out")
    started = np.flatnonzero((workload.start >= 0) & (workload.start < workload.window.length))
    order = started[np.lexsort((workload.position[started], workload.start[started]))]
    placed = workload.placed
    if placed is None:
        job, owner = order, np.full(len(order), UNKNOWN)
        copies = workload.processors[order]
    else:
        placed = parts_of(placed, order)
        job = np.repeat(order, np.diff(placed.first))
        owner, copies = placed.owners.codes, placed.processors
    schedule = Schedule(
        policy="recorded",
        seed=seed,
        job=job,
        start=workload.start[job],
        owner=owner.astype(np.int32),
        copies=copies,
        contribution=None,
        seconds=0.0,
    )
    if placed is None:
        return schedule
    return replace(schedule, contribution=tuple(map(Fraction, contributed(workload, schedule))))


def _schedule(
    workload: Workload,
    policy: str,
    seed: int,
    record: Record,
    contribution: tuple[Fraction, ...] | None,
    seconds: float,
) -> Schedule:
    size = int(record.size[0])
    if contribution is None:
        contribution = tuple(
            Fraction(int(worth(moments, workload.window.length))) for moments in record.contribution
        )
    return Schedule(
        policy=policy,
        seed=seed,
        job=record.job[:size].astype(np.int64),
        start=record.start[:size],
        owner=record.owner[:size],
        copies=record.copies[:size].astype(np.int64),
        contribution=contribution,
        seconds=seconds,
    )


def _values(state: Coalitions, t: int) -> Ints:
    values = np.zeros(len(state.members), dtype=np.int64)
    value_at(state, t, values)
    return values


def _everybody(workload: Workload) -> int:
    everybody: int = 2 ** len(workload.organizations) - 1
    return everybody
