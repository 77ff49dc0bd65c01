"""Policies in Python, which order organizations: functions of users, and the daemon's own rules.

A function gets a `Situation` at each moment at which a processor is free and several
organizations wait. It returns the organizations that wait, all of them, in the order in
which they are served at this moment: the jobs of the first one start as long as processors are
free, then those of the second one, and so on. Everything else is as for the other policies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from shapleyprio.fairness.rule import Contributions, OrganizationState, RankingRule, Situation
from shapleyprio.fairness.worth import Trajectory
from shapleyprio.replay.coalitions.estimate import Estimator
from shapleyprio.replay.coalitions.knowledge import Knowledge, predictor_named
from shapleyprio.replay.engine import engine
from shapleyprio.replay.engine.codes import RANKED
from shapleyprio.replay.engine.engine import exact_moments, exact_worths, older_moments
from shapleyprio.replay.engine.keys import Block, Ints, keys_of
from shapleyprio.replay.engine.limits import check_range
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.engine.state import World, pieces_of
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.native import packed
from shapleyprio.replay.policies.one_schedule import one_world, schedule_of, timed
from shapleyprio.replay.policies.policy import RunOptions, complaint
from shapleyprio.replay.workloads.workload import Workload

OwnPolicy = Callable[[Situation], Iterable[OrganizationState]]
"""Returns the organizations that wait in the order in which they are served."""


def own_decisions(
    workload: Workload, policy: str, function: OwnPolicy, options: RunOptions
) -> Schedule:
    """Returns the schedule of a user's policy.

    Args:
        workload: what is to be scheduled.
        policy: its name.
        function: decides.
        options: how it is run.

    Raises:
        PolicyError: the function fails or does not return an order of the organizations that
            wait, or numbers may get larger than can be compared exactly.
    """

    def ranks(situation: Situation) -> list[int]:
        return _ranks(policy, function, situation)

    return _schedule(workload, policy, ranks, options)


def rule_decisions(
    workload: Workload, policy: str, rule: RankingRule, options: RunOptions
) -> Schedule:
    """Returns the schedule of a rule of the daemon, which ranks again at each choice.

    A rule that asks for estimates gets them as the policy `live` does.

    Args:
        workload: what is to be scheduled.
        policy: its name.
        rule: decides.
        options: how it is run.

    Raises:
        PolicyError: there is no such predictor, or numbers may get larger than can be compared
            exactly.
    """

    def ranks(situation: Situation) -> list[int]:
        ranking = replace(rule.rank(situation), unions=workload.unions)
        rank = {name: number for number, name in enumerate(ranking.order)}
        return [rank[item.name] for item in situation.organizations]

    estimates = _Estimates(workload, options) if rule.estimates else None
    return _schedule(workload, policy, ranks, options, estimates)


class _Estimates:
    """Contributions from what is known at each moment, recomputed every now and then."""

    def __init__(self, workload: Workload, options: RunOptions) -> None:
        estimation = options.estimation
        self._names = workload.organizations
        self._recompute = estimation.recompute
        self._estimator = Estimator(
            budget=estimation.coalitions, seed=options.seed, cores=options.cores
        )
        self._knowledge = Knowledge(workload, predictor_named(estimation.predictor))
        self._found: Contributions | None = None

    def at(self, world: World, t: int) -> Contributions:
        """Returns contributions that are good at t."""
        if self._found is None or t >= self._found.t + self._recompute:
            estimate = self._estimator.estimate(self._knowledge.game(world.record, t))
            self._found = Contributions(
                t=t,
                trajectories={
                    name: Trajectory(*numerators, estimate.denominator)
                    for name, numerators in zip(self._names, estimate.numerators, strict=True)
                },
            )
        return self._found


def _schedule(
    workload: Workload,
    policy: str,
    ranks: Callable[[Situation], list[int]],
    options: RunOptions,
    estimates: _Estimates | None = None,
) -> Schedule:
    wide = check_range(workload)
    # the engine serves the least key: the organization's rank, the utility not being added
    keys = keys_of(
        rows=len(workload.organizations),
        coalitions=1,
        block=Block(1, wide),
        lattice=False,
    )
    keys.factor[:] = 0
    world = one_world(workload, keys, options.seed, wide=wide, guarantee=options.guarantee)
    world = packed(world)
    steps = _steps(workload, world, ranks, estimates)
    seconds = timed(steps, options.progress)
    return schedule_of(workload, policy, options.seed, world.state, world.record, seconds)


def _steps(
    workload: Workload,
    world: World,
    ranks: Callable[[Situation], list[int]],
    estimates: _Estimates | None,
) -> Iterator[int]:
    """Brings the schedule to the window's end; yields as `engine.run`."""
    keys = world.keys
    for until in pieces_of(workload.window.length):
        while not engine.advance_first(RANKED, world, until):  # it stopped to choose
            t = int(world.state.now[0])
            estimated = None if estimates is None else estimates.at(world, t)
            keys.rows[:, 0] = ranks(_situation(workload.organizations, world, t, estimated))
            keys.begin[:2] = t, 1
            engine.advance_first(RANKED, world, t + 1)
            keys.begin[1] = 0
        yield until


def _situation(
    names: tuple[str, ...], world: World, t: int, estimated: Contributions | None
) -> Situation:
    jobs, state, record = world.jobs, world.state, world.record
    past, organizations = state.past, []
    got = _trajectories(state.utility[0], older_moments(state), t)
    given = _trajectories(record.contribution, past.contribution, t)
    for u, name in enumerate(names):
        own = exact_moments(state.utility[0, u])
        waiting = int(state.demand_of[0, u])
        organizations.append(
            OrganizationState(
                name=name,
                processors=int(record.owned[u]),
                given=given[u],
                got=got[u],
                parts=own.parts(t),
                running=own.processors,
                waiting=waiting,
                release=int(jobs.release[state.head[0, u]]) if waiting else None,
            )
        )
    return Situation(
        t=t, free=int(state.free[0]), organizations=tuple(organizations), estimated=estimated
    )


def _trajectories(moments: Ints, older: Ints, t: int) -> list[Trajectory]:
    """Returns worths at t and later; the arguments are those of `exact_worths`."""
    found = []
    for u, worth in enumerate(exact_worths(moments, older, t)):
        total = exact_moments(moments[u])
        rate, acceleration = total.parts(t), total.processors
        if len(older):
            saturated = exact_moments(older[u])
            rate, acceleration = rate - saturated.parts(t), acceleration - saturated.processors
        found.append(Trajectory(worth, rate, acceleration))
    return found


def _ranks(policy: str, function: OwnPolicy, situation: Situation) -> list[int]:
    """Returns each organization's rank; that of those without waiting jobs is not read."""
    try:
        order = list(function(situation))
    except Exception as error:
        raise PolicyError(
            f"policy {policy!r} failed at second {situation.t}: {complaint(error)}"
        ) from error
    names = [item.name for item in order if isinstance(item, OrganizationState)]
    if len(names) != len(order) or sorted(names) != sorted(item.name for item in situation.waiting):
        raise PolicyError(
            f"policy {policy!r} did not return an order of state.waiting at second {situation.t}; "
            "it must return each of these organizations once, the next one to serve first"
        )
    rank = {name: number for number, name in enumerate(names)}
    return [rank.get(item.name, len(rank)) for item in situation.organizations]
