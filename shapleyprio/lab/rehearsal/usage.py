"""The usage with which fair share begins: what was executed before a rehearsal.

slurmctld keeps usage in a file of its own and takes it from nowhere else. So a private cluster
earns it: each account has one short job, with a QOS whose usage factor makes the longest of them
worth the largest usage.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from shapleyprio.common.wording import DAY
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.machine import program
from shapleyprio.replay.workloads.log import UNKNOWN, Log

LONGEST_SECONDS = 600
"""How long the job of the largest usage lasts; others in proportion, in whole seconds."""

PATIENCE_SECONDS = 600  # real ones

USUAL_HALF_LIFE = 7 * DAY


def half_life_of(text: str) -> int:
    """Reads PriorityDecayHalfLife: minutes, ``hours:minutes:seconds`` or ``days-hours``; seconds.

    Raises:
        ValueError: it is no time.

    >>> half_life_of("7-0"), half_life_of("90"), half_life_of("01:30:00"), half_life_of("")
    (604800, 5400, 5400, 604800)
    """
    if not text:
        return USUAL_HALF_LIFE
    days, dash, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if not dash and len(parts) < 3:
        parts.insert(0, 0)  # minutes, and seconds perhaps
    hours, minutes, seconds = [*parts, 0, 0][:3]
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def usage_before(log: Log, begin: int, half_life: int) -> NDArray[np.float64]:
    """Returns the usage that Slurm would know of each job of a log, in processor-seconds.

    Args:
        log: as it was.
        begin: second of the log, after which nothing is known.
        half_life: seconds; 0 for usage that does not decay.
    """
    end = np.minimum(log.start + log.processing_time, begin)
    ran = np.where(log.start == UNKNOWN, 0, end - log.start).clip(0)
    used: NDArray[np.float64] = (ran * log.processors).astype(float)
    return used * 0.5 ** ((begin - end) / half_life) if half_life else used


def earn(
    cluster: PrivateSlurm, usage: Mapping[str, float], qos: str, *, partition: str, memory: bool
) -> None:
    """Lets accounts have their usage; some minutes of the cluster's clock pass.

    Args:
        cluster: running, with the accounts.
        usage: account -> processor-seconds.
        qos: that these accounts may use, and no other job does.
        partition: where there is a processor for each.
        memory: whether jobs ask for memory.

    Raises:
        TestbedError: the jobs did not end.
    """
    largest = max(usage.values())
    factor = f"UsageFactor={largest / LONGEST_SECONDS:.6f}"
    cluster.run("sacctmgr", "-i", "modify", "qos", "where", f"name={qos}", "set", factor)
    options = (
        *(f"--qos={qos}", f"--partition={partition}", "--ntasks=1", "--output=/dev/null"),
        *(f"--time={LONGEST_SECONDS // 60 + 1}", *["--mem-per-cpu=1M"] * memory),
    )
    for account, used in usage.items():
        if seconds := round(LONGEST_SECONDS * used / largest):
            job = f"--wrap=exec {program('sleep')} {seconds}"
            cluster.run("sbatch", f"--account={account}", *options, job)
    cluster.wait_until(
        lambda: not cluster.run("squeue", "-h"),
        real_seconds=PATIENCE_SECONDS,
        what="the end of the jobs that earn the usage of before",
    )
