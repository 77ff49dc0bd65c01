"""The priorities of the simulated accounts and their users."""

from __future__ import annotations

from collections.abc import Mapping

from shapleyprio.slurm.associations import (
    UNSET_PRIORITY,
    AccountPriority,
    Association,
    account_priorities,
)


class Associations:
    """What accounting has and the controller goes by; here they never differ.

    Args:
        parents: account -> the account above, or None.
    """

    def __init__(self, parents: Mapping[str, str | None]) -> None:
        self._parents = parents
        self._own: dict[str, int | None] = dict.fromkeys(parents)
        self._users: dict[Association, int] = {}

    def accounts(self) -> dict[str, AccountPriority]:
        """Returns account -> its priority."""
        return account_priorities(self._own, self._parents)

    def of_users(self) -> dict[Association, int]:
        """Returns the users' associations that have a priority of their own."""
        return dict(self._users)

    def priority(self, account: str, user: str) -> int:
        """Returns what the jobs of a user in an account get."""
        own = self._users.get(Association(account, user))
        return self.accounts()[account].due if own is None else own

    def largest(self) -> int:
        """Returns the largest priority of all associations."""
        due = (account.due for account in self.accounts().values())
        return max((*due, *self._users.values()), default=0)

    def set_account(self, account: str, priority: int) -> None:
        """Sets or removes the priority of an account."""
        self._own[account] = None if priority == UNSET_PRIORITY else priority

    def set_user(self, account: str, user: str, priority: int) -> None:
        """Sets or removes the priority of a user in an account."""
        self._users.pop(Association(account, user), None)
        if priority != UNSET_PRIORITY:
            self._users[Association(account, user)] = priority
