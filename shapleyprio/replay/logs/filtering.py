"""Filters that the readers share, for malformed lines and for jobs that cannot be replayed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shapleyprio.common.errors import Remedy
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.workloads.log import COLUMNS, UNKNOWN, Labels, Log, MalformedLine
from shapleyprio.replay.workloads.workload import parts_of

MALFORMED_KEPT = 100
"""So many malformed lines are kept with their reasons; all are counted."""

UNKNOWN_PROCESSING_TIME = "unknown_processing_time"
ZERO_PROCESSING_TIME = "zero_processing_time"
UNKNOWN_PROCESSORS = "unknown_processors"
COUNTS_FOR_NOBODY = "counts_for_nobody"
MALFORMED = "malformed"
STEPS = "steps"


def check_lines(
    source: str, well_formed: int, malformed: tuple[MalformedLine, ...], *, strict: bool
) -> None:
    """Judges whether a log with malformed lines will do.

    Args:
        source: the log's file.
        well_formed: how many lines could be read.
        malformed: the first ones that could not.
        strict: a single malformed line is too many.

    Raises:
        LogError: it will not do, either because of `strict` or because no line could be read.
    """
    if not malformed:
        return
    first = f"{source}:{malformed[0].number}: {malformed[0].reason}"
    if strict:
        raise LogError(f"{first}; correct or remove the line, or read without strict")
    if well_formed == 0:
        raise LogError(f"{first}; and no other line can be read: is it in another format?")


def usable(log: Log) -> Log:
    """Leaves out, and counts, the jobs whose processing time or processors are unknown or zero.

    Args:
        log: without `placed`; UNKNOWN and 0 may stand in processing_time and processors.
    """
    ran = log.processing_time > 0
    counts = {
        UNKNOWN_PROCESSING_TIME: int((log.processing_time == UNKNOWN).sum()),
        ZERO_PROCESSING_TIME: int((log.processing_time == 0).sum()),
        UNKNOWN_PROCESSORS: int((ran & (log.processors <= 0)).sum()),
    }
    kept = taken(log, np.flatnonzero(ran & (log.processors > 0)))
    return replace(kept, left_out=dict(Counter(log.left_out) + Counter(counts)))


def released_in(log: Log, since: int | None, until: int | None) -> Log:
    """Returns the jobs of a log that were released in a stretch of time.

    Args:
        log: the log.
        since: second since the epoch from which on; None for no such bound.
        until: second before which; None for no such bound.

    Raises:
        LogError: the log's times have no dates.
    """
    if since is None and until is None:
        return log
    if log.epoch is None:
        raise LogError(f"{log.source}: its times have no dates", Remedy.SECONDS_OF_WINDOW)
    release = log.release + log.epoch
    inside = release >= (0 if since is None else since)
    if until is not None:
        inside &= release < until
    kept = np.flatnonzero(inside)
    placed = None if log.placed is None else parts_of(log.placed, kept)
    return replace(taken(log, kept), placed=placed)


def taken(log: Log, kept: NDArray[np.int64]) -> Log:
    """Returns some jobs of a log without `placed`, and the names that occur among them.

    Args:
        log: the log; each of its names occurs.
        kept: which jobs, each once, in their new order.
    """
    if len(kept) == len(log.job) and (kept[1:] > kept[:-1]).all():
        return log
    return replace(
        log,
        labels={name: _labels_taken(labels, kept) for name, labels in log.labels.items()},
        **{name: getattr(log, name)[kept] for name in COLUMNS},
    )


def counted(left_out: dict[str, int]) -> dict[str, int]:
    """Returns the reasons for which something was left out."""
    return {reason: count for reason, count in left_out.items() if count}


def _labels_taken(labels: Labels, kept: NDArray[np.int64]) -> Labels:
    codes = labels.codes[kept]
    used = np.zeros(len(labels.names) + 1, dtype=bool)  # the last one is for UNKNOWN
    used[codes] = True
    used[UNKNOWN] = False
    if used[:-1].all():
        return Labels(codes, labels.names)
    renumbered = np.where(used, np.cumsum(used) - 1, UNKNOWN).astype(np.int32)
    return Labels(renumbered[codes], tuple(labels.names[code] for code in np.flatnonzero(used)))
