"""A plugin for pytest-xdist that runs tests that wait beside tests that compute.

A real Slurm, PostgreSQL or MariaDB mostly waits: for its clock, for a disk, for a start. If files
with such tests were taken as they come, all workers would wait at one time and all would compute
at another.
"""

from __future__ import annotations

import fcntl
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

MOST_WAITING = 6  # workers, as long as there is something to compute

LONGEST = (
    "tests/end_to_end/test_guarantees.py",
    "tests/slurm/test_contract.py",
    "tests/daemon/test_fault_life.py",
    "tests/end_to_end/test_forecasts.py",
    "tests/lab/trial/test_real_trial.py",
    "tests/lab/rehearsal/test_university.py",
    "tests/hostile/test_jobs.py",
    "tests/end_to_end/test_association.py",
    "tests/end_to_end/test_crashes.py",
    "tests/lab/demo/test_demo.py",
    "tests/lab/rehearsal/test_real_rehearsal.py",
    "tests/end_to_end/test_pushes.py",
    "tests/end_to_end/test_guarantee_remedies.py",
    "tests/recipes/test_recipes.py",
    "tests/test_packaging.py",
    "tests/end_to_end/test_month.py",
    "tests/lab/testbed/test_private_slurm.py",
    "tests/daemon/pools/test_pools_on_slurm.py",
    "tests/cli/test_bench_slurm.py",
    "tests/end_to_end/test_order.py",
    "tests/end_to_end/test_asking.py",
    "tests/cli/test_bench.py",
    "tests/daemon/steering/test_two_daemons.py",
    "tests/daemon/drift/test_live.py",
    "tests/hostile/test_demand_on_slurm.py",
    "tests/end_to_end/test_accounting.py",
    "tests/grafana/test_live.py",
    "tests/daemon/forecasting/test_live.py",
    "tests/daemon/estimation/test_live.py",
    "tests/reports/test_in_browser.py",
    "tests/daemon/forecasting/test_what_if.py",
    "tests/end_to_end/test_export.py",
    "tests/slurm/test_what_users_set.py",
    "tests/cli/test_dry_run.py",
    "tests/daemon/test_full_servers.py",
    "tests/end_to_end/test_unenforced_accounts.py",
    "tests/daemon/pools/test_pools.py",
    "tests/store/test_copying.py",
    "tests/daemon/pools/test_pool_changes.py",
    "tests/daemon/steering/test_reload.py",
    "tests/daemon/steering/test_two_head_nodes.py",
    "tests/end_to_end/test_submission.py",
    "tests/slurm/test_command_line.py",
    "tests/end_to_end/test_commands.py",
)
"""Files that take longest, most of it waiting, so that they are begun first."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Lets one worker compile the tests, while the others wait to load what it has compiled."""
    with Path(__file__).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            fcntl.flock(file, fcntl.LOCK_SH)
            fcntl.flock(file, fcntl.LOCK_UN)
        yield


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    return Lanes(config, log)


class Lanes(LoadFileScheduling):  # type: ignore[misc] # as xdist ships no types
    """Hands out files; at most six workers have one that waits while another computes."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        waiting = sum(self._waits(other) for other in self.nodes if other is not node)
        wanted = waiting < MOST_WAITING
        found = [file for file in self.workqueue if self._mostly_waits(file) is wanted]
        if found:
            self.workqueue.move_to_end(min(found, key=_place), last=False)
        super()._assign_work_unit(node)

    def _waits(self, node: WorkerController) -> bool:
        """Whether the worker has tests that wait left to run."""
        return any(
            self._mostly_waits(file) and not all(tests.values())
            for file, tests in self.assigned_work[node].items()
        )

    def _mostly_waits(self, file: str) -> bool:
        return file in LONGEST or _needs_a_server(self.config.rootpath / file)


@cache
def _needs_a_server(file: Path) -> bool:
    text = file.read_text(encoding="utf-8")
    return "real_slurm" in text or "real_server" in text


def _place(file: str) -> int:
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)
