"""Policies of users: a Python function orders the organizations that wait.

The function gets a `ScheduleState` at each moment at which a processor is free and several
organizations wait. It returns the organizations that wait, all of them, in the order in
which they are served at this moment: the jobs of the first one start as long as processors are
free, then those of the second one, and so on. Everything else is as for the other policies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from shapleyprio.replay.engine import engine
from shapleyprio.replay.engine.codes import RANKED
from shapleyprio.replay.engine.keys import Block, keys_of
from shapleyprio.replay.engine.limits import check_range
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.engine.state import World, pieces_of
from shapleyprio.replay.engine.values import exact_moments, exact_worths
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.native import packed
from shapleyprio.replay.policies.loading import complaint
from shapleyprio.replay.policies.one_schedule import one_world, schedule_of, timed
from shapleyprio.replay.policies.policy import RunOptions
from shapleyprio.replay.workloads.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationState:
    """An organization at a moment of a schedule.

    Attributes:
        name: its name.
        processors: how many it brings.
        utility: ψ, the worth of what its jobs have executed, in part-seconds.
        contribution: φ̃, the worth of what its processors have executed, in part-seconds.
        parts: processor-seconds that its jobs have executed.
        running: processors that work for it.
        waiting: processors that its waiting jobs ask for; 0 if none waits.
        release: second in which its first waiting job was released; None if none waits.
    """

    name: str
    processors: int
    utility: int
    contribution: int
    parts: int
    running: int
    waiting: int
    release: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleState:
    """A schedule at a moment, after what ends and what is released there.

    Attributes:
        t: seconds from the window's begin.
        free: processors that are free.
        organizations: all of them, in the order of the configuration.
    """

    t: int
    free: int
    organizations: tuple[OrganizationState, ...]

    @property
    def waiting(self) -> tuple[OrganizationState, ...]:
        """The organizations of which a job waits, in the order of the configuration."""
        return tuple(item for item in self.organizations if item.waiting > 0)


OwnPolicy = Callable[[ScheduleState], Iterable[OrganizationState]]
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
    wide = check_range(workload)
    # the engine serves the least key: the organization's rank, the utility not being added
    keys = keys_of(
        rows=len(workload.organizations),
        coalitions=1,
        block=Block(1, wide),
        lattice=False,
    )
    keys.factor[:] = 0
    world = packed(one_world(workload, keys, options.seed, wide=wide))

    def ranks(state: ScheduleState) -> list[int]:
        return _ranks(policy, function, state)

    steps = _steps(workload, world, ranks)
    seconds = timed(steps, options.progress)
    return schedule_of(workload, policy, options.seed, world.state, world.record, seconds)


def _steps(
    workload: Workload,
    world: World,
    ranks: Callable[[ScheduleState], list[int]],
) -> Iterator[int]:
    """Brings the schedule to the window's end; yields as `engine.run`."""
    keys = world.keys
    for until in pieces_of(workload.window.length):
        while not engine.advance_first(RANKED, world, until):  # it stopped to choose
            t = int(world.state.now[0])
            keys.rows[:, 0] = ranks(_state(workload.organizations, world, t))
            keys.begin[:2] = t, 1
            engine.advance_first(RANKED, world, t + 1)
            keys.begin[1] = 0
        yield until


def _state(names: tuple[str, ...], world: World, t: int) -> ScheduleState:
    jobs, state, record = world.jobs, world.state, world.record
    past, organizations = state.past, []
    utilities = exact_worths(state.utility[0], past.utility[:1].reshape(-1, past.total.shape[1]), t)
    contributions = exact_worths(record.contribution, past.contribution, t)
    for u, name in enumerate(names):
        own = exact_moments(state.utility[0, u])
        waiting = int(state.demand_of[0, u])
        organizations.append(
            OrganizationState(
                name=name,
                processors=int(record.owned[u]),
                utility=utilities[u],
                contribution=contributions[u],
                parts=own.parts(t),
                running=own.processors,
                waiting=waiting,
                release=int(jobs.release[state.head[0, u]]) if waiting else None,
            )
        )
    return ScheduleState(t=t, free=int(state.free[0]), organizations=tuple(organizations))


def _ranks(policy: str, function: OwnPolicy, state: ScheduleState) -> list[int]:
    """Returns each organization's rank; of those without waiting jobs nobody reads it."""
    try:
        order = list(function(state))
    except Exception as error:
        raise PolicyError(
            f"policy {policy!r} failed at second {state.t}: {complaint(error)}"
        ) from error
    names = [item.name for item in order if isinstance(item, OrganizationState)]
    if len(names) != len(order) or sorted(names) != sorted(item.name for item in state.waiting):
        raise PolicyError(
            f"policy {policy!r} returned at second {state.t} what is no order of state.waiting; "
            "it must return each of these organizations once, the one to serve first first"
        )
    rank = {name: number for number, name in enumerate(names)}
    return [rank.get(item.name, len(rank)) for item in state.organizations]
