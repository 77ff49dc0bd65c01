"""Why a job waits where it waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.slurm.port import PendingJob, Slurm
from shapleyprio.store import Push, Store


class UnknownJobError(LookupError):
    """No such job waits; the message is one line for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The numbers behind a job's priority, and what would change it.

    Attributes:
        job: as Slurm tells it now.
        organization: whose it is, empty if no organization claims its account.
        place: of the organization, 1 is served first; None if it has none.
        organizations: how many there are.
        contribution, utility: φ̃ and ψ of the organization in part-seconds.
        points: priority points that it gives the job.
        ahead: waiting jobs with a higher priority.
        pushes: what was written to the job, the newest first.
        influence: points between the first and the last organization, None for strict order.
        t: second of the standings.
    """

    job: PendingJob
    organization: str
    place: int | None
    organizations: int
    contribution: int
    utility: int
    points: int | None
    ahead: int
    pushes: Sequence[Push]
    influence: int | None
    t: int

    @property
    def balance(self) -> int:
        """φ̃ − ψ of the organization."""
        return self.contribution - self.utility

    def sentences(self) -> list[str]:
        """The explanation in plain words."""
        job = self.job
        told = [f"Job {job.label} of account {job.account} waits with priority {job.priority}."]
        if job.priority == 0:
            told.append("It is held: its priority is 0 until it is released.")
        if self.place is None or self.points is None:
            told.append("No organization claims its account, so it gets no points from us.")
        else:
            verb = "is owed" if self.balance >= 0 else "owes"
            told += [
                f"{self.organization} contributed {self.contribution} part-seconds of worth and "
                f"used {self.utility}: it {verb} {abs(self.balance)}.",
                f"That is place {self.place} of {self.organizations} and gives its jobs "
                f"{self.points} points.",
            ]
            if self.influence is None:
                told.append(
                    "The order of organizations is strict: age, size and the other factors of "
                    "Slurm decide only among jobs of one organization."
                )
            else:
                told.append(
                    f"The order of organizations weighs {self.influence} points from first to "
                    "last: age and the other factors of Slurm can outweigh it."
                )
            told.append("Its place rises as its nodes work for others and falls as its jobs run.")
        told.append(
            f"{self.ahead} waiting jobs have a higher priority; Slurm says it waits for "
            f"{job.reason or 'nothing in particular'}."
        )
        if job.nice > 0:
            told.append(f"Its nice of {job.nice} takes as many points away from it.")
        return told

    def as_json(self) -> dict[str, Any]:
        """As a value for json.dumps."""
        return {
            "job": {name: getattr(self.job, name) for name in PendingJob.__slots__},
            "organization": self.organization or None,
            "place": self.place,
            "organizations": self.organizations,
            "contribution": self.contribution,
            "utility": self.utility,
            "balance": self.balance,
            "points": self.points,
            "ahead": self.ahead,
            "influence": self.influence or "strict",
            "t": self.t,
            "pushes": [
                {"cycle": p.cycle, "at": p.at, "old": p.old, "new": p.new, "state": p.state}
                for p in self.pushes
            ],
            "sentences": self.sentences(),
        }


def explain(
    store: Store, cluster: str, slurm: Slurm, label: str, *, influence: int | None
) -> Explanation:
    """Explains the priority of one waiting job.

    Args:
        store: where the standings are.
        cluster: its name there.
        slurm: where the job is.
        label: job id, or the name users know it by (``33_4``).
        influence: as configured, None for strict order.

    Raises:
        UnknownJobError: no such job waits.
        SlurmError, StoreError: it cannot be found out.
    """
    pending = [job for job in slurm.pending() if isinstance(job, PendingJob)]
    job = next((job for job in pending if label in {job.label, str(job.job_id)}), None)
    if job is None:
        raise UnknownJobError(
            f"no job {label} waits; see `squeue -j {label}` and `sacct -j {label}`"
        )
    with store.reading(cluster) as view:
        organization = view.tenures().holder("account", job.account, slurm.controller().time)
        standings = sorted(view.latest_standings(), key=lambda row: -row.priority)
        pushes = view.pushes(limit=10, key=str(job.job_id))
    names = [row.organization for row in standings]
    row = next((row for row in standings if row.organization == organization), None)
    return Explanation(
        job=job,
        organization="" if organization == NOBODY else organization,
        place=names.index(organization) + 1 if row else None,
        organizations=len(names),
        contribution=row.contribution if row else 0,
        utility=row.utility if row else 0,
        points=row.priority if row else None,
        ahead=sum(1 for other in pending if other.priority > job.priority),
        pushes=pushes,
        influence=influence,
        t=row.t if row else 0,
    )
