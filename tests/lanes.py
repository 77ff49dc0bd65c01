"""A plugin for pytest-xdist that runs tests on real servers beside tests that compute.

A real Slurm, PostgreSQL or MariaDB mostly waits: for its clock, for a disk, for a start. If files
with such tests were taken as they come, all workers would wait at one time and all would compute
at another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

MOST_WAITING = 3  # workers, as long as there is something to compute


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    return Lanes(config, log)


class Lanes(LoadFileScheduling):  # type: ignore[misc] # as xdist ships no types
    """Hands out files; at most three workers have one with a real server while others compute."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        waiting = sum(self._waits(other) for other in self.nodes if other is not node)
        wanted = waiting < MOST_WAITING
        for file in self.workqueue:
            if self._is_on_a_server(file) is wanted:
                self.workqueue.move_to_end(file, last=False)
                break
        super()._assign_work_unit(node)

    def _waits(self, node: WorkerController) -> bool:
        """Whether the worker has tests on real servers left to run."""
        return any(
            self._is_on_a_server(file) and not all(tests.values())
            for file, tests in self.assigned_work[node].items()
        )

    def _is_on_a_server(self, file: str) -> bool:
        text = (self.config.rootpath / file).read_text(encoding="utf-8")
        return "real_slurm" in text or "real_server" in text
