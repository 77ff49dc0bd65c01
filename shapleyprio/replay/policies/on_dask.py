"""Ref on the workers of a Dask cluster: each has a span of the lattice (`engine.spans`).

The blocks of the window go through the spans in chunks. A worker does one with what changed in
the spans before its own, which their workers send it; the one with the last span has the schedule.
"""

from __future__ import annotations

import pickle
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise
from time import perf_counter
from typing import Any  # Dask's packages ship no types

from shapleyprio.replay.engine.beginning import jobs_of, record_of
from shapleyprio.replay.engine.limits import ref_block
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.engine.spans import Changes, Span, bounds_of, bytes_of
from shapleyprio.replay.errors import DaskError, PolicyError
from shapleyprio.replay.policies.coalitions import schedule_of_ref
from shapleyprio.replay.policies.policy import RunOptions
from shapleyprio.replay.workloads.workload import Workload

MOST_SPANS = 8
"""More would hardly be faster: each makes the values of all before it."""

FEWEST_CHUNKS = 64
"""Where there are as many blocks: at its begin and its end a span waits for the others' chunks."""

LARGEST_CHUNK = 2**22
"""Coalitions times blocks, some seconds: so long goes on at Ctrl-C what is under way."""

CHUNKS_AHEAD = 4
"""By so many, and one for each span, the first one may be ahead of the last one."""

FIRST_WORKER_SECONDS = 30

CHECK_SECONDS = 5
"""Between looks whether all workers are still there."""

PART_OF_MEMORY = 0.7
"""What of its limit a worker's spans may take; Dask gives no work to workers that use 80 %."""


def ref_on_dask(workload: Workload, options: RunOptions) -> Schedule:
    """Returns Ref's schedule; every decision is as on one core.

    Raises:
        PolicyError: there are too many organizations, processors or jobs, or there is a horizon, or
            partitions.
        DaskError: there are no workers, they cannot do this, or one is gone.
    """
    nested = workload.unions is not None
    if nested or workload.saturation is not None or workload.bays is not None:
        raise PolicyError(
            "ref with a horizon, partitions, parents or several clusters computes on one core, not "
            "on Dask"
        )
    seconds = ref_block(workload).seconds
    length, organizations = workload.window.length, len(workload.organizations)
    blocks = -(-length // seconds)
    in_chunk = max(1, min(blocks // FEWEST_CHUNKS, LARGEST_CHUNK >> organizations))
    client = options.dask
    with _in_words():
        places = _places(client)[:organizations]
        spans = _Spans(client, places)
        try:
            spans.open(workload, options.seed)
            began = perf_counter()
            for block in spans.run([*range(0, blocks, in_chunk), blocks]):
                options.progress(min(block * seconds, length))
            took = perf_counter() - began
            schedule = spans.schedule(options.seed)
        finally:
            spans.close()
    return replace(schedule, seconds=took)


class _Spans:
    """The spans, and the chunks of blocks that are under way in them.

    Args:
        client: of the Dask cluster.
        places: address of each span's worker.
    """

    def __init__(self, client: Any, places: Sequence[str]) -> None:
        self._client, self._places = client, places
        self._wait = import_module("distributed").wait
        self._spans: list[Any] = []
        self._chunks: deque[tuple[int, list[Any]]] = deque()

    def open(self, workload: Workload, seed: int) -> None:
        """Makes the spans, and waits until all are there."""
        bounds = bounds_of(len(workload.organizations), len(self._places)).tolist()
        # as bytes: arrays that Dask sends may lie at odd addresses
        pickled = pickle.dumps(replace(workload, history=None))
        sent = self._client.scatter(pickled, broadcast=True)
        beside = Counter(self._places)
        for place, (first, last) in zip(self._places, pairwise(bounds), strict=True):
            arguments = (sent, seed, first, last, beside[place], version("shapleyprio"))
            self._spans.append(self._submit(place, open_span, *arguments))
        for span in self._spans:
            self._finish(span)

    def run(self, ends: Sequence[int]) -> Iterator[int]:
        """Brings the spans through chunks of blocks.

        Args:
            ends: the first block of each chunk, and the end of the last one.

        Yields:
            How many blocks are behind all spans.
        """
        previous: Sequence[Any] = [None] * len(self._spans)
        for first, last in pairwise(ends):
            if len(self._chunks) == CHUNKS_AHEAD + len(self._spans):
                yield self._take_chunk()
            chunk: list[Any] = []
            for place, span, after in zip(self._places, self._spans, previous, strict=True):
                arguments = (span, first, last, chunk.copy(), after)
                chunk.append(self._submit(place, run_chunk, *arguments))
            self._chunks.append((last, chunk))
            previous = chunk
        while self._chunks:
            yield self._take_chunk()

    def schedule(self, seed: int) -> Schedule:
        """Returns the schedule of the coalition of all, when all chunks are behind the spans."""
        made = self._submit(self._places[-1], schedule_of_span, self._spans[-1], seed)
        self._finish(made)
        schedule: Schedule = made.result()
        return schedule

    def close(self) -> None:
        """Ends what is under way, and lets go of the spans."""
        under_way = [future for _, chunk in self._chunks for future in chunk]
        for future in reversed([*self._spans, *under_way]):  # Client.cancel would stumble over
            future.release()  # tasks that depend on a span and were let go

    def _submit(self, place: str, function: Any, *arguments: Any) -> Any:
        return self._client.submit(function, *arguments, workers=[place], pure=False)

    def _take_chunk(self) -> int:
        """Waits for the chunk that is furthest ahead, and lets go of what changed in it."""
        last, chunk = self._chunks[0]
        self._finish(chunk[-1])
        self._chunks.popleft()
        return last

    def _finish(self, future: Any) -> None:
        while True:
            try:
                self._wait(future, timeout=CHECK_SECONDS)
                break
            except TimeoutError:  # what was to be done by a worker that is gone waits forever
                gone = set(self._places) - set(self._client.nthreads())
                if gone:
                    raise DaskError(f"Dask's worker {min(gone)} is gone; start again") from None
        if future.status != "finished":
            future.result()  # raises


def open_span(
    pickled: bytes, seed: int, first: int, last: int, beside: int, of_version: str
) -> tuple[Workload, Span]:
    """Makes a span, on a worker that has so many."""
    own = version("shapleyprio")
    if own != of_version:
        raise DaskError(
            f"a worker has shapleyprio {own}, here is {of_version}; install the same there"
        )
    workload: Workload = pickle.loads(pickled)  # noqa: S301  # as are all of a worker's tasks
    block, jobs, k = ref_block(workload), jobs_of(workload), len(workload.organizations)
    limit = import_module("distributed").get_worker().memory_manager.memory_limit
    needed = beside * bytes_of(workload.owned, block, first, last)
    if limit is not None and needed > PART_OF_MEMORY * limit:
        raise DaskError(
            f"a worker needs {needed >> 20:,} MiB for {k} organizations, but may use only "
            f"{PART_OF_MEMORY:.0%} of the {limit >> 20:,} MiB that Dask allows it; give "
            "workers more memory, or take more workers"
        )
    record = record_of(workload, jobs, 2**k - 1, seed, wide=block.wide)
    length = workload.window.length
    return workload, Span(jobs, workload.owned, record, block, length, first, last)


def run_chunk(
    opened: tuple[Workload, Span], first: int, last: int, before: list[list[Changes]], _after: Any
) -> list[Changes]:
    """Brings a span through blocks, and returns what changed in it."""
    _, span = opened
    if span.done != first:
        raise DaskError("a worker was restarted, and its schedules are lost; start again")
    return [span.run_block([chunk[number] for chunk in before]) for number in range(last - first)]


def schedule_of_span(opened: tuple[Workload, Span], seed: int) -> Schedule:
    """Returns the schedule of the coalition of all, which is in the last span."""
    workload, span = opened
    return schedule_of_ref(workload, seed, span.world.state, span.world.record, 0.0)


def _places(client: Any) -> list[str]:
    """Returns where spans may be: one on each worker, then one more for each further thread."""
    try:
        client.wait_for_workers(1, timeout=FIRST_WORKER_SECONDS)
    except TimeoutError:
        raise DaskError("Dask's scheduler has no workers; start some with `dask worker`") from None
    threads = client.nthreads().items()
    places = sorted((thread, place) for place, count in threads for thread in range(count))
    return [place for _, place in places[:MOST_SPANS]]


@contextmanager
def _in_words() -> Iterator[None]:
    distributed = import_module("distributed")
    client = import_module("distributed.client")
    cancelled = (client.FutureCancelledError, client.FuturesCancelledError)
    try:
        yield
    except ModuleNotFoundError as error:
        raise DaskError(
            f"a Dask worker lacks {error.name}; install shapleyprio[cluster] there"
        ) from None
    except (distributed.KilledWorker, *cancelled, OSError) as error:
        raise DaskError(f"the Dask cluster failed: {error}; start again") from None
