"""What users, administrators and Slurm's daemons do in a life."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from shapleyprio.slurm.port import Malformed, SlurmError
from tests.daemon.faults.cluster import ACCOUNTS, PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from shapleyprio.fairness.runs import JobRecord
    from shapleyprio.lab.simulated import DaemonName
    from shapleyprio.lab.simulated.jobs import RowKey
    from tests.daemon.faults.cluster import FaultyCluster

HOUR, DAY = 3600, 86_400

DAEMONS: list[DaemonName] = ["slurmctld", "slurmdbd"]

CORRECTABLE_SECONDS = 150
"""A record of a run that has ended is corrected to an end that is read again, if Slurm is late."""

STEPS = [1, 20, 250, 299, 400, 3000, 7200, DAY, 2 * DAY]
"""Seconds by which the clock is set."""

FAR_STEPS = [400, 3000, 7200, DAY]
"""Those that are farther than records are read again."""

FARTHEST = 3 * DAY
"""So far the clock is off at most."""


class World:
    """Changes the cluster, one happening after the other.

    Args:
        slurm: the cluster.
        chance: decides.

    Attributes:
        nice: job or array -> what its user has asked for.
    """

    def __init__(self, slurm: FaultyCluster, chance: Random) -> None:
        self._slurm = slurm
        self._chance = chance
        self._jobs: list[int] = []
        self.nice: dict[int, int] = {}

    def happenings(self) -> dict[Callable[[], object], int]:
        """Each with its weight."""
        return {
            self.submit: 8,
            self.wait: 6,
            self.wait_long: 1,
            self.change_a_job: 5,
            self.change_nice: 1,
            self.correct_an_end: 4,
            self.end_a_run_in_the_past: 1,
            self.correct_a_start: 1,
            self.take_out_a_run: 1,
            self.take_down: 1,
            self.bring_up: 2,
            self.step_the_clock: 2,
            self.cut_a_write_off: 1,
            self.print_an_unreadable_line: 1,
            self.forget_a_write: 1,
        }

    # -- users

    def submit(self) -> str:
        slurm, chance, lines = self._slurm, self._chance, []
        with suppress(SlurmError):
            for _ in range(chance.randint(1, 3)):
                partition = chance.choice(list(PARTITIONS))
                most = slurm._machines.capacity[partition]
                job = slurm.submit(
                    chance.choice(ACCOUNTS),
                    processors=chance.choice([1, 2, 4, most]),
                    processing_time=chance.choice([0, 1, 30, 30, 90, 200, 900, 4000, 2 * DAY]),
                    partition=partition,
                    nice=(nice := chance.choice([0, 0, 50])),
                    array=chance.choice([0, 0, 0, 3]),
                )
                self._jobs.append(job)
                self.nice[job] = nice
                lines.append(str(job))
        return f"submits {' '.join(lines) or 'nothing: slurmctld is down'}"

    def change_a_job(self) -> str:
        slurm, chance = self._slurm, self._chance
        if not self._jobs:
            return "has no job to change"
        job = chance.choice(self._jobs)
        changes: dict[str, Callable[[], object]] = {
            "requeues": lambda: slurm.requeue(job),
            "suspends": lambda: slurm.suspend(job),
            "resumes": lambda: slurm.resume(job),
            "cancels": lambda: slurm.cancel(job),
            "holds": lambda: slurm.hold(job),
            "releases": lambda: slurm.release(job),
            "moves": lambda: slurm.set_account(job, chance.choice(ACCOUNTS)),
        }
        what = chance.choice(list(changes))
        try:
            changes[what]()
        except SlurmError as refusal:
            return f"{what} {job}: {refusal}"
        return f"{what} {job}"

    def change_nice(self) -> str:
        plain = [job.job_id for job in self._slurm._engine.waiting.jobs.values() if not job.tasks]
        if not plain:
            return "has no job whose nice it could change"
        job, nice = self._chance.choice(plain), self._chance.choice([0, 10, 70])
        with suppress(SlurmError):
            self._slurm.set_nice(job, nice)
            self.nice[job] = nice
        return f"sets the nice of {job} to {nice}"

    # -- time

    def wait(self) -> str:
        seconds = self._chance.choice([1, 10, 30, 60, 90, 300])
        self._slurm.wait(seconds)
        return f"waits {seconds} s"

    def wait_long(self) -> str:
        seconds = self._chance.choice([1000, 3500, 2 * HOUR, DAY])
        self._slurm.wait(seconds)
        return f"waits {seconds} s"

    def step_the_clock(self) -> str:
        return self._step(self._chance.choice(STEPS) * self._chance.choice([1, -1]))

    def end_a_job_and_step_ahead(self) -> str:
        """A job is over at once, and the clock goes ahead before accounting may know of it."""
        slurm = self._slurm
        with suppress(SlurmError):
            job = slurm.submit(self._chance.choice(ACCOUNTS), processors=1, processing_time=1)
            self._jobs.append(job)
            self.nice[job] = 0
        slurm.wait(3)
        return f"submits a job of 1 s, {self._step(self._chance.choice(FAR_STEPS))}"

    def _step(self, seconds: int) -> str:
        if abs(self._slurm.clock - self._slurm.now + seconds) > FARTHEST:
            seconds = -seconds
        self._slurm.step(seconds)
        return f"sets the clock by {seconds} s to {self._slurm.clock}"

    # -- administrators correct records

    def correct_an_end(self) -> str:
        """Of a run that has just ended."""
        clock = self._slurm.clock
        found = [
            (key, row)
            for key, row in self._slurm.rows().items()
            if row.start is not None
            and row.end is not None
            and max(row.start, clock - CORRECTABLE_SECONDS) <= row.end <= clock
        ]
        if not found or not self._slurm.accounting_is_up:
            return "has no end to correct"
        key, row = self._chance.choice(found)
        assert row.start is not None
        end = self._chance.randint(max(row.start, clock - CORRECTABLE_SECONDS), clock)
        self._slurm.correct(key, end=end)
        return f"corrects the end of {_named(key)} to {end}"

    def end_a_run_in_the_past(self) -> str:
        """As for a runaway job."""
        found = self._running()
        if found is None:
            return "has no runaway job"
        key, row = found
        assert row.start is not None
        if row.start > self._slurm.clock:
            return f"leaves {_named(key)} alone, which is to start"
        end = self._chance.randint(row.start, self._slurm.clock)
        self._slurm.cancel(row.job_id)
        self._slurm.correct(key, end=end, state="CANCELLED")
        return f"lets {_named(key)} have ended at {end}"

    def correct_a_start(self) -> str:
        found = self._running()
        if found is None:
            return "has no start to correct"
        key, row = found
        assert row.start is not None
        if row.start > self._slurm.clock or row.state != "RUNNING":
            return f"leaves the start of {_named(key)} alone"
        start = self._chance.randint(max(row.submit, row.start - HOUR), self._slurm.clock)
        self._slurm.correct(key, start=start)
        return f"corrects the start of {_named(key)} to {start}"

    def take_out_a_run(self) -> str:
        found = self._running()
        if found is None:
            return "has no run to take out"
        key, row = found
        self._slurm.cancel(row.job_id)
        self._slurm.take_out(key)
        return f"takes {_named(key)} out of accounting"

    def _running(self) -> tuple[RowKey, JobRecord] | None:
        """A run that has not ended, of which accounting knows."""
        if not self._slurm.accounting_is_up or not self._slurm.controller_is_up:
            return None
        running = self._slurm._engine._jobs
        found = [
            (key, row)
            for key, row in self._slurm.rows().items()
            if row.start is not None
            and row.end is None
            and (job := running.get(row.job_id)) is not None
            and (job.execution, job.start is None) == (key[1], False)
        ]
        return self._chance.choice(found) if found else None

    # -- Slurm's daemons

    def take_down(self) -> str:
        daemon = self._chance.choice(DAEMONS)
        self._slurm.take_down(daemon)
        return f"takes {daemon} down"

    def bring_up(self) -> str:
        self._slurm.bring_up("slurmctld")
        self._slurm.bring_up("slurmdbd")
        return "brings both daemons up"

    def cut_a_write_off(self) -> str:
        after = self._chance.randint(0, 3)
        self._slurm.stop_write_after(after)
        return f"lets slurmctld go away after {after} writes"

    def print_an_unreadable_line(self) -> str:
        if self._slurm.malformed:
            self._slurm.malformed.clear()
            return "prints no unreadable line any more"
        source = self._chance.choice(["sacct", "squeue"])
        self._slurm.malformed.append(Malformed(source, "cut o", "it is cut off"))
        return f"prints an unreadable line of {source}"

    def forget_a_write(self) -> str:
        self._slurm.forget_a_write()
        return "forgets what was last written to a job"


def _named(key: RowKey) -> str:
    return f"run {key[1]} of job {key[0]}"
