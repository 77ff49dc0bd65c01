"""Runs an experiment's cells, each on a core."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from multiprocessing import active_children, get_context, parent_process

from shapleyprio.common.errors import Remedy
from shapleyprio.lab.experiment.cells import Cell, Experiment, ExperimentError, Row
from shapleyprio.lab.experiment.keeping import ResultCache

Finished = Generator[tuple[int, list[Row]], None, None]
"""The index of a cell that was run, and its rows; closing it stops the rest."""

CellsProgress = Callable[[int, int], None]
"""Called with how many cells are finished, and how many of them were already kept."""


def run(
    experiment: Experiment,
    cores: int,
    *,
    kept: ResultCache | None = None,
    progress: CellsProgress | None = None,
) -> list[Row]:
    """Runs the cells that are not kept yet.

    Args:
        experiment: what to run.
        cores: on which cells run, in any order; with one no process is started.
        kept: where finished cells are kept; None to keep them in memory only.
        progress: called whenever a cell is finished.

    Returns:
        The rows of all cells, in the cells' order.

    Raises:
        ReplayError: a cell cannot be run, or a process ended without a word.
        OutputError: its rows cannot be kept, or another cell's are kept.
    """
    report = progress or (lambda _finished, _kept: None)
    rows = {} if kept is None else kept.rows_of(experiment.cells)
    before = len(rows)
    report(before, before)
    left = [number for number in range(len(experiment.cells)) if number not in rows]
    with closing(_finished([experiment.cells[number] for number in left], cores)) as finished:
        for index, of_cell in finished:
            number = left[index]
            if kept is not None:
                kept.keep(experiment.cells[number], of_cell)
            rows[number] = of_cell
            report(len(rows), before)
    return [row for number in range(len(experiment.cells)) for row in rows[number]]


def _finished(cells: Sequence[Cell], cores: int) -> Finished:
    if cores == 1 or len(cells) <= 1:
        return _here(cells)
    return _in_processes(cells, min(cores, len(cells)))


def _here(cells: Sequence[Cell]) -> Finished:
    for index, cell in enumerate(cells):
        yield index, cell.run()


def _in_processes(cells: Sequence[Cell], processes: int) -> Finished:
    not_ours = set(active_children())
    # the threads of progress bars make a plain fork unsafe
    spawn = get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=spawn, initializer=_end_when_parent_ends)
    try:
        with _interrupts_held_back(), _current_directory_ignored():  # and so in what starts here
            indices = {pool.submit(cell.run): index for index, cell in enumerate(cells)}
        for future in as_completed(indices):
            yield indices.pop(future), future.result()
    except BrokenProcessPool:
        raise ExperimentError(
            "a process that ran cells was killed from outside, perhaps out of memory",
            Remedy.FEWER_CORES,
        ) from None
    finally:
        for child in set(active_children()) - not_ours:
            child.terminate()
            child.join()
        pool.shutdown(cancel_futures=True)  # its thread ends when its processes have


@contextmanager
def _current_directory_ignored() -> Iterator[None]:
    """Has processes that start meanwhile import nothing from the current directory."""
    name = "PYTHONSAFEPATH"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Has Ctrl-C wait; a process that starts meanwhile inherits that, and leaves it to us."""
    came: list[int] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    # a library's thread may take it, for whose mask we have no say
    handler = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number in came[:1]:
            signal.raise_signal(number)


def _end_when_parent_ends() -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
