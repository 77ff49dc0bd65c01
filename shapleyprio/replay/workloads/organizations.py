"""Assigns the jobs and processors of a log to organizations, by the configuration file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapleyprio.common.errors import Remedy
from shapleyprio.config import Config, Organization, load_config
from shapleyprio.config.consortium import parents_of
from shapleyprio.config.membership import account_holders, node_owners
from shapleyprio.fairness.tenure import LEFT_OUT
from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.workloads.bays import Nodes
from shapleyprio.replay.workloads.log import UNKNOWN, Labels, Log, RecordedProcessors
from shapleyprio.replay.workloads.nodes import (
    most_in_use,
    nodes_of_partitions,
    sized,
    spread_over_nodes,
)
from shapleyprio.replay.workloads.workload import Consortium, parts_of


def load_organizations(path: Path) -> tuple[Organization, ...]:
    """Reads the `[[organization]]` tables of a file; other tables may be absent, but not wrong.

    Raises:
        WorkloadError: there is no such file.
        ConfigError: it is not a valid configuration.
    """
    return _load(path).organizations


class Claimed(NamedTuple):
    """What is configured for a log of one cluster.

    Attributes:
        log: its jobs.
        organizations: in the order of the configuration.
        left_out: "account" and "partition" -> those whose jobs do not count.
    """

    log: Log
    organizations: Sequence[Organization]
    left_out: Mapping[str, Collection[str]]


def claimed_by(path: Path, log: Log) -> Claimed:
    """Reads the same, and what the table `fairness` leaves out, for a log; it raises the same."""
    config = _load(path)
    left_out = {
        "account": config.fairness.leave_out_accounts,
        "partition": config.fairness.leave_out_partitions,
    }
    return Claimed(log, config.organizations, left_out)


def _load(path: Path) -> Config:
    if not path.exists():
        raise WorkloadError(
            f"{path}: no such file; name one with [[organization]] tables", Remedy.DEAL_USERS
        )
    return load_config(path)


def consortium_of(
    log: Log,
    organizations: Sequence[Organization],
    left_out: Mapping[str, Collection[str]] | None = None,
    *,
    may_be_idle: bool = False,
) -> Consortium:
    """Applies the organizations' claims to a log.

    A job belongs to the organization that claims its account; if none does, its user, then its
    group, then its queue. Where the log's layout lacks the tree of accounts, only those listed
    count. In a log that names no accounts, an organization without accounts, users, groups and
    queues has the jobs of its partitions as well. In a log that names organizations (the daemon's
    store), these decide, by name. What several claim is the first one's.

    An organization brings `processors`, if it says so. Else each of its nodes counts as the log's
    layout says, or as many as the log's jobs ever held there at one time, whoever's they were:
    nodes are owned as in the daemon, a node that the layout lacks is in the partitions whose jobs
    ran there, and a job's processors are in equal parts on its nodes. Other nodes on which nothing
    ran count nothing. The daemon's store has how many
    each brought when last seen; of whom it does not, as many count as were ever in use at one time.

    Args:
        log: all jobs.
        organizations: in the order of the configuration.
        left_out: "account" and "partition" -> those whose jobs do not count. A log that names
            organizations lacks such jobs already.
        may_be_idle: whether it is right that no job belongs to any of them.

    Raises:
        WorkloadError: no job belongs to any of them though one has to, or the log does not say how
            many processors some of them bring.
        LogError: a list of nodes cannot be read.
    """
    names = tuple(organization.name for organization in organizations)
    claims = _claims(log, organizations, holders_of_accounts(log, organizations, left_out or {}))
    organization = _organization_of_jobs(log, claims, may_be_idle=may_be_idle)
    if "organization" not in log.labels:
        organization[left_out_jobs(log, organizations, left_out or {})] = UNKNOWN
    placed, in_use, nodes = None, None, None
    if log.placed is not None:
        placed = _merged(log.placed, _recoding(log.placed.owners.names, names), names)
        seen = most_in_use(log, placed).tolist()
        known = [log.owned.get(name, most) for name, most in zip(names, seen, strict=True)]
        in_use = np.array(known, dtype=np.int64)
    elif log.layout.nodes or (knows(log, "nodes") and (log.start != UNKNOWN).any()):
        placed, in_use, nodes = _by_nodes(log, organizations)
    return Consortium(
        organizations=names,
        owned=_owned(log, organizations, in_use),
        organization=organization,
        parents=parents_of(organizations),
        placed=placed,
        nodes=nodes,
    )


def _organization_of_jobs(
    log: Log, claims: Mapping[str, Sequence[Collection[str]]], *, may_be_idle: bool
) -> NDArray[np.int32]:
    found = np.full(len(log.job), UNKNOWN, dtype=np.int32)
    for kind, names in claims.items():
        if kind in log.labels:
            column = log.labels[kind]
            claimed = _first_claims(column.names, names)[column.codes]
            found = np.where(found == UNKNOWN, claimed, found)
    if len(found) and (found == UNKNOWN).all() and not may_be_idle:
        known = " and ".join(f"{kind}s" for kind in claims if knows(log, kind))
        why = (
            f", though it has {known}; compare the names in the [[organization]] tables with them"
            if known
            else f": it names no {', no '.join(f'{kind}s' for kind in claims)}"
        )
        raise WorkloadError(
            f"{log.source}: none of its jobs belongs to an organization{why}",
            Remedy.GIVE_TREE if knows(log, "account") and not log.layout.parents else None,
        )
    return found


def holders_of_accounts(
    log: Log, organizations: Sequence[Organization], left_out: Mapping[str, Collection[str]]
) -> dict[str, str]:
    """Returns every account of a log and its layout -> its organization, NOBODY or LEFT_OUT."""
    column = log.labels.get("account")
    parents = {**dict.fromkeys(column.names if column else ()), **log.layout.parents}
    return account_holders(organizations, parents, tuple(left_out.get("account", ())))


def left_out_jobs(
    log: Log, organizations: Sequence[Organization], left_out: Mapping[str, Collection[str]]
) -> NDArray[np.bool_]:
    """Returns which jobs of a log do not count, as the configuration has it."""
    holders = holders_of_accounts(log, organizations, left_out)
    accounts = {account for account, holder in holders.items() if holder == LEFT_OUT}
    found = np.zeros(len(log.job), dtype=np.bool_)
    for kind, names in {**left_out, "account": accounts}.items():
        if kind in log.labels:
            column = log.labels[kind]
            found |= np.array([*(name in names for name in column.names), False])[column.codes]
    return found


def _claims(
    log: Log, organizations: Sequence[Organization], holders: Mapping[str, str]
) -> Mapping[str, Sequence[Collection[str]]]:
    """Maps columns of the log to what each organization claims; earlier columns outrank later."""
    if "organization" in log.labels:
        return {"organization": [(organization.name,) for organization in organizations]}
    accounts: dict[str, set[str]] = {organization.name: set() for organization in organizations}
    for account, holder in holders.items():
        accounts.get(holder, set()).add(account)
    claims: dict[str, Sequence[Collection[str]]] = {
        "account": [accounts[organization.name] for organization in organizations],
        "user": [organization.users for organization in organizations],
        "group": [organization.groups for organization in organizations],
        "queue": [organization.queues for organization in organizations],
    }
    if not knows(log, "account"):
        claims["partition"] = [
            ()
            if organization.accounts
            or organization.users
            or organization.groups
            or organization.queues
            else organization.partitions
            for organization in organizations
        ]
    return claims


def knows(log: Log, kind: str) -> bool:
    """Returns whether the log has it for any job."""
    return kind in log.labels and bool((log.labels[kind].codes != UNKNOWN).any())


def _first_claims(names: Sequence[str], claims: Sequence[Collection[str]]) -> NDArray[np.int32]:
    """Maps codes of names to the first who claims each; the last entry answers for UNKNOWN."""
    claimant: dict[str, int] = {}
    for index, claimed in enumerate(claims):
        for name in claimed:
            claimant.setdefault(name, index)
    return np.array([*(claimant.get(name, UNKNOWN) for name in names), UNKNOWN], dtype=np.int32)


def _recoding(names: Sequence[str], organizations: Sequence[str]) -> NDArray[np.int32]:
    return _first_claims(names, [(name,) for name in organizations])


def _merged(
    placed: RecordedProcessors, owner_of: NDArray[np.int32], owners: tuple[str, ...]
) -> RecordedProcessors:
    """Puts the parts under other owners, those of a job and an owner together.

    Args:
        placed: the parts.
        owner_of: code of the old owner -> code of the new one, with an entry for UNKNOWN behind.
        owners: names of the new ones.
    """
    jobs = len(placed.first) - 1
    job = np.repeat(np.arange(jobs), np.diff(placed.first))
    kinds = len(owners) + 1
    part, which = np.unique(
        job * kinds + owner_of[placed.owners.codes] - UNKNOWN, return_inverse=True
    )
    processors = np.zeros(len(part), dtype=np.int64)
    np.add.at(processors, which, placed.processors)
    job, owner = np.divmod(part, kinds)
    codes = (owner + UNKNOWN).astype(np.int32)
    return RecordedProcessors(
        np.searchsorted(job, np.arange(jobs + 1)), Labels(codes, owners), processors
    )


def _by_nodes(
    log: Log, organizations: Sequence[Organization]
) -> tuple[RecordedProcessors | None, NDArray[np.int64], Nodes]:
    """Returns whose processors every job got, how many each organization has, and the nodes."""
    spread, which = spread_over_nodes(log)
    names = tuple(organization.name for organization in organizations)
    nodes, processors = sized(log, spread, which)
    owners, _ = node_owners(organizations, nodes, nodes_of_partitions(log))
    owner_of = _recoding([owners[node] for node in nodes], names)
    owned = np.zeros(len(names) + 1, dtype=np.int64)
    np.add.at(owned, owner_of[:-1], processors)
    found = Nodes(names=nodes, owner=owner_of[:-1], processors=processors)
    if not knows(log, "nodes"):
        return None, owned[:-1], found
    return parts_of(_merged(spread, owner_of, names), which), owned[:-1], found


def _owned(
    log: Log, organizations: Sequence[Organization], in_use: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    if in_use is None:
        _refuse_guessing(
            log,
            [
                organization.name
                for organization in organizations
                if organization.processors is None
            ],
        )
        in_use = np.zeros(len(organizations), dtype=np.int64)
    return np.array(
        [
            seen if organization.processors is None else organization.processors
            for organization, seen in zip(organizations, in_use.tolist(), strict=True)
        ],
        dtype=np.int64,
    )


def _refuse_guessing(log: Log, organizations: Sequence[str]) -> None:
    if organizations:
        header = f" (all together have {n})" if (n := log.system_processors) else ""
        raise WorkloadError(
            f"{log.source} does not say on which nodes its jobs ran, so the processors of "
            f"{', '.join(organizations)} are unknown{header}; add `processors = N` to the "
            "[[organization]] table of each",
            Remedy.DEAL_USERS,
        )
