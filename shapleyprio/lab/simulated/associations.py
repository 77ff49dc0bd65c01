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
    """What accounting has and the controller goes by.

    Args:
        parents: account -> the account above, or None.

    Attributes:
        unheard: of so many changes of accounts to come the controller does not hear.
    """

    def __init__(self, parents: Mapping[str, str | None]) -> None:
        self._parents = parents
        self.unheard = 0
        self._own: dict[str, int | None] = dict.fromkeys(parents)
        self._heard = dict(self._own)
        self._users: dict[Association, int] = {}

    def accounts(self) -> dict[str, AccountPriority]:
        """Returns account -> its priority, as accounting has it."""
        return account_priorities(self._own, self._parents)

    def in_force(self) -> dict[str, int]:
        """Returns account -> the priority that the controller goes by."""
        heard = account_priorities(self._heard, self._parents)
        return {account: priority.due for account, priority in heard.items()}

    def of_users(self) -> dict[Association, int]:
        """Returns the users' associations that have a priority of their own."""
        return dict(self._users)

    def priority(self, account: str, user: str) -> int:
        """Returns what the jobs of a user in an account get."""
        own = self._users.get(Association(account, user))
        return self.in_force()[account] if own is None else own

    def largest(self) -> int:
        """Returns the largest priority of all associations."""
        return max((*self.in_force().values(), *self._users.values()), default=0)

    def set_account(self, account: str, priority: int) -> None:
        """Sets or removes the priority of an account."""
        self._own[account] = None if priority == UNSET_PRIORITY else priority
        if self.unheard:
            self.unheard -= 1
        else:
            self._heard[account] = self._own[account]

    def set_user(self, account: str, user: str, priority: int) -> None:
        """Sets or removes the priority of a user in an account."""
        self._users.pop(Association(account, user), None)
        if priority != UNSET_PRIORITY:
            self._users[Association(account, user)] = priority
