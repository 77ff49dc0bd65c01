"""Logs of several clusters as the one log of a pool, and whose processors and jobs are where.

Clusters number their jobs, name their nodes and partitions and let organizations claim them each
for itself; users, accounts and organizations are the same if their names are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shapleyprio.config import Organization
from shapleyprio.fairness.runs import split
from shapleyprio.replay.errors import LogError, WorkloadError
from shapleyprio.replay.logs.assembling import Joiner, counted, taken
from shapleyprio.replay.workloads.choices import ALL_CLUSTERS
from shapleyprio.replay.workloads.layout import LogLayout
from shapleyprio.replay.workloads.log import UNKNOWN, Labels, Log, RecordedProcessors
from shapleyprio.replay.workloads.nodes import most_in_use
from shapleyprio.replay.workloads.organizations import Claimed, claimed_by, consortium_of
from shapleyprio.replay.workloads.workload import Consortium

SHARED = ("user", "group", "account", "organization")
"""Columns whose names mean the same at all clusters."""

UNKNOWN_CLUSTER = "unknown_cluster"


def in_clusters(log: Log, wanted: Sequence[str] = ()) -> Log:
    """Returns a log whose jobs may name their clusters as the log of these.

    Args:
        log: with the column "cluster", or of one cluster that it does not name.
        wanted: clusters to take; all if empty.

    Raises:
        LogError: it has no jobs of one of these.
    """
    column = log.labels.get("cluster")
    named = column.names if column else ()
    for name in wanted:
        if name not in named:
            raise LogError(
                f"{log.source}: its jobs are of {', '.join(sorted(named)) or 'no named cluster'}; "
                f"{name} is not among them"
            )
    if column is None:
        return log
    own = {name: labels for name, labels in log.labels.items() if name != "cluster"}
    plain = replace(log, labels=own)
    if len(named) < 2:
        return replace(plain, cluster="".join(named))
    logs = [
        replace(taken(plain, np.flatnonzero(column.codes == named.index(name))), cluster=name)
        for name in sorted(set(wanted or named))
    ]
    unknown = {UNKNOWN_CLUSTER: int((column.codes == UNKNOWN).sum())}
    return replace(
        logs[0] if len(logs) == 1 else pool_of_logs(log.source, logs),
        left_out=counted({**log.left_out, **unknown}),
        malformed=log.malformed,
    )


def pool_of_logs(source: str, logs: Sequence[Log]) -> Log:
    """Returns the jobs of several clusters as one log.

    Args:
        source: what they are called together.
        logs: of one cluster each, with the same columns.
    """
    joiner = Joiner(several=False)
    for log in logs:
        shared = {name: log.labels[name] for name in SHARED if name in log.labels}
        joiner.add(replace(log, labels=shared, placed=None), np.zeros((0, 0), dtype=np.int64))
    apart = tuple(replace(log, source=f"{source}, {log.cluster}") for log in logs)
    return replace(
        joiner.joined(source, ()),
        cluster="",
        owned={},
        layout=LogLayout(),
        clusters=apart,
        window=logs[0].window,
    )


def claims_of_files(files: Mapping[str, Path], log: Log) -> list[Claimed]:
    """Reads files with `[[organization]]` tables for the clusters of a log.

    Args:
        files: cluster, or `ALL_CLUSTERS`, -> its file.
        log: of one cluster or several.

    Raises:
        WorkloadError: a file is missing, of no cluster, or says how many `processors` an
            organization brings at several clusters.
        ConfigError: as `claimed_by`.
    """
    logs = log.clusters or (log,)
    strange = files.keys() - {ALL_CLUSTERS, *(one.cluster for one in logs)}
    if strange:
        held = ", ".join(one.cluster for one in logs if one.cluster) or "no named cluster"
        raise WorkloadError(
            f"{log.source}: its jobs are of {held}, and there are organizations for "
            f"{', '.join(sorted(strange))}; name the clusters as Slurm does, in its column Cluster"
        )
    found = []
    for one in logs:
        file = files.get(one.cluster, files.get(ALL_CLUSTERS))
        if file is None:
            raise WorkloadError(f"{one.source}: no file names its organizations; add one")
        found.append(claimed_by(file, one))
        if one.cluster not in files and len(logs) > 1:
            _refuse_ambiguous(file, found[-1].organizations)
    return found


def consortium_of_claims(claims: Sequence[Claimed]) -> Consortium:
    """Applies what is configured for each cluster of a log, as `consortium_of` says.

    Raises:
        WorkloadError, LogError: as `consortium_of`, but a pool may have clusters with jobs of
            guests alone.
    """
    if len(claims) == 1:
        return consortium_of(*claims[0])
    found = [consortium_of(*one, may_be_idle=True) for one in claims]
    if all((one.organization == UNKNOWN).all() for one in found):
        for one in claims:
            consortium_of(*one)  # says what is wrong
    return pooled_consortium(found)


def consortium_named(
    log: Log, names: Iterable[str], parents: Mapping[str, str] | None = None
) -> Consortium:
    """Returns whose the jobs and processors are, where the log itself says it by name.

    Args:
        log: of one cluster or several.
        names: of the organizations that count, in the order by which ties are broken.
        parents: organization -> its parent, of those that have one; None if none is known of.

    Raises:
        WorkloadError: no job belongs to any of them.
    """
    members = [Organization(name=name, parent=(parents or {}).get(name)) for name in names]
    if not log.clusters:
        return consortium_of(log, members)
    return pooled_consortium(
        [consortium_of(one, members, may_be_idle=True) for one in log.clusters]
    )


def _refuse_ambiguous(file: Path, organizations: Sequence[Organization]) -> None:
    said = [one.name for one in organizations if one.processors is not None]
    if said:
        raise WorkloadError(
            f"{file}: says how many `processors` {', '.join(said)} brings, but not at which "
            "cluster; give each cluster a file of its own, as CLUSTER=FILE"
        )


def pooled_consortium(consortia: Sequence[Consortium]) -> Consortium:
    """Adds the processors that organizations bring at several clusters.

    Args:
        consortia: of each cluster of a pool, in the order of its log. Organizations are the same
            if their names are; those of the first come first.
    """
    names = tuple(dict.fromkeys(name for one in consortia for name in one.organizations))
    apart = tuple(_among(names, one) for one in consortia)
    placed = [one.placed for one in apart if one.placed is not None]
    return Consortium(
        organizations=names,
        owned=np.sum([one.owned for one in apart], axis=0),
        organization=np.concatenate([one.organization for one in apart]),
        parents={name: one for each in reversed(apart) for name, one in each.parents.items()},
        placed=_joined(placed) if len(placed) == len(apart) else None,
        clusters=apart,
    )


def dealt_to_clusters(log: Log, consortium: Consortium) -> Consortium:
    """Spreads the processors of dealt organizations over the clusters of a pool.

    They are in proportion to what was in use at each at one time.

    Args:
        log: of the pool.
        consortium: of all its jobs.
    """
    sizes = {one.cluster: _most_in_use(one) for one in log.clusters}
    shares = [split(owned, list(sizes), sizes) for owned in consortium.owned.tolist()]
    ends = np.cumsum([len(one.job) for one in log.clusters])
    apart = tuple(
        Consortium(
            organizations=consortium.organizations,
            owned=np.array([share[one.cluster] for share in shares], dtype=np.int64),
            organization=organization,
        )
        for one, organization in zip(
            log.clusters, np.split(consortium.organization, ends[:-1]), strict=True
        )
    )
    return replace(consortium, clusters=apart)


def _most_in_use(log: Log) -> int:
    jobs = len(log.job)
    everybody = Labels(np.zeros(jobs, dtype=np.int32), ("",))
    held = RecordedProcessors(np.arange(jobs + 1), everybody, log.processors)
    return int(most_in_use(log, held)[0])


def _among(names: tuple[str, ...], consortium: Consortium) -> Consortium:
    """Returns the same with all organizations of a pool."""
    code = np.array([*map(names.index, consortium.organizations), UNKNOWN], dtype=np.int32)
    owned = np.zeros(len(names), dtype=np.int64)
    owned[code[:-1]] = consortium.owned
    placed, nodes = consortium.placed, consortium.nodes
    return replace(
        consortium,
        organizations=names,
        owned=owned,
        organization=code[consortium.organization],
        placed=None if placed is None else replace(placed, owners=_recoded(placed, code, names)),
        nodes=None if nodes is None else replace(nodes, owner=code[nodes.owner]),
    )


def _recoded(placed: RecordedProcessors, code: NDArray[np.int32], names: tuple[str, ...]) -> Labels:
    return Labels(code[placed.owners.codes], names)


def _joined(placed: Sequence[RecordedProcessors]) -> RecordedProcessors:
    counts = np.concatenate([np.diff(one.first) for one in placed])
    return RecordedProcessors(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        Labels(np.concatenate([one.owners.codes for one in placed]), placed[0].owners.names),
        np.concatenate([one.processors for one in placed]),
    )
