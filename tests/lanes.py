"""A plugin for pytest-xdist that runs tests on real servers beside tests that compute.

A real Slurm, PostgreSQL or MariaDB mostly waits: for its clock, for a disk, for a start. If files
with such tests were taken as they come, all workers would wait at one time and all would compute
at another.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from pathlib import Path

    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

MOST_WAITING = 5  # workers, as long as there is something to compute

LONGEST = (
    "tests/end_to_end/test_guarantees.py",
    "tests/daemon/test_fault_life.py",
    "tests/lab/trial/test_real_trial.py",
    "tests/slurm/test_contract.py",
    "tests/end_to_end/test_forecasts.py",
    "tests/lab/rehearsal/test_university.py",
    "tests/hostile/test_jobs.py",
    "tests/end_to_end/test_association.py",
    "tests/lab/rehearsal/test_real_rehearsal.py",
    "tests/end_to_end/test_crashes.py",
)
"""Files on real servers that take minutes each, so that they are begun first."""


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    return Lanes(config, log)


class Lanes(LoadFileScheduling):  # type: ignore[misc] # as xdist ships no types
    """Hands out files; at most five workers have one with a real server while another computes."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        waiting = sum(self._waits(other) for other in self.nodes if other is not node)
        wanted = waiting < MOST_WAITING
        found = [file for file in self.workqueue if self._is_on_a_server(file) is wanted]
        if found:
            self.workqueue.move_to_end(min(found, key=_place), last=False)
        super()._assign_work_unit(node)

    def _waits(self, node: WorkerController) -> bool:
        """Whether the worker has tests on real servers left to run."""
        return any(
            self._is_on_a_server(file) and not all(tests.values())
            for file, tests in self.assigned_work[node].items()
        )

    def _is_on_a_server(self, file: str) -> bool:
        return _needs_a_server(self.config.rootpath / file)


@cache
def _needs_a_server(file: Path) -> bool:
    text = file.read_text(encoding="utf-8")
    return "real_slurm" in text or "real_server" in text


def _place(file: str) -> int:
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)
