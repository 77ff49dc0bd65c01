"""Jobs to which somebody has given a priority by hand: it is theirs, and left as it is.

Operators can fix a job's priority itself, and then Slurm goes by nothing else; or they set its
site factor, or a nice below 0, as `scontrol top` does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Literal

from shapleyprio.daemon.pushing.push import (
    Ours,
    explains,
    known_at,
    live_keys,
    news_of_foreign,
)
from shapleyprio.daemon.pushing.submission import given_on
from shapleyprio.slurm.channels import CHANNELS, Claims
from shapleyprio.slurm.port import PendingJob, Slurm
from shapleyprio.store import ClusterStore, ManagedValue, PublishedPoints, Transaction, View

SITE_FACTOR, NICE = CHANNELS["site_factor"], CHANNELS["nice"]

Kind = Literal["priority", "site_factor", "nice"]
"""What was set."""

Managed = Mapping[str, Mapping[str, ManagedValue]]
"""Name of a channel that writes to jobs -> key -> what we did there."""


def managed_jobs(view: View, keys: Collection[str] | None = None) -> Managed:
    """Returns what we did to jobs: those with these keys, or all."""
    return {
        name: view.pushes.managed_values(name, keys)
        for name, one in CHANNELS.items()
        if one.per_job
    }


def by_hand(
    job: PendingJob, managed: Managed, ours: Ours, organization: str, *, user_top: bool = False
) -> dict[Kind, int]:
    """Returns what somebody has set at a job, and to which value.

    Args:
        job: that waits.
        managed: what we did to jobs.
        ours: as `push.foreign` has it, at site factors.
        organization: whose job it is.
        user_top: whether users can set a nice below 0 as well, so that it is no operator's order.
    """
    if job.is_fixed:
        return {"priority": job.priority}
    found: dict[Kind, int] = {}
    factor = job.site_factor
    if factor and ours.excludes(factor, organization, _known(managed, SITE_FACTOR.name, job)):
        found["site_factor"] = factor
    if not user_top and job.nice < 0:
        known = _known(managed, NICE.name, job)
        asked = next((one.original for one in known if explains(one, job.nice)), job.nice)
        if asked < 0:
            found["nice"] = asked
    return found


def set_by_hand(
    jobs: Iterable[PendingJob], managed: Managed, ours: Ours, claims: Claims, *, user_top: bool
) -> dict[Kind, tuple[str, ...]]:
    """Returns what was set -> labels of the jobs where it was; see `by_hand` for the rest."""
    found: dict[Kind, list[str]] = {}

    @cache
    def points_of(account: str, partition: str) -> int | None:
        return ours.points.get(claims.of_jobs_in(account, partition))

    for job in jobs:
        factor = job.site_factor  # most jobs have the points of their organization
        is_other = bool(factor) and factor != points_of(job.account, job.partition)
        if job.is_fixed or job.nice < 0 or is_other:
            for kind in by_hand(job, managed, ours, claims.of(job), user_top=user_top):
                found.setdefault(kind, []).append(job.label)
    return {kind: tuple(labels) for kind, labels in found.items()}


def set_since(
    slurm: Slurm,
    jobs: Iterable[PendingJob],
    managed: Managed,
    published: PublishedPoints | None,
) -> dict[str, dict[str, int]]:
    """Returns name of a channel -> key of a job -> what somebody has newly set where we wrote.

    On record, it is what a rollback leaves at a job at which Slurm does not show it any more.

    Args:
        slurm: where the jobs wait.
        jobs: that wait.
        managed: what we did to jobs.
        published: what the table of points gives.
    """
    found = {}
    for name, values in managed.items():
        channel = CHANNELS[name]
        given = given_on(channel, published)
        ours = [job for job in jobs if not live_keys([job]).isdisjoint(values)] if values else []
        others = (
            target
            for target in channel.targets(slurm, ours, Claims())
            if target.value not in given
            and not any(
                explains(one, target.value) for one in known_at(values, target.key, target.base_key)
            )
        )
        if news := news_of_foreign(others, values):
            found[name] = news
    return found


def note_set_since(store: ClusterStore, news: Mapping[str, Mapping[str, int]]) -> None:
    """Keeps on record what `set_since` has found."""

    def note(transaction: Transaction) -> None:
        for channel, values in news.items():
            transaction.pushes.note_by_hand(channel, values)

    if news:
        store.transact(note)


def by_hand_in(view: View, job: PendingJob, organization: str) -> Mapping[Kind, int]:
    """Returns what somebody has set at an organization's job, as far as the store knows.

    A nice below 0 is named only if the last cycle found such: that knew whether users may set it.
    """
    last = view.history.last_cycle()
    keys = live_keys([job])
    managed = managed_jobs(view, keys)
    steering = view.history.steering()
    at_site = bool(steering) and steering[-1].channel == SITE_FACTOR.name
    points = {row.organization: row.priority for row in view.history.latest_standings()}
    given = given_on(SITE_FACTOR, view.pushes.published_points())
    return by_hand(
        job,
        managed,
        Ours(given=given, points=points if at_site else {}),
        organization,
        user_top=last is None or "nice" not in last.by_hand,
    )


def _known(managed: Managed, channel: str, job: PendingJob) -> list[ManagedValue]:
    return known_at(managed.get(channel, {}), str(job.job_id), str(job.array_job_id))
