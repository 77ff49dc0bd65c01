"""Reads what really ran, and on whose processors, from the daemon's own store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from shapleyprio.fairness.tenure import NOBODY, Tenure
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.assembling import (
    COUNTS_FOR_NOBODY,
    UNKNOWN_PROCESSING_TIME,
    UNKNOWN_PROCESSORS,
    ZERO_PROCESSING_TIME,
    counted,
    with_partition_limits,
)
from shapleyprio.replay.logs.clusters import pool_of_logs
from shapleyprio.replay.progress import ProgressCallback
from shapleyprio.replay.workloads.layout import LoggedNode, LogLayout
from shapleyprio.replay.workloads.log import UNKNOWN, Labels, Log, RecordedProcessors
from shapleyprio.store import AllocatedRun, ClusterStore, Store, StoreError, UserAfterEnd, View

_SHOW_EVERY = 5000


def read_stored(
    url: str,
    *,
    clusters: Sequence[str] = (),
    span: tuple[int | None, int | None] = (None, None),
    progress: ProgressCallback | None = None,
    called: str | None = None,
) -> Log:
    """Reads the finished runs of a store, sorted by start and job; nothing is written to it.

    Of a span it is what was executed in it, as `shapleyprio.replay.logs.window` has it. Runs that
    the daemon has pruned, because they are older than its horizon, are not there, and those that
    had begun before it first looked count from then.

    Args:
        url: of the store, as SQLAlchemy has it, such as ``sqlite:////var/lib/store.db``.
        clusters: whose runs; none if the store holds only one cluster. Several make the log of a
            pool, one cluster after the other.
        span: seconds since the epoch from which on, and before which, they were executed; None for
            as far as is known.
        progress: called now and then with the number of runs read.
        called: what people know the store as; None for its URL.

    Raises:
        LogError: the store cannot be read, or it is not clear which cluster is meant.
    """
    try:
        with Store.open(url, called=called) as store:
            ledgers = _clusters(store, clusters)
            window = None if span == (None, None) else _window(store.name, ledgers, *span)
            return log_of_ledgers(store.name, ledgers, window, progress)
    except StoreError as error:
        raise LogError(str(error)) from error


def users_after_end(
    ledgers: Iterable[ClusterStore], begin: int, end: int, most: int
) -> list[UserAfterEnd]:
    """Returns whose runs that ended in [begin, end) went on after that, the worst first.

    Args:
        ledgers: whose runs.
        begin: seconds since the epoch.
        end: likewise.
        most: so many users at most.

    Raises:
        StoreError: the store cannot be read.
    """
    found: dict[tuple[str, str], UserAfterEnd] = {}
    for ledger in ledgers:
        with ledger.reading() as view:
            here = view.runs.users_after_end(begin, end, None)
        for one in here:
            before = found.get((one.user, one.organization))
            found[one.user, one.organization] = one if before is None else before + one
    return sorted(
        found.values(), key=lambda one: (-one.processor_seconds, one.user, one.organization)
    )[:most]


def log_of_ledgers(
    source: str,
    ledgers: Iterable[ClusterStore],
    window: tuple[int, int] | None,
    progress: ProgressCallback | None = None,
) -> Log:
    """Returns what the ledgers of one game hold as a log.

    Args:
        source: what to call where it comes from.
        ledgers: of a cluster, or of those of a pool.
        window: begin and end of what is taken, in seconds since the epoch; None for all.
        progress: called now and then with the number of runs read.
    """
    logs = []
    for ledger in ledgers:
        with ledger.reading() as view:
            runs = view.runs.all_runs() if window is None else _executed(view, *window)
            log = replace(log_of_runs(source, runs, progress), window=window)
            logs.append(_with_owners(view, log))
    return logs[0] if len(logs) == 1 else pool_of_logs(source, logs)


def _executed(view: View, begin: int, end: int) -> Iterator[AllocatedRun]:
    """Yields what was executed in [begin, end)."""
    for placed in view.runs.runs_alive_after(begin):
        yield from executed_between(placed, begin, end)


def members_of(log: Log) -> tuple[str, ...]:
    """Returns the organizations whose jobs or processors a store's log has, as they come."""
    found: dict[str, None] = {}
    for one in log.clusters or (log,):
        found |= dict.fromkeys(one.labels["organization"].names)
        found |= dict.fromkeys(one.placed.owners.names if one.placed is not None else ())
    return tuple(found)


def _with_owners(view: View, log: Log) -> Log:
    history = view.history
    begin, end = log.window or (0, None)
    standings = history.latest_standings(before=end) or history.latest_standings()
    owned = {row.organization: row.processors for row in standings}
    layout = LogLayout(
        nodes={
            row.name: LoggedNode(row.processors, row.partitions)
            for row in view.observed.node_rows()
            if row.processors  # of one that is gone what it last was
        },
        parents={row.name: row.parent for row in view.observed.account_rows()},
    )
    if gone := {*members_of(log)} - owned.keys():
        tenures = (one for one in view.ledger.tenures() if one.lasts_in(begin, end))
        owned |= _left_behind(tenures, gone, layout.nodes)
    return replace(log, owned=owned, layout=layout, cluster=view.cluster)


def _left_behind(
    tenures: Iterable[Tenure], gone: Collection[str], nodes: Mapping[str, LoggedNode]
) -> dict[str, int]:
    """Returns how many processors those that are gone brought: of nodes without another owner.

    What a successor had by the end is among its own.
    """
    last: dict[str, str] = {}
    brought: dict[str, int] = {}
    for row in tenures:
        if row.kind == "node" and row.organization != NOBODY:
            last[row.name] = row.organization
            brought[row.organization] = 0
    for node, owner in last.items():
        brought[owner] += nodes[node].processors if node in nodes else 0
    return {name: brought[name] for name in gone if name in brought}


def _window(
    source: str, ledgers: Sequence[ClusterStore], since: int | None, until: int | None
) -> tuple[int, int]:
    """Returns begin and end of what is known of a span at all ledgers."""
    begin, end = since or 0, until
    for ledger in ledgers:
        with ledger.reading() as view:
            known = view.ledger.watermark()
        if known is None:
            continue
        begin = max(begin, known.opened, known.pruned_until)
        end = known.observed_until if end is None else min(end, known.observed_until)
    if end is None or begin >= end:
        raise LogError(f"{source}: holds nothing of that time; see --since and --until")
    return begin, end


def executed_between(placed: AllocatedRun, begin: int, end: int) -> Iterator[AllocatedRun]:
    """Yields what was executed of a run in [begin, end), as a run of its own, if anything was.

    Its release is not before the window, and after the begin unless it ran then.
    """
    run, placements = placed
    first = max(run.begin, begin)
    behind = min(second for second in (run.end, run.paused_at, end) if second is not None)
    if behind <= first:
        return
    release = begin if run.begin <= begin else max(run.release, begin + 1)
    limit = None if run.limit is None else max(run.limit - (first - run.begin), 1)
    yield (
        replace(run, release=release, limit=limit, begin=first, end=behind),
        tuple(
            replace(place, begin=first)
            for place in placements
            if place.begin <= first and (place.end is None or place.end > first)
        ),
    )


def _clusters(store: Store, wanted: Sequence[str]) -> list[ClusterStore]:
    """Returns the clusters that are meant, by name."""
    known = store.clusters()
    names = sorted(set(wanted)) or known
    strange = [name for name in names if name not in known]
    if (len(names) != 1 and not wanted) or strange:
        held = ", ".join(known) or "no cluster yet"
        asked = (
            f"{', '.join(strange)} is not among them"
            if strange
            else "name one cluster, or those of a pool"
        )
        raise LogError(f"{store.name}: the store holds {held}; {asked}")
    return [store.cluster(name) for name in names]


class _Codes(dict[str, int]):
    """Numbers names as they come; NOBODY is UNKNOWN."""

    def __missing__(self, name: str) -> int:
        if name != NOBODY:
            return self.setdefault(name, len(self))
        return UNKNOWN

    def labels(self, codes: Iterable[int]) -> Labels:
        return Labels(np.fromiter(codes, dtype=np.int32), tuple(self))


class _Row(NamedTuple):
    """A finished run, in the order in which runs are sorted; names as codes."""

    start: int
    job: int
    release: int
    processing_time: int
    processors: int
    limit: int
    account: int
    user: int
    organization: int
    parts: tuple[tuple[int, int], ...]
    """Owner and processors."""


def log_of_runs(
    source: str, runs: Iterable[AllocatedRun], progress: ProgressCallback | None = None
) -> Log:
    """Returns the finished ones among runs as a log, sorted by start and job.

    Args:
        source: what to call where they come from.
        runs: each with its placements, of which those from its begin on count.
        progress: called now and then with the number of runs read.
    """
    show = progress or (lambda _: None)
    reasons = (UNKNOWN_PROCESSING_TIME, ZERO_PROCESSING_TIME, UNKNOWN_PROCESSORS, COUNTS_FOR_NOBODY)
    left_out = dict.fromkeys(reasons, 0)
    names = {name: _Codes() for name in ("account", "user", "organization", "owner")}
    rows, count = [], 0
    for count, (run, placements) in enumerate(runs, start=1):
        if count % _SHOW_EVERY == 0:
            show(count)
        processors = sum(run.processors.values())
        if run.end is None:
            left_out[UNKNOWN_PROCESSING_TIME] += 1
        elif run.end <= run.begin:
            left_out[ZERO_PROCESSING_TIME] += 1
        elif processors <= 0:
            left_out[UNKNOWN_PROCESSORS] += 1
        elif not placements:  # its account takes no part
            left_out[COUNTS_FOR_NOBODY] += 1
        else:
            at_begin = [place for place in placements if place.begin == run.begin]
            organization = at_begin[0].organization if at_begin else NOBODY
            rows.append(
                _Row(
                    start=run.begin,
                    job=run.key.job_id,
                    release=run.release,
                    processing_time=run.end - run.begin,
                    processors=processors,
                    limit=UNKNOWN if run.limit is None else run.limit,
                    account=names["account"][run.account],
                    user=names["user"][run.user],
                    organization=names["organization"][organization],
                    parts=tuple((names["owner"][at.owner], at.processors) for at in at_begin),
                )
            )
    show(count)
    rows.sort()
    return _of_rows(source, rows, names, counted(left_out))


def _of_rows(
    source: str, rows: list[_Row], names: dict[str, _Codes], left_out: dict[str, int]
) -> Log:
    numbered = len(_Row._fields) - 1
    numbers = np.array([row[:-1] for row in rows], dtype=np.int64).reshape(-1, numbered).T
    columns = dict(zip(_Row._fields, numbers, strict=False))
    parts = [part for row in rows for part in row.parts]
    log = Log(
        source=source,
        format="store",
        epoch=0,
        job=columns["job"],
        release=columns["release"],
        start=columns["start"],
        processing_time=columns["processing_time"],
        processors=columns["processors"],
        limit=columns["limit"],
        labels={
            name: names[name].labels(columns[name].tolist())
            for name in ("account", "user", "organization")
        },
        placed=RecordedProcessors(
            first=np.cumsum([0, *(len(row.parts) for row in rows)], dtype=np.int64),
            owners=names["owner"].labels(owner for owner, _ in parts),
            processors=np.array([processors for _, processors in parts], dtype=np.int64),
        ),
        left_out=left_out,
    )
    return with_partition_limits(log)
