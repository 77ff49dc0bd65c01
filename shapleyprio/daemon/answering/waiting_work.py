"""The waiting work that counts in the newest estimate: whose it is, and who may see that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from shapleyprio.daemon.answering.inquiries import Asker
from shapleyprio.store import WaitingWork

Sees = Callable[[WaitingWork], bool]
"""Whether somebody may see what a user brings."""

OF_USER = ("user", "account", "jobs", "processor_seconds")
"""What is told of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationWaitingWork:
    """The waiting work that an organization brings into the newest estimate.

    Attributes:
        jobs, processor_seconds: of all its users together.
        users: what users bring of it, the most first; only what may be seen.
    """

    jobs: int
    processor_seconds: int
    users: tuple[WaitingWork, ...]

    def seen_by(self, sees: Sees) -> Self:
        """Returns what somebody may see."""
        return replace(self, users=tuple(filter(sees, self.users)))

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return {
            "jobs": self.jobs,
            "processor_seconds": self.processor_seconds,
            "users": [{name: getattr(row, name) for name in OF_USER} for row in self.users],
        }


def by_organization(
    rows: Iterable[WaitingWork], organizations: Iterable[str]
) -> dict[str, OrganizationWaitingWork]:
    """Returns what each organization brings, without pending jobs nothing.

    Args:
        rows: of the estimate, the most first.
        organizations: that it has.
    """
    users: dict[str, list[WaitingWork]] = {name: [] for name in organizations}
    for row in rows:
        users.setdefault(row.organization, []).append(row)
    return {
        name: OrganizationWaitingWork(
            jobs=sum(row.jobs for row in own),
            processor_seconds=sum(row.processor_seconds for row in own),
            users=tuple(own),
        )
        for name, own in users.items()
    }


def seen_by(asker: Asker | None, about: str | None = None) -> Sees:
    """Returns what somebody may see of waiting work.

    Args:
        asker: as for `explain_job`.
        about: user whose jobs are asked about; who asks about the own ones sees these alone, for
            which no rights are read.
    """

    def sees(row: WaitingWork) -> bool:
        return (
            asker is None
            or row.user == asker.user
            or (about != asker.user and asker.rights().see(row.account))
        )

    return sees
