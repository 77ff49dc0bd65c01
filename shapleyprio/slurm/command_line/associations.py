"""Association priorities through sacctmgr and scontrol.

sacctmgr shows what accounting has. What counts is what slurmctld goes by, and that may differ:
up to 25.05.0 it hears of a change at an account, of those below only what lies directly below it.
So a change names every account, and is verified in slurmctld.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property

from shapleyprio.slurm.command_line.commands import SlurmCommands
from shapleyprio.slurm.command_line.complaints import cause
from shapleyprio.slurm.command_line.config import ping, ping_now_and_then, shown
from shapleyprio.slurm.layout import (
    UNSET_PRIORITY,
    AccountPriority,
    Association,
    Coordinators,
    account_priorities,
)
from shapleyprio.slurm.port import Malformed, SlurmRefusedError, SlurmUnavailableError, unchecked
from shapleyprio.slurm.text import config as text_config
from shapleyprio.slurm.text.config import (
    StoredAccount,
    coordinators_line,
    in_force_line,
    is_askable,
    stored_account_line,
)

# WOPLimits: what is set there and not above
STORED_ACCOUNTS = (
    "-nP",
    "show",
    "assoc",
    "WOPLimits",
    "format=ParentID,Account,Priority,ID",
    "where",
)
COORDINATORS = ("-nP", "show", "account", "WithCoord", "format=Account,Coordinators")
IN_FORCE = ("show", "assoc_mgr", "flags=assoc")
NOBODYS_NAME = ":"  # separates the fields of /etc/passwd
MOST_LINE_CHARACTERS = 3_000  # without the library readline, sacctmgr reads 4095 of a line
MOST_ARGUMENT_CHARACTERS = 30_000  # Linux takes 128 KiB in one argument
DENIALS = ("Access/permission denied", "permission to perform", "Invalid user id")

_PLAIN = re.compile(r"[A-Za-z0-9_.+@:-]+")


class CommandLineAssociations:
    """The part of the port `Slurm` that has to do with associations.

    Args:
        commands: runs them.
        cluster: returns the name of the cluster.
    """

    def __init__(self, commands: SlurmCommands, cluster: Callable[[], str]) -> None:
        self._commands = commands
        self._ask_cluster = cluster

    def parents(self, cluster: str) -> Mapping[str, str | None]:
        """Reads account -> the account above, None for the root and where that is not known."""
        accounts = self._stored(cluster)
        names = {account.number: account.account for account in accounts}
        return {account.account: names.get(account.above) for account in accounts}

    def account_priorities(self) -> Mapping[str, AccountPriority]:
        """Reads account -> its association priority, as accounting has it."""
        accounts = self._stored(self._cluster)
        names = {account.number: account.account for account in accounts}
        return account_priorities(
            {account.account: account.priority for account in accounts},
            {account.account: names.get(account.above) for account in accounts},
        )

    def priorities_in_force(self, accounts: Collection[str]) -> Mapping[str, int]:
        """Reads what the controller goes by at some accounts: account -> priority.

        Asked for the users of an unused name, slurmctld shows accounts alone, however many
        users they have.
        """
        found = self._in_force(accounts, f"users={NOBODYS_NAME}")
        return {one.account: priority for one, priority in found.items() if not one.user}

    def users_priorities_in_force(self, accounts: Collection[str]) -> Mapping[Association, int]:
        """Reads what the controller goes by at the users of some accounts."""
        found = self._in_force(accounts)
        return {one: priority for one, priority in found.items() if one.user}

    def _in_force(self, accounts: Collection[str], *options: str) -> dict[Association, int]:
        """Reads association -> priority.

        Without accounts scontrol would print all associations of the cluster. One that it shows
        twice and in two ways is left out: the name of a user may have a line end in it.
        """
        ping_now_and_then(self._commands)
        found: dict[Association, set[int]] = {}
        for names in _lists(accounts, MOST_ARGUMENT_CHARACTERS):
            for line in self._commands.lines("scontrol", *IN_FORCE, f"accounts={names}", *options):
                association = in_force_line(line)
                if association is not None and not isinstance(association, Malformed):
                    name, priority = association
                    found.setdefault(name, set()).add(priority)
        return {name: next(iter(values)) for name, values in found.items() if len(values) == 1}

    def coordinators(self) -> Coordinators:
        """Reads who coordinates accounts."""
        config = text_config.configuration(self._commands.read("sacctmgr", "show", "configuration"))
        known = self.parents(self._cluster)
        by_account: dict[str, tuple[str, ...]] = {}
        for line in self._commands.lines("sacctmgr", *COORDINATORS):
            found = coordinators_line(line)
            if not isinstance(found, Malformed) and found[0] in known and found[1]:
                by_account[found[0]] = (*by_account.get(found[0], ()), *found[1])
        return Coordinators(
            by_account, powerless=config.get("DisableCoordDBD", "").casefold() == "yes"
        )

    def write(
        self,
        values: Mapping[str, int],
        remedy: Callable[[], str],
        check: Callable[[], float] = unchecked,
    ) -> dict[str, str]:
        """Writes priorities of accounts in one session, and returns what was not changed.

        Args:
            values: account -> priority, or UNSET_PRIORITY.
            remedy: returns how to get the privilege, if it is missing.
            check: as the port `Slurm` has it.
        """
        refused = {
            account: "has a name that sacctmgr's input cannot hold"
            for account in values
            if _PLAIN.fullmatch(account) is None
        }
        wanted = {account: value for account, value in values.items() if account not in refused}
        if not wanted:
            return refused
        ping(self._commands)  # slurmdbd alone would take it, and slurmctld not hear of it
        # without -i it would ask back, and at the end of its input for ever
        answer = self._commands.feed("sacctmgr", self._lines(wanted), "-i", check=check)
        if any(denial in answer.complaints for denial in DENIALS):
            raise SlurmRefusedError(
                f"Slurm does not let us change account priorities ({cause(answer.complaints, 1)}):"
                f" {remedy() or 'see the log of slurmdbd'}"
            )
        if answer.code != 0 or answer.undone:
            complaint = cause(answer.complaints, answer.code)
            why = complaint if answer.code else next(iter(answer.undone.values()))
            present = self.account_priorities()
            for account, value in wanted.items():
                if account not in present:
                    refused[account] = "no such account"
                elif present[account].stored != value:
                    refused[account] = why
        return refused

    @cached_property
    def _cluster(self) -> str:
        return self._ask_cluster()

    def _lines(self, values: Mapping[str, int]) -> Iterator[str]:
        """Yields what sacctmgr reads: a line for each value, and one for each that is to be unset.

        What is unset is done last and from above: below an account that still has the old value,
        slurmctld would take over that one.
        """
        by_value: dict[int, list[str]] = {}
        for account, value in values.items():
            by_value.setdefault(value, []).append(account)
        unset = by_value.pop(UNSET_PRIORITY, [])
        for value, accounts in by_value.items():
            for names in _lists(accounts, MOST_LINE_CHARACTERS):
                yield self._line(names, value)
        if unset:
            for account in _from_above(unset, self.parents(self._cluster)):
                yield self._line(account, UNSET_PRIORITY)

    def _line(self, accounts: str, value: int) -> str:
        where = f"where name={accounts} cluster={self._cluster}"
        return f"modify account {where} set priority={value}"

    def _stored(self, cluster: str) -> list[StoredAccount]:
        """Reads the accounts and what is set at each.

        Whoever coordinates an account may add others below it, under any name: with line ends and
        delimiters, so that what sacctmgr prints of one looks like others. sacctmgr has no other
        delimiter. So the names that it prints are only what to ask for: of the accounts of these
        names it then shows each as one line. Those with a name that cannot be asked for are left
        out, and belong to no organization.
        """
        of_accounts = (*STORED_ACCOUNTS, f"cluster={cluster}", "user=")  # not of users in them
        listed = map(stored_account_line, self._commands.read("sacctmgr", *of_accounts).split("\n"))
        named = {one.account for one in listed if isinstance(one, StoredAccount)}
        accounts: dict[str, StoredAccount] = {}
        for names in _lists(sorted(filter(is_askable, named)), MOST_ARGUMENT_CHARACTERS):
            wanted = frozenset(names.split(","))
            asked = (*of_accounts, f"account={names}")
            for account in shown(self._commands, stored_account_line, "sacctmgr", *asked):
                if account.account in accounts:
                    raise SlurmUnavailableError(
                        f"sacctmgr show assoc lists account {account.account!r} more than once"
                    )
                if account.account in wanted:  # a database may take others for the same
                    accounts[account.account] = account
        return list(accounts.values())


def _lists(names: Iterable[str], most: int) -> Iterator[str]:
    """Joins names by commas, as many at a time as so many characters hold."""
    joined = ""
    for name in names:
        if joined and len(joined) + len(name) >= most:
            yield joined
            joined = ""
        joined += f",{name}" if joined else name
    if joined:
        yield joined


def _from_above(accounts: Iterable[str], parents: Mapping[str, str | None]) -> list[str]:
    """Sorts accounts so that none comes before one above it."""

    def depth(account: str) -> int:
        above, count = parents.get(account), 0
        while above is not None and count < len(parents):
            above, count = parents.get(above), count + 1
        return count

    return sorted(accounts, key=depth)
