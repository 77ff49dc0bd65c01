"""CloudShare's brokers once more, literally: one unit at a time, utilities summed part by part.

Values are sums over jobs of the paper's Eqs. 2 to 4, a running unit being a job that ends now.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shapleyprio.common.wording import HOUR
from shapleyprio.lab.papers.cloudshare.brokers import Queues


def draw(state: NDArray[np.uint64], below: int) -> int:
    """A number from 0 to below - 1, each equally likely (SplitMix64); the first ones that would
    make small numbers likelier are not taken."""
    while True:
        state[0] = (int(state[0]) + 0x9E3779B97F4A7C15) % 2**64
        mixed = int(state[0])
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
        mixed ^= mixed >> 31
        if mixed >= 2**64 % below:
            return mixed % below


@dataclass
class Unit:
    organization: int
    release: int
    local: bool = False
    owner: int = -1
    start: int = -1
    turn: int = -1

    def end(self, now: int) -> int:
        return min(self.start + HOUR, now)


def psi(unit: Unit, now: int) -> Fraction:
    """Eq. 2."""
    s, e = unit.start, unit.end(now)
    return (e - s) * (now - Fraction(s + e - 1, 2))


def psi_by_release(unit: Unit, now: int) -> Fraction:
    """Eq. 3."""
    s, e = unit.start, unit.end(now)
    return (e - s) * (now + unit.release - Fraction(e + s - 1, 2))


def surface(unit: Unit, now: int) -> Fraction:
    """Eq. 4."""
    return Fraction(unit.end(now) - unit.start)


DIRECT = {"orig-direct": psi, "rel-direct": psi_by_release, "simpl-direct": surface}


def units_of(queues: Queues, members: list[int], *, local: bool) -> list[Unit]:
    units = [
        Unit(u, int(queues.release[job]), local)
        for u in members
        for job in range(queues.first[u], queues.first[u + 1])
        for _ in range(queues.units[job])
    ]
    return sorted(units, key=lambda unit: unit.release)


class LiteralBrokers:
    """One coalition; `run` gives its units as they were started."""

    def __init__(
        self,
        algorithm: str,
        coalition: int,
        owned: list[int],
        federated: Queues,
        background: Queues,
        seed: int = 0,
    ) -> None:
        self.algorithm = algorithm
        self.members = [u for u in range(len(owned)) if coalition >> u & 1]
        self.owned = owned
        self.to_come = deque(units_of(federated, self.members, local=False))
        self.local_to_come = deque(units_of(background, self.members, local=True))
        self.waiting: list[Unit] = []
        self.local: list[Unit] = []
        self.started: list[Unit] = []
        self.random = np.array([seed], dtype=np.uint64)

    def run(self) -> list[Unit]:
        moments = {unit.release for unit in (*self.to_come, *self.local_to_come)}
        while self.to_come or self.waiting:
            now = min(moments)
            moments.remove(now)
            moments |= {unit.start + HOUR for unit in self.moment(now)}
        return [unit for unit in self.started if not unit.local]

    def moment(self, now: int) -> list[Unit]:
        before = len(self.started)
        queued = bool(self.waiting)
        while self.to_come and self.to_come[0].release <= now:
            self.waiting.append(self.to_come.popleft())
        while self.local_to_come and self.local_to_come[0].release <= now:
            self.local.append(self.local_to_come.popleft())
        for unit in list(self.local):
            if self.free(unit.organization, now):
                self.local.remove(unit)
                self.start(unit, unit.organization, now)
        if not queued and len(self.waiting) <= sum(self.free(u, now) for u in self.members):
            for unit in sorted(self.waiting, key=lambda unit: unit.organization):
                if self.free(unit.organization, now):
                    self.waiting.remove(unit)
                    self.start(unit, unit.organization, now)
        while self.waiting and any(self.free(u, now) for u in self.members):
            processors = [u for u in self.members for _ in range(self.free(u, now))]
            owner = processors[draw(self.random, len(processors))]
            served = self.served(now)
            unit = next(unit for unit in self.waiting if unit.organization == served)
            self.waiting.remove(unit)
            self.start(unit, owner, now)
        return self.started[before:]

    def free(self, owner: int, now: int) -> int:
        busy = [unit for unit in self.started if unit.owner == owner and unit.start + HOUR > now]
        return self.owned[owner] - len(busy)

    def start(self, unit: Unit, owner: int, now: int) -> None:
        unit.owner, unit.start, unit.turn = owner, now, len(self.started)
        self.started.append(unit)

    def served(self, now: int) -> int:
        mine = [unit for unit in self.started if not unit.local]
        waiting = sorted({unit.organization for unit in self.waiting})

        def priority(u: int) -> Fraction:
            if self.algorithm == "roundrobin":
                turns = [unit.turn for unit in mine if unit.organization == u]
                return Fraction(-max(turns, default=-1))
            if self.algorithm == "fairshare":
                used = [surface(unit, now) for unit in mine if unit.organization == u]
                return -sum(used, Fraction(0)) / self.owned[u]
            value = DIRECT[self.algorithm]
            lent = sum((value(unit, now) for unit in mine if unit.owner == u), Fraction(0))
            return lent - sum(value(unit, now) for unit in mine if unit.organization == u)

        return max(waiting, key=priority)
