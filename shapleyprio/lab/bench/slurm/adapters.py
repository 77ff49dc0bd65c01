"""The adapters to Slurm beside each other: the same questions and writes through each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shapleyprio.lab.bench.measure import MakeBar, Measurement, of_runs, seconds_of
from shapleyprio.lab.bench.slurm.queue import COMMAND_SECONDS, Queue
from shapleyprio.slurm.adapters import connect
from shapleyprio.slurm.port import Connection, Slurm, SlurmError

RUNS = 5
WRITTEN = 1_000
"""Number of jobs that get another nice."""

DIFFERENT_VALUES = (1, 20, WRITTEN)
"""Number of different values among them."""


def adapters(queue: Queue, names: Sequence[str], bar: MakeBar) -> Iterator[Measurement]:
    """Asks and writes the same through each adapter; they take turns, so that load hits all.

    Args:
        queue: full.
        names: of the adapters.
        bar: makes progress bars.

    Raises:
        SlurmError: an adapter cannot be used here, or does not do what it should.
    """
    connection = Connection(environment=queue.cluster.environment, timeout_seconds=COMMAND_SECONDS)
    connected = {name: connect(connection, name) for name in names}
    for name, slurm in connected.items():
        slurm.controller()  # whoever has to find out whether it can be used has found out
        if used := slurm.adapter().why:
            raise SlurmError(f"{name}: {used}")
    jobs = [job.target for job in connected[names[0]].pending().jobs][:WRITTEN]
    for what, action in _actions(jobs).items():
        done = bar(what, RUNS * len(names))
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for run in range(RUNS):
            for number, (name, slurm) in enumerate(connected.items()):
                turn = run * len(names) + number
                seconds[name].append(seconds_of(lambda: action(slurm, turn)))  # noqa: B023
                done(turn + 1)
        for name in names:
            whole = f"{name} ({queue.version}): {what}"
            yield of_runs("slurm", whole, seconds[name], unit="s")


def _actions(jobs: Sequence[str]) -> dict[str, Callable[[Slurm, int], object]]:
    """Returns what is measured -> the deed; it gets a number that it never gets again."""
    actions: dict[str, Callable[[Slurm, int], object]] = {
        "asking the controller": lambda slurm, _: slurm.controller(),
        "reading who waits": lambda slurm, _: slurm.pending(),
    }
    for different in DIFFERENT_VALUES:
        values = "one value" if different == 1 else f"{different:,} different values"

        def write(slurm: Slurm, turn: int, different: int = different) -> None:
            first = -1_000_000 + turn * WRITTEN
            wanted = {job: first + number % different for number, job in enumerate(jobs)}
            if refused := slurm.write("nice", wanted):
                target, why = next(iter(refused.items()))
                raise SlurmError(f"{len(refused)} writes were refused: job {target}: {why}")

        actions[f"writing the nice of {len(jobs):,} jobs, {values}"] = write
    return actions
