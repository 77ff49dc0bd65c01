"""A small deterministic Slurm in memory: discrete seconds, priorities as Slurm computes them.

It starts jobs greedily by priority, equal ones in the order of submission and id. The first job
of a partition that does not fit keeps the partition's nodes for itself: at that moment no job
behind it starts there (Slurm without backfill). Jobs are packed onto the partition's nodes in
their order. Left out: time limits, memory, fair share, job size.
"""

from shapleyprio.lab.simulated.adapter import SimulatedSlurm
from shapleyprio.lab.simulated.cluster import DEFAULT_SETTINGS, DaemonName, SimulatedSpec

__all__ = ["DEFAULT_SETTINGS", "DaemonName", "SimulatedSlurm", "SimulatedSpec"]
