"""The channel that writes the priority of accounts, which all their associations have."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from shapleyprio.common.wording import listed
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.slurm.channels.base import Channel, Claims, PriorityTarget
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.layout import UNSET_PRIORITY, AccountPriority, Association, Layout, is_raw
from shapleyprio.slurm.port import PendingJob, Slurm
from shapleyprio.slurm.releases import Release

COORDINATORS_CAN_BE_DISABLED = "24.05"
"""The first release with DisableCoordDBD in slurmdbd.conf."""

REACHES_ALL_BELOW = Release(25, 5, ".1")
"""The first release in which a change at an account reaches more than what lies directly below."""

REMOVE_COORDINATOR = "sacctmgr delete coordinator accounts=ACCOUNT names=USER"
FLAG = "NO_NORMAL_ASSOC"


class AccountPriorities(Channel):
    """The association priority of every account: one session, however many jobs wait.

    A job has it from its submission on. Jobs that wait follow when Slurm next computes their
    priority: when they are updated, or after PriorityCalcPeriod.
    """

    name = "association"
    written = "the association priority of the accounts of each organization"
    called = "association priority"
    carrier = "account"
    smallest = UNSET_PRIORITY
    largest = 2**31 - 1
    admin_level = "Operator"
    factor = "Assoc"
    follows_late = True

    def targets(
        self,
        slurm: Slurm,
        pending: Sequence[PendingJob],  # noqa: ARG002 - jobs do not carry it
        claims: Claims,
    ) -> list[PriorityTarget]:
        """Returns all accounts, with what is set at each and what slurmctld goes by."""
        stored = slurm.account_priorities()
        in_force = slurm.priorities_in_force(list(stored))
        return [
            PriorityTarget.named(
                account,
                claims.accounts.get(account, NOBODY),
                priority.stored,
                in_force=_instead(priority, in_force.get(account)),
            )
            for account, priority in stored.items()
        ]

    def values(self, slurm: Slurm, keys: Collection[str]) -> Mapping[str, int | None]:
        """Reads what is set at accounts; where slurmctld goes by something else, that."""
        stored = slurm.account_priorities()
        known = [account for account in keys if account in stored]
        in_force = slurm.priorities_in_force(known)
        found: dict[str, int | None] = dict.fromkeys(known)
        for account in found.keys() & in_force.keys():
            instead = _instead(stored[account], in_force[account])
            found[account] = stored[account].stored if instead is None else instead
        return found

    def key_of(self, job: PendingJob) -> str:
        """Returns the job's account."""
        return job.account

    def shown(self, job: PendingJob) -> int | None:
        """Returns the points that a job's priority has of its association."""
        return job.association

    def is_foreign(self, value: int) -> bool:
        """Returns whether something is set: where nothing is, all is well."""
        return value != UNSET_PRIORITY

    def value(self, original: int, points: int) -> int:  # noqa: ARG002 - it is ours alone
        """Returns the points."""
        return points

    def blocked(self, layout: Layout) -> Finding | None:
        """Demands the weight and the flag with which a priority counts as many points."""
        weight = layout.settings.weights.get(self.factor, 0)
        if weight != 1:
            return Finding(
                Severity.ERROR,
                "PriorityWeightAssoc",
                "is 0: the priority of an association has no effect"
                if weight == 0
                else f"is {weight}: points would count {weight} times",
                f"set PriorityWeightAssoc=1 and PriorityFlags={FLAG} in slurm.conf, "
                "or choose another push.channel",
            )
        if not is_raw(layout.settings.flags, FLAG):
            return Finding(
                Severity.ERROR,
                "PriorityFlags",
                f"lacks {FLAG}: Slurm divides priorities of associations by the largest of them",
                f"set PriorityFlags={FLAG} with PriorityWeightAssoc=1 in slurm.conf",
            )
        return None

    def demands(self, layout: Layout, claims: Claims) -> Iterator[Finding]:
        """Notices what happens to accounts that are added far below others."""
        release = Release.parse(layout.version)
        deep = [
            account
            for account, organization in claims.accounts.items()
            if organization != NOBODY and _below(account, layout, claims) >= 2
        ]
        if deep and release is not None and release < REACHES_ALL_BELOW:
            yield Finding(
                Severity.NOTICE,
                f"accounts {listed(deep)}",
                f"lie two or more levels below their organization's: in Slurm {release} a new "
                "account there keeps the priority it begins with until the daemon finds it, for "
                "ten minutes at most",
                "upgrade Slurm to 25.05.1 or newer, unless that is soon enough",
            )

    def inquire(self, slurm: Slurm, layout: Layout, claims: Claims) -> Iterator[Finding]:
        """Finds priorities that others have set or may set, and those who inherit ours."""
        stored = slurm.account_priorities()
        ours = {
            account: organization
            for account, organization in claims.accounts.items()
            if organization != NOBODY and account in stored
        }
        yield from _own_priorities(ours, stored, layout)
        yield from _own_priorities_of_users(
            slurm.users_priorities_in_force(list(ours)), stored, layout
        )
        yield from _heirs(stored, layout, claims)
        yield from _coordinators(slurm, ours, layout)


def _instead(stored: AccountPriority, in_force: int | None) -> int | None:
    """Returns by what slurmctld goes instead of what accounting has; None where they agree.

    At an account that inherits it may show 0, and its users have what is due.
    """
    agreed = {stored.due} if stored.own is not None else {stored.due, 0}
    return None if in_force in agreed else in_force


def _below(account: str, layout: Layout, claims: Claims) -> int:
    """Counts the accounts of the same organization above an account."""
    return sum(
        claims.accounts.get(above) == claims.accounts[account] for above in _above(account, layout)
    )


def _above(account: str, layout: Layout) -> list[str]:
    found: list[str] = []
    above = layout.accounts.get(account)
    while above is not None and above not in found:
        found.append(above)
        above = layout.accounts.get(above)
    return found


def _own_priorities(
    ours: Mapping[str, str], stored: Mapping[str, AccountPriority], layout: Layout
) -> Iterator[Finding]:
    """Finds accounts of an organization that differ: the daemon gives all of them the same."""
    by_organization: dict[str, dict[int, list[str]]] = {}
    for account, organization in ours.items():
        values = by_organization.setdefault(organization, {})
        values.setdefault(stored[account].stored, []).append(account)
    for organization, values in by_organization.items():
        if len(values) == 1:
            continue
        named = "; ".join(
            f"{listed(accounts)}: {'none' if value == UNSET_PRIORITY else value}"
            for value, accounts in sorted(values.items())
        )
        odd = min((names for value, names in values.items() if value != UNSET_PRIORITY), key=len)
        yield Finding(
            Severity.WARNING,
            f"organization {organization}",
            f"its accounts have different priorities of their own ({named}): the daemon writes "
            "over those that it finds at first, and leaves those that somebody sets later",
            "sacctmgr modify account where "
            f"name={','.join(odd)} cluster={layout.cluster} set priority={UNSET_PRIORITY}",
        )


def _own_priorities_of_users(
    in_force: Mapping[Association, int], stored: Mapping[str, AccountPriority], layout: Layout
) -> Iterator[Finding]:
    """Finds users who go by something else than what is due to their account."""
    for association, priority in in_force.items():
        due = stored[association.account].due
        if priority != due:
            yield Finding(
                Severity.WARNING,
                f"user {association.user} of account {association.account}",
                f"has a priority of {priority} where the account has {due}: the jobs "
                "stand apart from those of the organization",
                f"sacctmgr modify user where name={association.user} "
                f"account={association.account} cluster={layout.cluster} "
                f"set priority={UNSET_PRIORITY}",
            )


def _heirs(
    stored: Mapping[str, AccountPriority], layout: Layout, claims: Claims
) -> Iterator[Finding]:
    heirs = [
        account
        for account, organization in claims.accounts.items()
        if organization == NOBODY
        and account in stored
        and stored[account].own is None
        and any(claims.accounts.get(above, NOBODY) != NOBODY for above in _above(account, layout))
    ]
    if heirs:
        yield Finding(
            Severity.WARNING,
            f"accounts {listed(heirs)}",
            "belong to no organization, but lie below an account of one and inherit its priority",
            "add them to the `accounts` of an organization, or: sacctmgr modify account where "
            f"name={','.join(heirs)} cluster={layout.cluster} set priority=0",
        )


def _coordinators(slurm: Slurm, ours: Mapping[str, str], layout: Layout) -> Iterator[Finding]:
    found = slurm.coordinators()
    names = sorted({name for account in ours for name in found.by_account.get(account, ())})
    if not names or found.powerless:
        return
    release = Release.parse(layout.version)
    old = release is None or release.series < COORDINATORS_CAN_BE_DISABLED
    yield Finding(
        Severity.ERROR if old else Severity.WARNING,
        f"coordinators {listed(names)}",
        "may set the priority of users and accounts below theirs"
        if old
        else "may add accounts of any priority below theirs",
        f"{REMOVE_COORDINATOR}, or take another push.channel"
        if old
        else "set DisableCoordDBD=yes in slurmdbd.conf and restart slurmdbd, or: "
        + REMOVE_COORDINATOR,
    )
