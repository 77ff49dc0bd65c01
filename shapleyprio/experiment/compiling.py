"""Compiles what replays and experiments may need, by replaying a few jobs in every way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from shapleyprio.experiment.presets import COMPILED, imported
from shapleyprio.replay.compiled import counts
from shapleyprio.replay.kernel.pipeline import FEWEST_ORGANIZATIONS
from shapleyprio.replay.kernel_cache import filling
from shapleyprio.replay.policies import POLICIES, run_policy
from shapleyprio.replay.sacct import read_sacct
from shapleyprio.replay.shapley.options import EXACT_ORGANIZATIONS
from shapleyprio.replay.swf import read_swf
from shapleyprio.replay.workload import Consortium, Workload, workload_of

SWF = b"; MaxProcs: 2\n" + b"".join(
    b"%d %d 0 9 1 -1 -1 1 9 -1 1 %d 1 -1 1 -1 -1 -1\n" % (job, job, job % 9) for job in range(1, 40)
)
SACCT = b"""\
jobid|user|account|partition|submit|eligible|start|end|state|ncpus|reqcpus|nodelist|timelimit
1|ann|physics|a|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T00:00:01|2026-01-01T00:00:09|\
COMPLETED|1|1|n[1-2]|00:10:00
2|bob|biology|b|1767225600|1767225600|1767225601|1767225609|COMPLETED|1|1|n2|00:10:00
"""


@dataclass(frozen=True, slots=True)
class CompileProgress:
    """What one way to replay needed.

    Attributes:
        what: the way.
        compiled: how many functions were compiled for it.
        found: how many had been compiled before, and were read.
    """

    what: str
    compiled: int
    found: int


def compile_into(folder: Path) -> Iterator[CompileProgress]:
    """Compiles all that is not in the folder yet, one way to replay after the other.

    Raises:
        ReplayError: it cannot be written, or others than root and this user could put code there.
    """
    with filling(folder):
        before = counts()
        for what, run in _ways():
            run()
            now = counts()
            yield CompileProgress(what, now.compiled - before.compiled, now.found - before.found)
            before = now


def _ways() -> Iterator[tuple[str, Callable[[], object]]]:
    yield "logs in SWF", partial(read_swf, "example", SWF)
    yield "logs of sacct", partial(read_sacct, "example", SACCT)
    few = _workload(2)
    for policy in POLICIES:
        yield policy, partial(run_policy, few, policy)
    many = _workload(FEWEST_ORGANIZATIONS)
    yield "ref on several cores", partial(run_policy, many, "ref", cores=2)
    yield "shapley of many", partial(run_policy, _workload(EXACT_ORGANIZATIONS + 1), "shapley")
    for what, function in COMPILED.items():
        yield what, imported(function)


def _workload(organizations: int) -> Workload:
    log = read_swf("example", SWF)
    consortium = Consortium(
        organizations=tuple(f"organization{number + 1}" for number in range(organizations)),
        owned=np.ones(organizations, dtype=np.int64),
        organization=(log.job % organizations).astype(np.int32),
    )
    return workload_of(log, consortium)
