"""Who owned which account and node since when, and how that is corrected.

The ledger depends on the records and the tenures alone. A correction changes the tenures, places
the stored runs again and keeps what it changed on record, in one transaction: the ledger is then
what it would be if the tenures had always been so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise

from shapleyprio.common.wording import clock_time
from shapleyprio.config.membership import Membership
from shapleyprio.config.values import host_list
from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.daemon.accounting.allocating import CorrectedTenures, CorrectionError
from shapleyprio.daemon.accounting.moves import called
from shapleyprio.fairness.ledger import Standing
from shapleyprio.fairness.tenure import LEFT_OUT, NOBODY, Kind, Tenure, Tenures
from shapleyprio.store import CapacityRow, ClusterStore, CorrectionRow, Observations, Transaction

KINDS: tuple[Kind, ...] = ("account", "node")
"""What an organization can hold."""

Holders = Mapping[Kind, Mapping[str, str]]
"""Kind -> name -> organization."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """Who held what since when, as a cluster's store has it.

    Attributes:
        cluster: its name.
        opened: first second that counts.
        correctable: first second from which it can be corrected.
        tenures: of all accounts and nodes that were heard of.
        corrections: all there were, the oldest first.
    """

    cluster: str
    opened: int
    correctable: int
    tenures: Tenures
    corrections: Sequence[CorrectionRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What is to be held by whom from a second on.

    Attributes:
        holders: kind -> name -> organization; names that the store does not know are left out.
        since: first second; one before the ledger opened stands for "always".
        at: now, on Slurm's clock.
        user: who asks for it, for people.
        processors: node -> its processors, in the ledger's weight.
        partitions_of: node -> names of its partitions, sorted; none that is in none.
        organizations: whose standings are shown.
        longest_age: of estimates that may be relied on, in seconds.
    """

    holders: Holders
    since: int
    at: int
    user: str
    processors: Mapping[str, int]
    partitions_of: Mapping[str, tuple[str, ...]]
    organizations: Sequence[str]
    longest_age: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedOwnership:
    """What a correction changed.

    Attributes:
        number: under which it is on record; None if nothing was to be changed.
        t: second for which the standings hold.
        tenures: of every node and account that is held otherwise than before.
        before, after: organization -> its standing.
        all_parts: of all jobs, completed by t, of any age.
    """

    number: int | None
    t: int
    tenures: Sequence[CorrectedTenures]
    before: Mapping[str, Standing]
    after: Mapping[str, Standing]
    all_parts: int


def read_ownership(store: ClusterStore) -> Ownership:
    """Reads who held what.

    Raises:
        CorrectionError: there was no cycle yet.
        StoreError: the store cannot be read.
    """
    with store.reading() as view:
        watermark = view.ledger.watermark()
        if watermark is None:
            raise CorrectionError(_nothing_yet(store.cluster))
        return Ownership(
            cluster=store.cluster,
            opened=watermark.opened,
            correctable=watermark.pruned_until,
            tenures=view.ledger.tenures(),
            corrections=view.ledger.corrections(),
        )


def correct(store: ClusterStore, correction: Correction) -> CorrectedOwnership:
    """Corrects who held what, in one transaction; two of them never mix.

    Estimates of contributions that a rule may still rely on are deleted: they rest on what was.

    Raises:
        CorrectionError: it cannot be done, and nothing was changed.
        StoreError: so for the store.
    """
    since, names = correction.since, correction.organizations
    if since > correction.at:
        raise CorrectionError(
            f"--since {clock_time(since)} lies in the future; what the configuration says counts "
            "from the daemon's next cycle on"
        )

    def correct_in(transaction: Transaction) -> CorrectedOwnership:
        watermark = transaction.ledger.watermark()
        if watermark is None:
            raise CorrectionError(_nothing_yet(store.cluster))
        if since < (pruned := watermark.pruned_until) and pruned > watermark.opened:
            raise CorrectionError(
                f"runs that ended by {clock_time(pruned)} are older than the horizon and no longer "
                "stored; ownership can be corrected from then on, not before"
            )
        opened = OpenLedger(
            transaction,
            horizon=watermark.horizon,
            opens=watermark.opened,
            ask_holders=dict,
            weight=watermark.weight,
        )
        t = opened.close(max(watermark.accounted_to, since), observed_until=0)
        before = opened.ledger.standings(t, names)
        known = {
            kind: {name: to for name, to in holders.items() if opened.tenures.knows(kind, name)}
            for kind, holders in correction.holders.items()
        }
        changed = opened.correct_holders(known, since)
        number = None
        if changed:
            assert opened.close(t, observed_until=0) == t, "a correction adds no event"
            _correct_capacities(transaction.observed, opened, correction, changed)
            transaction.estimates.forget_estimates(t - correction.longest_age)
            number = transaction.ledger.next_correction()
            transaction.ledger.save_corrections(_rows(number, correction, changed))
        return CorrectedOwnership(
            number=number,
            t=t,
            tenures=changed,
            before=before,
            after=opened.ledger.standings(t, names),
            all_parts=opened.ledger.completed(t),
        )

    return store.transact(correct_in)


def holders_in(members: Membership) -> Holders:
    """Returns who holds what by the configuration."""
    return {
        "account": members.accounts,
        "node": members.nodes,
        "partition": members.partitions,
    }


def find(tenures: Tenures, text: str, kind: Kind | None) -> tuple[Kind, list[str]]:
    """Returns the kind and the names that a name stands for.

    Args:
        tenures: of all that was heard of.
        text: the name of an account or a node, or a host list of nodes.
        kind: None for either.

    Raises:
        CorrectionError: it is unknown, or may be both.
    """
    kinds = KINDS if kind is None else (kind,)
    known = [each for each in kinds if tenures.knows(each, text)]
    if len(known) > 1:
        raise CorrectionError(
            f"{text!r} is an account and a node; say which with --kind account or --kind node"
        )
    if known:
        return known[0], [text]
    if "node" in kinds:
        try:
            nodes = list(host_list(text))
        except ValueError:
            nodes = [text]
        if all(tenures.knows("node", node) for node in nodes):
            return "node", nodes
        if len(nodes) > 1:
            strange = next(node for node in nodes if not tenures.knows("node", node))
            raise CorrectionError(_unknown(tenures, strange, ("node",)))
    raise CorrectionError(_unknown(tenures, text, kinds))


def find_organization(text: str, configured: Collection[str], tenures: Tenures) -> str:
    """Returns the organization that is meant: a configured one, one that has left, or nobody.

    Raises:
        CorrectionError: there never was one of that name.
    """
    held = {tenure.organization for tenure in tenures}
    known = {*configured, *held} - {NOBODY, LEFT_OUT}
    if text in known:
        return text
    if text == called(NOBODY):
        return NOBODY
    raise CorrectionError(
        f"no organization {text!r} is or ever was configured; known are "
        f"{', '.join([*sorted(known), called(NOBODY)])}"
    )


def history(tenures: Sequence[Tenure]) -> tuple[tuple[str, int | None], ...]:
    """Returns the holders of one node or account, each with the first second of its tenure."""
    return tuple((tenure.organization, tenure.since) for tenure in tenures)


def _nothing_yet(cluster: str) -> str:
    return (
        f"the store has no ledger of cluster {cluster} yet, so there is nothing to correct: the "
        "daemon's first cycle takes the configuration as valid from the beginning"
    )


def _unknown(tenures: Tenures, name: str, kinds: Sequence[Kind]) -> str:
    near = get_close_matches(name, [each.name for each in tenures if each.kind in kinds], n=1)
    meant = f"did you mean {near[0]!r}?" if near else "`shapleyprio ownership` lists all"
    return f"no {' or '.join(kinds)} {name!r} is known; {meant}"


def _rows(
    number: int, correction: Correction, changed: Sequence[CorrectedTenures]
) -> Iterator[CorrectionRow]:
    for found in changed:
        yield CorrectionRow(
            number=number,
            kind=found.after[0].kind,
            name=found.after[0].name,
            at=correction.at,
            user=correction.user,
            before=history(found.before),
            after=history(found.after),
        )


def _correct_capacities(
    observed: Observations,
    opened: OpenLedger,
    correction: Correction,
    changed: Sequence[CorrectedTenures],
) -> None:
    """Recomputes how many processors those brought whose nodes are concerned.

    Their nodes count as if they had been there all the time with the processors and partitions that
    they have now, as they do when a ledger is opened.
    """
    start = max(correction.since, opened.watermark.opened)
    concerned = {
        tenure.organization
        for found in changed
        for tenure in (*found.before, *found.after)
        if tenure.kind == "node"
    } - {NOBODY}
    changes: dict[str, dict[int, Counter[tuple[str, ...]]]] = {
        name: {start: Counter()} for name in sorted(concerned)
    }
    for node, names in correction.partitions_of.items():
        processors = correction.processors[node]
        rows = opened.tenures.of("node", node)
        seconds = [start if row.since is None else max(start, row.since) for row in rows]
        for row, (begin, end) in zip(rows, pairwise([*seconds, None]), strict=True):
            if row.organization in changes and begin is not None and begin != end:
                by_second = changes[row.organization]
                by_second.setdefault(begin, Counter())[names] += processors
                if end is not None:
                    by_second.setdefault(end, Counter())[names] -= processors
    known = {row.organization: row for row in observed.capacities() if row.since < start}
    rows_of_all = []
    for name, by_second in changes.items():
        last = known[name].processors if name in known else None
        total: Counter[tuple[str, ...]] = Counter()
        for second in sorted(by_second):
            total.update(by_second[second])
            found = {names: processors for names, processors in total.items() if processors}
            if found != last:
                rows_of_all.append(CapacityRow(organization=name, since=second, processors=found))
                last = found
    observed.correct_capacities(changes, rows_of_all, start)
