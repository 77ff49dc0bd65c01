"""The jobs of a rehearsal: some days of a site's accounting, and who owns what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shapleyprio.lab.rehearsal.fewer_nodes import with_fewer_nodes
from shapleyprio.lab.rehearsal.plan import SiteJob, SitePlan
from shapleyprio.lab.rehearsal.site import SiteSlurm
from shapleyprio.lab.rehearsal.site_files import SiteError
from shapleyprio.lab.rehearsal.slurm_conf import NAME
from shapleyprio.lab.rehearsal.taken_over import GPU
from shapleyprio.lab.rehearsal.usage import LONGEST_SECONDS, half_life_of, usage_before
from shapleyprio.lab.trial.plan import as_slurm_runs_it
from shapleyprio.replay.logs.clusters import claims_of_files, consortium_of_claims
from shapleyprio.replay.workloads.choices import ALL_CLUSTERS
from shapleyprio.replay.workloads.doubts import refuse_nonsense, refuse_unknown
from shapleyprio.replay.workloads.layout import LogLayout
from shapleyprio.replay.workloads.log import UNKNOWN, Log
from shapleyprio.replay.workloads.workload import (
    Consortium,
    Window,
    Workload,
    jobs_of,
    with_history,
    workload_of,
)
from shapleyprio.slurm.text.values import UnreadableError, tres

NOBODY = "nobody"
"""Has the nodes and the jobs of no organization; they are on the cluster all the same."""

CARRIED_SECONDS = 60
"""After those that ran when the window began come those that waited then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteJobs:
    """The jobs of a rehearsal.

    Attributes:
        log: that they are from, with what was under way when the window began.
        plan: how they are put on the cluster.
        started: int64[jobs], when each really started, from the window's begin; UNKNOWN if not
            in it.
        counted: bool[jobs], those released in the days that are asked for.
        other_partition: how many jobs run in the default partition since theirs is gone.
    """

    log: Log
    plan: SitePlan
    started: NDArray[np.int64]
    counted: NDArray[np.bool_]
    other_partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """What to rehearse; seconds since the epoch.

    Attributes:
        begin: of the window; what is released until `since` only warms up.
        since: from then on jobs count.
        until: the window's end.
    """

    begin: int
    since: int
    until: int


def last_days(log: Log, seconds: int, *, since: int | None, warm_up: int) -> Days:
    """Returns what to rehearse of a log.

    Args:
        log: all jobs.
        seconds: how long jobs count.
        since: from when on; None for the last ones of the log.
        warm_up: seconds before that.

    Raises:
        SiteError: the log has no jobs then.
    """
    if log.epoch is None or not len(log.release):
        raise SiteError(f"{log.source}: has no jobs with dates; give what sacct prints")
    first, last = int(log.release.min()), int(log.release.max()) + 1
    since = max(last - seconds, first) if since is None else since - log.epoch
    if not first - seconds < since < last:
        raise SiteError(f"{log.source}: no job was released on these days")
    return Days(begin=since - warm_up, since=since, until=since + seconds)


def site_jobs(
    log: Log, site: SiteSlurm, organizations: Path, days: Days, *, max_nodes: int
) -> SiteJobs:
    """Takes the jobs of some days out of a log.

    Args:
        log: of one cluster, with accounts.
        site: its configuration.
        organizations: file with their tables.
        days: to rehearse.
        max_nodes: on which to play it, each of several like ones where the site has more.

    Raises:
        ReplayError, ConfigError: the log, the site and the organizations do not go together.
    """
    log = _of_the_site(log, site)
    carried = _under_way(log, days)
    claims = claims_of_files({ALL_CLUSTERS: organizations}, carried)
    members = consortium_of_claims(claims)
    refuse_unknown(claims, members, ())
    consortium, owners, nobody = _with_nobody(members, site)
    window = Window(start=days.begin, length=days.until - days.begin)
    recorded = workload_of(carried, consortium, window=window, wide="rigid", backfill="easy")
    refuse_nonsense(claims, members, recorded, ("no-organization", "utilization"))
    conf, together = with_fewer_nodes(site.conf, owners, max_nodes)
    site, owners = replace(site, conf=conf), {node: owners[node] for node in conf.nodes}
    names, other_partition = _names(carried, site, recorded.position, together)
    recorded, names = _that_fit(recorded, names, site)
    workload = as_slurm_runs_it(with_history(recorded, carried))
    started, counted = recorded.start, log.release[recorded.position] >= days.since
    if not counted.any():
        raise SiteError(f"{log.source}: no job was released on these days; name others")
    plan = SitePlan(
        site=site,
        workload=workload,
        jobs=names,
        owners=owners,
        nobody=nobody,
        usage=_usage(log, consortium, site, days.begin),
    )
    return SiteJobs(
        log=carried,
        plan=plan,
        started=np.where((started >= 0) & (started < window.length), started, UNKNOWN),
        counted=counted,
        other_partition=other_partition,
    )


def _of_the_site(log: Log, site: SiteSlurm) -> Log:
    """Returns a log that knows the site's nodes and accounts."""
    if log.clusters:
        names = ", ".join(one.cluster for one in log.clusters)
        raise SiteError(f"{log.source}: has jobs of {names}; give those of one cluster")
    if "account" not in log.labels:
        raise SiteError(f"{log.source}: names no accounts, so shares are not known")
    parents = site.associations.parents or log.layout.parents
    return replace(log, layout=LogLayout(nodes=site.conf.layout, parents=parents))


def _under_way(log: Log, days: Days) -> Log:
    """Returns a log in which what ran or waited when the window began is released then.

    What ran has the time left to it.
    """
    begin, end = days.begin, log.start + log.processing_time
    before = (log.release < begin) & (log.start != UNKNOWN)
    ran = before & (log.start < begin) & (end > begin)
    waited = before & (log.start >= begin)
    left = np.where(ran, end - begin, log.processing_time)
    limit = np.where(ran & (log.limit != UNKNOWN), log.limit - (begin - log.start), log.limit)
    return replace(
        log,
        release=np.where(ran, begin, np.where(waited, begin + CARRIED_SECONDS, log.release)),
        start=np.where(ran, begin, log.start),
        processing_time=left,
        limit=np.where(limit == UNKNOWN, UNKNOWN, np.maximum(limit, left)),
    )


def _with_nobody(
    consortium: Consortium, site: SiteSlurm
) -> tuple[Consortium, Mapping[str, int], int | None]:
    """Adds one that has the nodes and jobs of no organization, if there are such.

    Returns:
        all organizations, owners of nodes, and the index of that one.
    """
    count = len(consortium.organizations)
    owners = dict.fromkeys(site.conf.nodes, UNKNOWN)
    if consortium.nodes is not None:
        named = zip(consortium.nodes.names, consortium.nodes.owner.tolist(), strict=True)
        owners |= {node: owner for node, owner in named if node in owners}
    sizes = {name: node.processors for name, node in site.conf.nodes.items()}
    _deal_nodes(owners, sizes, consortium.owned.tolist())
    needed = UNKNOWN in owners.values() or bool((consortium.organization == UNKNOWN).any())
    owners = {node: count if owner == UNKNOWN else owner for node, owner in owners.items()}
    owned = np.zeros(count + needed, dtype=np.int64)
    for node, owner in owners.items():
        owned[owner] += sizes[node]
    organization = np.where(
        consortium.organization == UNKNOWN, count, consortium.organization
    ).astype(np.int32)
    everybody = Consortium(
        organizations=(*consortium.organizations, *([NOBODY] if needed else [])),
        owned=owned,
        organization=organization,
        parents=consortium.parents,
    )
    return everybody, owners, count if needed else None


def _deal_nodes(owners: dict[str, int], sizes: Mapping[str, int], owned: Sequence[int]) -> None:
    """Gives organizations that name processors and no nodes about as many of unowned nodes."""
    free = [node for node, owner in owners.items() if owner == UNKNOWN]
    for u, processors in enumerate(owned):
        missing = 0 if u in owners.values() else processors
        while free and missing > sizes[free[0]] // 2:
            node = free.pop(0)
            owners[node] = u
            missing -= sizes[node]


def _usage(
    log: Log, consortium: Consortium, site: SiteSlurm, begin: int
) -> Mapping[tuple[str, str, int], float]:
    """Returns account, user and organization -> usage from before; without what is next to none."""
    try:
        half_life = half_life_of(site.conf.settings.get("PriorityDecayHalfLife", ""))
    except ValueError:
        raise SiteError(f"{site.conf.file}: PriorityDecayHalfLife: is not a time") from None
    used = usage_before(log, begin, half_life)
    known = np.flatnonzero(used)
    leaves = zip(
        (account or NOBODY for account in _column_of_names(log, "account", known)),
        _column(log, "user", known),
        consortium.organization[known].tolist(),
        strict=True,
    )
    sums: dict[tuple[str, str, int], float] = {}
    for leaf, amount in zip(leaves, used[known].tolist(), strict=True):
        sums[leaf] = sums.get(leaf, 0.0) + amount
    least = max(sums.values(), default=0.0) / (2 * LONGEST_SECONDS)
    return {leaf: amount for leaf, amount in sums.items() if amount > least}


def _names(
    log: Log, site: SiteSlurm, jobs: NDArray[np.int64], together: int
) -> tuple[list[SiteJob], int]:
    """Returns what jobs name, and how many of them name a partition that is gone.

    Args:
        log: that they are from.
        site: on which they run.
        jobs: which.
        together: how many nodes of the log are one there.
    """
    accounts, qos_of = (_column_of_names(log, label, jobs) for label in ("account", "qos"))
    users, partitions = (_column(log, label, jobs) for label in ("user", "partition"))
    asked = [_request(log, text) for text in _column(log, "request", jobs)]
    features = _column(log, "features", jobs)
    there = {name for name, partition in site.conf.partitions.items() if partition.nodes}
    other = sum(partition not in there for partition in partitions)
    return [
        SiteJob(
            account=account or NOBODY,
            user=user,
            partition=partition if partition in there else site.conf.default,
            qos=qos,
            memory=request.get("mem", 0),
            nodes=-(-request.get("node", 0) // together),
            gpus=_gpus(request),
            features=wanted,
        )
        for account, user, partition, qos, request, wanted in zip(
            accounts, users, partitions, qos_of, asked, features, strict=True
        )
    ], other


def _column_of_names(log: Log, label: str, jobs: NDArray[np.int64]) -> list[str]:
    """Returns accounts or QOS.

    Raises:
        SiteError: one is no name of Slurm's.
    """
    column = _column(log, label, jobs)
    for name in set(column):
        if name and not NAME.fullmatch(name):
            raise SiteError(f"{log.source}: {label}: {name[:80]!r} is not a name in Slurm")
    return column


def _request(log: Log, text: str) -> Mapping[str, int]:
    try:
        return tres("ReqTRES", text) if text else {}
    except UnreadableError as error:
        raise SiteError(f"{log.source}: {error}") from None


def _gpus(request: Mapping[str, int]) -> str:
    """Returns the GPUs of a request as sbatch takes them, by their types if these are known."""
    types = {name.removeprefix(f"{GPU}:"): n for name, n in request.items() if f"{GPU}:" in name}
    if types and all(NAME.fullmatch(kind) for kind in types):
        return ",".join(f"{kind}:{n}" for kind, n in types.items())
    return str(request.get(GPU, "") or "")


def _column(log: Log, label: str, jobs: NDArray[np.int64]) -> list[str]:
    if label not in log.labels:
        return [""] * len(jobs)
    labels = log.labels[label]
    names = (*labels.names, "")  # the last one stands for UNKNOWN
    return [names[code] for code in labels.codes[jobs].tolist()]


def _that_fit(
    workload: Workload, names: list[SiteJob], site: SiteSlurm
) -> tuple[Workload, list[SiteJob]]:
    """Leaves jobs out that no partition could run, so that Slurm would refuse them."""
    conf = site.conf
    most = {
        name: sum(conf.nodes[node].processors for node in partition.nodes)
        for name, partition in conf.partitions.items()
    }
    processors = workload.processors.tolist()
    fits = [q <= most[of.partition] for q, of in zip(processors, names, strict=True)]
    kept = np.flatnonzero(fits)
    if len(kept) == len(names):
        return workload, names
    too_wide = workload.left_out.get("too_wide", 0) + len(names) - len(kept)
    found = replace(jobs_of(workload, kept), left_out={**workload.left_out, "too_wide": too_wide})
    return found, [names[job] for job in kept.tolist()]
