"""What a ranking rule may go by: the consortium at a moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.trajectory import NOTHING, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributions:
    """What organizations are worth to the others, as it was computed.

    Attributes:
        t: second for which it was computed, since the epoch.
        trajectories: organization -> its contribution φ in part-seconds, at t and later.
    """

    t: int
    trajectories: Mapping[str, Trajectory]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationState:
    """An organization at a moment.

    Attributes:
        name: its name.
        processors: how many it brings.
        given: φ̃, the worth of what its processors have executed for organizations, in
            part-seconds, at the moment and later.
        got: ψ, the worth of what its jobs have executed, in part-seconds, at the moment and later.
        parts: processor-seconds that its jobs have executed, of any age.
        running: processors that work for it.
        waiting: processors that those of its jobs ask for that lack nothing but their turn; 0 if
            none waits. In the daemon they are CPUs, whatever the weight.
        release: second since which the first of these jobs waits; None if none does.
    """

    name: str
    processors: int
    given: Trajectory = NOTHING
    got: Trajectory = NOTHING
    parts: int = 0
    running: int = 0
    waiting: int = 0
    release: int | None = None

    @property
    def contribution(self) -> int:
        """φ̃ at the moment, in part-seconds."""
        return self.given.after(0)

    @property
    def utility(self) -> int:
        """ψ at the moment, in part-seconds."""
        return self.got.after(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A consortium at a moment, after what ends and what is released there.

    Attributes:
        t: seconds since the epoch; in a replay from the window's begin.
        free: processors that are free.
        organizations: all of them, in the order of the configuration.
        estimated: their estimated contributions, no younger than t; None if there are none that
            can be relied on, and for rules that do not ask for any.
        elsewhere: organization -> what the pool adds to what its rule calls additive, at t and
            later; None for a cluster in no pool.
    """

    t: int
    free: int
    organizations: tuple[OrganizationState, ...]
    estimated: Contributions | None = None
    elsewhere: Mapping[str, Trajectory] | None = None

    @property
    def waiting(self) -> tuple[OrganizationState, ...]:
        """The organizations of which a job waits, in the order of the configuration."""
        return tuple(item for item in self.organizations if item.waiting > 0)

    def counted_by(self, ledger: Ledger) -> Situation:
        """Returns the same with what a ledger has of the organizations.

        Args:
            ledger: see `Ledger.pairs` for what t may be.
        """
        names = [item.name for item in self.organizations]
        paths, executed = ledger.trajectories(self.t, names), ledger.executed(self.t, names)
        states = []
        for item in self.organizations:
            (given, got), (parts, running) = paths[item.name], executed[item.name]
            states.append(replace(item, given=given, got=got, parts=parts, running=running))
        return replace(self, organizations=tuple(states))

    def with_pool(self, own: Mapping[str, Trajectory]) -> dict[str, Trajectory]:
        """Returns what is additive in the whole pool, from what it is here alone."""
        others = self.elsewhere or {}
        return {name: path + others.get(name, NOTHING) for name, path in own.items()}
