"""Associations, and the priorities that they carry.

An association is an account of the cluster, or one of the users in it. A priority of its own is set
at few of them; the others have that of the nearest account above.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ROOT = "root"
"""The account above all others."""

UNSET_PRIORITY = -1
"""What Slurm takes to remove the priority that is set at an association."""


@dataclass(frozen=True, slots=True)
class Association:
    """What Slurm can give a priority to.

    Attributes:
        account: its name.
        user: login name; empty for the account itself.
        partition: where alone the user has it; empty for everywhere.
    """

    account: str
    user: str = ""
    partition: str = ""


@dataclass(frozen=True, slots=True)
class AccountPriority:
    """The priority of an account, as accounting has it.

    Attributes:
        own: what is set at the account itself; None where nothing is.
        due: what its jobs therefore get: `own`, or that of the nearest account above which has
            one; 0 if none has.
    """

    own: int | None
    due: int

    @property
    def stored(self) -> int:
        """What to write so that the account is as it is now."""
        return UNSET_PRIORITY if self.own is None else self.own


@dataclass(frozen=True, slots=True)
class Coordinators:
    """Who may change an account without being an operator of Slurm.

    Attributes:
        by_account: account -> its coordinators, for accounts that have some.
        powerless: whether slurmdbd keeps them from changing anything (DisableCoordDBD).
    """

    by_account: Mapping[str, tuple[str, ...]]
    powerless: bool


def account_priorities(
    own: Mapping[str, int | None], parents: Mapping[str, str | None]
) -> dict[str, AccountPriority]:
    """Returns account -> its priority.

    Args:
        own: account -> what is set at it, None for nothing; the root may be among them.
        parents: the same accounts -> the account above, None where there is none.

    >>> account_priorities({"a": 5, "a1": None, "b": None}, {"a": None, "a1": "a", "b": None})["a1"]
    AccountPriority(own=None, due=5)
    """
    return {account: AccountPriority(own[account], _due(account, own, parents)) for account in own}


def _due(account: str, own: Mapping[str, int | None], parents: Mapping[str, str | None]) -> int:
    at: str | None = account
    passed: set[str] = set()
    while at is not None and at not in passed:
        found = own.get(at)
        if found is not None:
            return found
        passed.add(at)
        at = parents.get(at)
    return 0
