"""Makes a log of what a reader found: leaves out what cannot be replayed, and joins pieces.

Pieces are those of one long file, or of several that overlap. Slurm's accounting has one record for
each number of a job and second of submission. An export of a month has the records of all jobs that
ran in it, so one that ran at the seam of two months is in both, and may have ended in the later one
only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count, filterfalse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapleyprio.common.errors import Remedy
from shapleyprio.common.wording import HOUR
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.workloads.log import COLUMNS, UNKNOWN, Labels, Log, MalformedLine
from shapleyprio.slurm.text.listed import FIRST_FEDERATED

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
        log: the log, without `placed`.
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
    return taken(log, np.flatnonzero(inside))


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


def with_partition_limits(log: Log) -> Log:
    """Gives each job without a limit its partition's.

    Slurm gives it the partition's MaxTime, which a log does not say. It is not below any job's
    limit or processing time there, so the longest of them counts, rounded up to whole hours. Jobs
    of which the log names no partition are in one of their own.

    Args:
        log: without jobs of unknown processing time.
    """
    lacking = log.limit == UNKNOWN
    if not lacking.any():
        return log
    where = np.zeros(len(log.job), dtype=np.int64)
    for name in ("cluster", "partition"):
        if name in log.labels:
            labels = log.labels[name]
            where = where * (len(labels.names) + 1) + labels.codes - UNKNOWN
    partition = np.unique(where, return_inverse=True)[1]
    longest = np.zeros(int(partition.max()) + 1, dtype=np.int64)
    np.maximum.at(longest, partition, np.maximum(log.limit, log.processing_time))
    hours = -(-longest // HOUR)
    return replace(log, limit=np.where(lacking, HOUR * hours[partition], log.limit))


Numbers = NDArray[np.int64]

REPEATED = "repeated"
"""Why records are left out that another file has as well."""

_KEYS = "keys"


class Joiner:
    """Takes pieces in their order, and makes one log of them.

    Attributes:
        several: whether they may come from several files, so that records may come twice.
    """

    def __init__(self, *, several: bool) -> None:
        self.several = several
        self._last: Log | None = None
        self._columns: dict[str, list[Any]] = {}
        self._names: dict[str, dict[str, int]] = {}
        self._left_out: Counter[str] = Counter()
        self._jobs = 0

    def add(self, log: Log, keys: Numbers) -> None:
        """Takes the next piece.

        Args:
            log: the records of well-formed lines; a label that other pieces lack is unknown there.
            keys: int64[jobs, 4], what no two records share: the job's number, a digest of what
                follows it, the second of submission, and a digest of who numbers jobs.
        """
        log = log if self.several else usable(log)
        for name in COLUMNS:
            self._columns.setdefault(name, []).append(getattr(log, name))
        for name in log.labels.keys() - self._names.keys():
            self._names[name] = {}
            self._columns[name] = [np.full(self._jobs, UNKNOWN, dtype=np.int32)]
        for name in self._names:
            labels = log.labels.get(name) or Labels(np.full(len(log.job), UNKNOWN, np.int32), ())
            known = self._names[name]
            known.update(zip(filterfalse(known.__contains__, labels.names), count(len(known))))
            codes = np.fromiter(map(known.__getitem__, labels.names), np.int32, len(labels.names))
            renumbered = np.append(codes, np.int32(UNKNOWN))[labels.codes]
            self._columns[name].append(renumbered)
        self._jobs += len(log.job)
        if self.several:
            self._columns.setdefault(_KEYS, []).append(keys)
        self._left_out.update(log.left_out)
        self._last = log

    def leave_out(self, reason: str, count: int) -> None:
        """Counts records of which a piece has nothing."""
        self._left_out[reason] += count

    def joined(self, source: str, malformed: tuple[MalformedLine, ...]) -> Log:
        """Returns the log; each record is in it once, if possible as it was after its end."""
        assert self._last is not None
        log = replace(
            self._last,
            source=source,
            labels={
                name: Labels(self._whole(name), tuple(self._names[name])) for name in self._names
            },
            malformed=malformed,
            left_out=counted(dict(self._left_out)),
            **{name: self._whole(name) for name in COLUMNS},
        )
        if not self.several:
            return log
        kept = _of_each_one(self._whole(_KEYS), log)
        left_out = {**log.left_out, REPEATED: len(log.job) - len(kept)}
        return usable(replace(taken(log, kept), left_out=left_out))

    def _whole(self, name: str) -> Any:
        parts = self._columns.pop(name)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _of_each_one(keys: Numbers, log: Log) -> NDArray[np.int64]:
    """Returns the place of one of equal rows each, ascending: the last one that has ended.

    A federated job has a row at each cluster, under one number and submission; it ran at one of
    them, and its rows at the others (``REVOKED``) ended without having begun. Where only one
    cluster is named, the rows without a name are its own; one with the name is taken.

    Raises:
        LogError: some are pieces of a job, as ``sacct --truncate`` cuts them.
    """
    standing = np.select([log.processing_time > 0, log.processing_time == UNKNOWN], [2, 1])
    numbering = keys[:, -1]
    named = numbering[numbering != 0]
    if len(named) and named.min() == named.max():
        keys = keys[:, :-1]
    order = np.lexsort((numbering, standing, *keys.T))
    differs = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    moved = np.diff(log.start[order]) != 0
    cut = ~differs & moved & (standing[order[:-1]] == 2) & (log.job[order[1:]] < FIRST_FEDERATED)
    if cut.any():
        raise LogError(
            f"{log.source}: job {log.job[order[1:]][cut][0]} begins at another time in another "
            "file; ask sacct without --truncate (-T)"
        )
    last: NDArray[np.int64] = order[np.append(differs, True)] if len(order) else order
    return np.sort(last)
