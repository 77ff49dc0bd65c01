"""Signs that a log lacks what gives it its meaning, so that a replay would compute nonsense."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from shapleyprio.common.errors import Remedy
from shapleyprio.common.wording import listed, names_shown, percent, whole
from shapleyprio.config.membership import host_list_of, named_nodes
from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.workloads.choices import Doubt
from shapleyprio.replay.workloads.log import UNKNOWN, Log
from shapleyprio.replay.workloads.nodes import nodes_of_partitions
from shapleyprio.replay.workloads.organizations import Claimed, knows, left_out_jobs
from shapleyprio.replay.workloads.workload import Consortium, Window, Workload

ACCOUNTS_SHOWN = 3

Claims = Sequence[Claimed]


def refuse_unknown(claims: Claims, consortium: Consortium, allowed: Collection[Doubt]) -> None:
    """Refuses organizations of which a log does not say enough.

    The daemon's store knows whose jobs and processors are, so its log is not doubted.

    Args:
        claims: what is configured for each cluster.
        consortium: of all of them.
        allowed: what is known to be so, and right.

    Raises:
        WorkloadError: something never occurs that is configured, or an organization has no
            processors.
    """
    if not _knows_itself(claims):
        _refuse(allowed, "unseen", _unseen(claims, consortium.clusters or (consortium,)))
        _refuse(allowed, "no-processors", _without_processors(claims, consortium))


def refuse_nonsense(
    claims: Claims, consortium: Consortium, workload: Workload, allowed: Collection[Doubt]
) -> None:
    """Refuses a workload, taken out of the logs of the claims, in the same way.

    Raises:
        WorkloadError: most jobs have no organization, or more was in use than there is.
    """
    if not _knows_itself(claims):
        members = consortium.clusters or (consortium,)
        _refuse(allowed, "no-organization", _of_nobody(claims, members, workload.window))
        _refuse(allowed, "utilization", _overfull(claims, workload))


def _knows_itself(claims: Claims) -> bool:
    return not claims or any("organization" in one.log.labels for one in claims)


def _refuse(allowed: Collection[Doubt], doubt: Doubt, errors: Iterator[WorkloadError]) -> None:
    if doubt not in allowed:
        for error in errors:
            raise error


def guesses_sizes(claims: Claims) -> bool:
    """Returns whether nodes count as many processors as jobs held there at most."""
    return not _knows_itself(claims) and any(
        not one.log.layout.nodes
        and knows(one.log, "nodes")
        and any(organization.processors is None for organization in one.organizations)
        for one in claims
    )


def _unseen(claims: Claims, members: Sequence[Consortium]) -> Iterator[WorkloadError]:
    """Yields what is configured and occurs neither in a log nor in its layout.

    Who names nodes needs no partition. An account may have no job, and is missed only where jobs
    are of unclaimed accounts: one of these may be meant.
    """
    partitions = {name for one in claims for name in nodes_of_partitions(one.log)}
    nodes = {name for one in members if one.nodes is not None for name in one.nodes.names}
    for one in claims:
        for organization in one.organizations:
            if organization.processors is not None:
                continue
            missing = [name for name in organization.partitions if name not in partitions]
            if missing and not organization.nodes:
                what = f"partition {listed(missing)} of {organization.name} never occurs"
                yield _doubt(one.log, f"{what}, so its nodes are not known", "unseen")
            if lost := [name for name in named_nodes(organization) if name not in nodes]:
                what = f"nodes {host_list_of(lost)} of {organization.name} never occur"
                yield _doubt(one.log, f"{what}, so their processors are not known", "unseen")
    accounts = {name for one in claims for name in _accounts(one.log)}
    unclaimed = Counter[str]()
    for one, member in zip(claims, members, strict=True):
        unclaimed += _unclaimed(one, member, None)
    for one in claims:
        for organization in one.organizations:
            missing = [name for name in organization.accounts if name not in accounts]
            if missing and unclaimed and accounts:
                what = f"account {listed(missing)} of {organization.name} never occurs"
                others = f"no organization claims {names_shown(unclaimed)}"
                yield _doubt(one.log, f"{what}, and {others}", "unseen", Remedy.GIVE_ACCOUNTS)


def _without_processors(claims: Claims, consortium: Consortium) -> Iterator[WorkloadError]:
    organizations = {each.name: each for one in claims for each in one.organizations}
    for name, owned in zip(consortium.organizations, consortium.owned.tolist(), strict=True):
        one = organizations[name]
        if owned == 0 and one.processors is None and (one.partitions or one.nodes):
            what = f"{name} brings no processors, though it claims partitions or nodes"
            yield _doubt(claims[0].log, what, "no-processors")


def _of_nobody(
    claims: Claims, members: Sequence[Consortium], window: Window
) -> Iterator[WorkloadError]:
    unclaimed, jobs = Counter[str](), 0
    for one, member in zip(claims, members, strict=True):
        unclaimed += _unclaimed(one, member, window)
        jobs += int((window.includes(one.log.release) & (member.organization != UNKNOWN)).sum())
    nobodys = unclaimed.total()
    if nobodys > jobs:
        most = [f"{name} ({whole(n)})" for name, n in unclaimed.most_common(ACCOUNTS_SHOWN) if name]
        accounts = f"; most are of account {names_shown(most)}" if most else ""
        what = f"{whole(nobodys)} of {whole(nobodys + jobs)} jobs belong to no organization"
        remedy = Remedy.GIVE_ACCOUNTS
        yield _doubt(claims[0].log, f"{what}{accounts}", "no-organization", remedy)


def _overfull(claims: Claims, workload: Workload) -> Iterator[WorkloadError]:
    length, ran = workload.window.length, workload.start != UNKNOWN
    start = np.minimum(workload.start[ran], length)
    end = np.minimum(workload.start[ran] + workload.processing_time[ran], length)
    work = int(((end - start) * workload.processors[ran]).sum())
    there = workload.system_processors * length
    if work > there:
        what = (
            f"its jobs used {percent(work / there)} of the "
            f"{whole(workload.system_processors)} processors that its organizations bring"
        )
        said = [each.name for one in claims for each in one.organizations if each.processors]
        if said:
            what += f"; correct the `processors` of {listed(said)}"
        remedy = Remedy.ALLOW if said else Remedy.GIVE_NODES
        yield _doubt(claims[0].log, what, "utilization", remedy)


def _doubt(log: Log, what: str, doubt: Doubt, remedy: Remedy = Remedy.GIVE_NODES) -> WorkloadError:
    given = {Remedy.GIVE_NODES: log.layout.nodes, Remedy.GIVE_ACCOUNTS: log.layout.parents}
    remedy = Remedy.ALLOW if given.get(remedy) else remedy
    return WorkloadError(f"{log.source}: {what}", remedy, bound=doubt)


def _accounts(log: Log) -> Collection[str]:
    column = log.labels.get("account")
    return {*(column.names if column else ()), *log.layout.parents}


def _unclaimed(one: Claimed, member: Consortium, window: Window | None) -> Counter[str]:
    """Counts jobs of no organization, and not left out, by account; "" where that is not known."""
    log = one.log
    jobs = (member.organization == UNKNOWN) & ~left_out_jobs(log, one.organizations, one.left_out)
    if window is not None:
        jobs &= window.includes(log.release)
    column = log.labels.get("account")
    if column is None:
        return Counter({"": int(jobs.sum())})
    counts = np.bincount(column.codes[jobs] + 1, minlength=len(column.names) + 1).tolist()
    return Counter({name: n for name, n in zip(("", *column.names), counts, strict=True) if n})
