"""Bays, the processors of nodes in the same partitions, and how a job's place there is packed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

COUNT_BITS = 24
OWNER_BITS = 8
PLACE_BITS = 13
LARGEST_COUNT: int = 2**COUNT_BITS - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The nodes on which a log's jobs ran.

    Attributes:
        names: each once.
        owner: int32[nodes], index of the organization; UNKNOWN if none owns it.
        processors: int64[nodes], the most that jobs held there at one time.
    """

    names: tuple[str, ...]
    owner: NDArray[np.int32]
    processors: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bays:
    """Which processors each job may have.

    Attributes:
        partitions: names; the empty one is that of jobs of which the log names none.
        reach: bool[partitions, bays], which bays each partition has. A job takes processors of
            the first of these bays first.
        owned: int64[bays, organizations], processors.
        partition: int32[jobs], index into partitions.
    """

    partitions: tuple[str, ...]
    reach: NDArray[np.bool_]
    owned: NDArray[np.int64]
    partition: NDArray[np.int32]

    @classmethod
    def single(cls, owned: NDArray[np.int64], jobs: int) -> Self:
        """Returns one bay, of which every job may have any processor.

        Args:
            owned: int64[organizations], processors.
            jobs: how many there are.
        """
        return cls(
            partitions=("",),
            reach=np.ones((1, 1), dtype=np.bool_),
            owned=owned[None, :],
            partition=np.zeros(jobs, dtype=np.int32),
        )

    @property
    def named(self) -> dict[str, int]:
        """The partitions that the jobs name -> how many processors each has."""
        sizes = dict(zip(self.partitions, self.processors.tolist(), strict=True))
        used = {self.partitions[code] for code in np.unique(self.partition).tolist()}
        return {name: sizes[name] for name in self.partitions if name in used and name}

    @property
    def queues(self) -> int:
        """How many queues there are: one for each organization and partition."""
        queues: int = len(self.partitions) * self.owned.shape[1]
        return queues

    @property
    def processors(self) -> NDArray[np.int64]:
        """int64[partitions], how many processors each partition has."""
        found: NDArray[np.int64] = self.reach @ self.owned.sum(axis=1)
        return found

    @property
    def own(self) -> NDArray[np.int64]:
        """int64[organizations, partitions], how many each organization has in each partition."""
        found: NDArray[np.int64] = (self.reach @ self.owned).T
        return found

    @property
    def sharing(self) -> NDArray[np.bool_]:
        """bool[partitions, partitions], whether two have a bay in common."""
        found: NDArray[np.bool_] = self.reach @ self.reach.T
        return found

    def of_members(self, members: Sequence[int]) -> Bays:
        """Returns the same for some of the organizations, by indices."""
        return replace(self, owned=self.owned[:, list(members)])

    def of_jobs(self, jobs: NDArray[np.int64]) -> Bays:
        """Returns the same for some of the jobs, by indices; any index may come often."""
        return replace(self, partition=self.partition[jobs])
