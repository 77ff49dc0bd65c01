"""A log of jobs as its readers hand it over: columns, whatever the format was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.workloads.choices import Format
from shapleyprio.replay.workloads.layout import LogLayout

UNKNOWN = -1
"""What stands in a column of numbers where the log does not say."""

COLUMNS = ("job", "release", "start", "processing_time", "processors", "limit")
"""The columns of numbers that every log has."""


@dataclass(frozen=True, slots=True)
class Labels:
    """A column of names.

    Attributes:
        codes: int32[jobs], index into names; UNKNOWN where the log names nothing.
        names: each once.
    """

    codes: NDArray[np.int32]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordedProcessors:
    """Whose processors jobs really got: job i got the parts first[i] up to first[i + 1].

    Attributes:
        first: int64[jobs + 1].
        owners: the owner of each part.
        processors: int64[parts], how many processors of that owner's.
    """

    first: NDArray[np.int64]
    owners: Labels
    processors: NDArray[np.int64]


@dataclass(frozen=True, slots=True, order=True)
class MalformedLine:
    """A line that could not be read.

    Attributes:
        number: of the line in its file, counted from 1.
        reason: what is wrong with it.
        file: which one; empty if the log has only one.
    """

    number: int
    reason: str
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """Jobs with a known processing time and number of processors, in the log's order.

    All columns have one entry for each job; times are seconds.

    Attributes:
        source: the file or database it was read from.
        format: what it was read as.
        job: int64, the log's own number of the job; a requeued job has several entries.
        release: int64, when the job could have started at the earliest.
        start: int64, when it really started; UNKNOWN if the log does not say.
        processing_time: int64, above 0.
        processors: int64, above 0.
        limit: int64, the requested processing time, or that of the partition where the log does not
            say (`with_partition_limits`); UNKNOWN while the log is being read.
        labels: "user", "group", "queue", "partition", "account", "nodes" (the host list as
            written), "request" (resources as sacct writes them), or "organization" -> that column,
            as far as the format has it.
        placed: whose processors were used, where the log itself knows (the daemon's store).
        system_processors: how many processors the system had, where the log says.
        owned: organization -> processors that it brought when last seen, where the log knows.
        organizations: of its consortium, in the order by which ties are broken; empty where the log
            does not say.
        parents: organization -> its parent, where the log says.
        layout: nodes and accounts of its cluster, as far as they are known beside the jobs.
        epoch: seconds since 1970 of the log's second 0; None where the log does not say, so that
            its times have no dates.
        window: begin and end of the time of which it has what was executed, cut there; None where
            it has whole jobs.
        left_out: reason -> how many jobs or lines are missing here because of it.
        malformed: the first lines that could not be read; left_out["malformed"] counts all.
        cluster: whose jobs they are, where the log says.
        clusters: the logs of the clusters of a pool, whose jobs stand here one log after the other;
            names of partitions and nodes, `placed`, `owned` and `layout` are there alone. Empty for
            a log of one cluster.
        free_text: columns in which users may have written lines that look like records.
    """

    source: str
    format: Format
    job: NDArray[np.int64]
    release: NDArray[np.int64]
    start: NDArray[np.int64]
    processing_time: NDArray[np.int64]
    processors: NDArray[np.int64]
    limit: NDArray[np.int64]
    labels: Mapping[str, Labels]
    placed: RecordedProcessors | None = None
    system_processors: int | None = None
    owned: Mapping[str, int] = field(default_factory=dict)
    organizations: tuple[str, ...] = ()
    parents: Mapping[str, str] = field(default_factory=dict)
    layout: LogLayout = field(default_factory=LogLayout)
    epoch: int | None = None
    window: tuple[int, int] | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    malformed: tuple[MalformedLine, ...] = ()
    cluster: str = ""
    clusters: tuple[Log, ...] = ()
    free_text: Sequence[str] = ()
