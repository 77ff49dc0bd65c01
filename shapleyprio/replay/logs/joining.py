"""Puts the pieces of a log together: of one long file, or of several that overlap.

Slurm's accounting has one record for each number of a job and second of submission. An export of a
month has the records of all jobs that ran in it, so one that ran at the seam of two months is in
both, and may have ended in the later one only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count, filterfalse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.filtering import counted, taken, usable
from shapleyprio.replay.workloads.log import COLUMNS, UNKNOWN, Labels, Log, MalformedLine
from shapleyprio.slurm.text.federation import FIRST_FEDERATED

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
