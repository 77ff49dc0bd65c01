"""Why a job, a user's jobs or an account's jobs wait where they wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import chain

from shapleyprio.common.errors import KnownError
from shapleyprio.common.wording import names_shown
from shapleyprio.daemon.answering.estimated import seen_by
from shapleyprio.daemon.answering.explain_facts import (
    JobExplanation,
    JobsExplanation,
    Prospect,
)
from shapleyprio.daemon.answering.inquiries import Asker
from shapleyprio.daemon.answering.scene import QueueAndStandings, QueueSource, ReadQueue
from shapleyprio.daemon.pushing.by_hand import Kind, by_hand_in
from shapleyprio.daemon.pushing.rollback import UNREADABLE
from shapleyprio.fairness.tenure import Tenures
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.port import PendingJob
from shapleyprio.slurm.text.queue import has_first_task
from shapleyprio.store import (
    ClusterStore,
    Push,
    PushesView,
    PushState,
)

PUSHES_SHOWN = 10

PUSHES_SEARCHED = 10_000
"""So many of the last writes are looked through for a job's name, or for its first points."""


class NothingToExplainError(KnownError):
    """No such job waits, no such user or account is known, or who asks may not see it.

    The message is one line.
    """


def explain_job(
    store: ClusterStore,
    slurm: QueueSource,
    label: str,
    asker: Asker | None = None,
    *,
    age: int = 0,
) -> JobExplanation:
    """Explains the priority of one pending job.

    While Slurm is away a job that was written to is explained from the store.

    Args:
        store: of the cluster, where the standings are.
        slurm: where the job is.
        label: job id, or the name users know it by (``33_4``, ``33_[0-8%2]``).
        asker: who asks; None for somebody who can read the store, and so all there is. To others a
            job that they may not see is one that does not wait.
        age: seconds since the last cycle.

    Raises:
        NothingToExplainError: no such job waits.
        SlurmError: Slurm is away, and nothing was ever written to such a job.
        StoreError: it cannot be found out.
    """
    queue = ReadQueue.asked_of(slurm)
    job = _named(queue.jobs, label)
    with store.reading() as view:
        scene = QueueAndStandings(
            view, queue, seen_by(asker, None if job is None else job.user), age
        )
        hands: Mapping[Kind, int] = {}
        prospect: Prospect | None = None
        if queue.failure is not None:
            pushes = _pushes_to(view.pushes, label)
            if not pushes or not (asker is None or asker.rights().operator):
                raise queue.failure  # whose job it is Slurm alone knows
            organization = pushes[0].organization
        else:
            sibling = _named([one for one, _ in queue.elsewhere], label)
            cluster = next((name for one, name in queue.elsewhere if one is sibling), "")
            if asker is not None and not _is_shown(job or sibling, asker):
                raise NothingToExplainError(
                    f"user {asker.user} has no pending job {label} (others' jobs are shown only to "
                    f"their users, coordinators and operators); see `squeue -j {label}`"
                )
            if job is None and sibling is not None:
                raise NothingToExplainError(
                    f"job {label} is federated: it may run here, but counts at {cluster}, "
                    "and that cluster's daemon gives it its priority; ask there"
                )
            if job is None:
                unreadable = UNREADABLE if queue.incomplete else ""
                raise NothingToExplainError(
                    f"no job {label} is pending{unreadable}; "
                    f"see `squeue -j {label}` and `sacct -j {label}`"
                )
            pushes = _pushes_for(view.pushes, job)
            prospect = scene.prospect_of(job)
            organization = scene.organization_of(job)
            hands = by_hand_in(view, job, organization)
    ahead, tied_ahead, own_ahead = scene.ahead_of(job)
    return JobExplanation(
        basis=scene.basis,
        label=label,
        job=job,
        ranked=scene.ranked_seen(organization),
        outside=None if job is None else scene.outside(job),
        ahead=ahead,
        tied_ahead=tied_ahead,
        own_ahead=own_ahead,
        pushes=pushes[:PUSHES_SHOWN],
        given=next((one for one in pushes if one.state is PushState.AT_SUBMISSION), None),
        by_hand=hands,
        exception=None if job is None else scene.exception_of(job),
        put_ahead=0 if job is None else scene.put_ahead_of(job),
        prospect=prospect,
    )


def _named(jobs: Sequence[PendingJob], label: str) -> PendingJob | None:
    """Returns the job of that id or name, or the part of an array that has its first task."""
    exact = (job for job in jobs if label in {job.label, str(job.job_id)})
    parts = (job for job in jobs if has_first_task(job.label, label))
    return next(chain(exact, parts), None)


def _is_shown(job: PendingJob | None, asker: Asker) -> bool:
    """Returns whether the asker learns about a job; of none at all, whether that there is none.

    Both take the same steps, so that the time until the answer says nothing either.
    """
    if job is not None and job.user == asker.user:
        return True
    rights = asker.rights()
    return rights.operator or (job is not None and rights.see(job.account))


def explain_user(
    store: ClusterStore,
    slurm: QueueSource,
    user: str,
    asker: Asker | None = None,
    *,
    age: int = 0,
) -> JobsExplanation:
    """Explains the priorities of all pending jobs of a user.

    Args:
        store: of the cluster, where the standings are.
        slurm: where the jobs are.
        user: login name.
        asker: as for a job.
        age: so as well.

    Raises:
        NothingToExplainError: no job of such a user waits or runs, or the asker may not see them.
        SlurmError: Slurm is away, and no job of such a user ran at the last cycle.
        StoreError: it cannot be found out.
    """
    if asker is not None and not (user == asker.user or asker.rights().operator):
        raise NothingToExplainError(
            f"the jobs of user {user} are shown only to that user and to operators"
        )
    queue = ReadQueue.asked_of(slurm)
    with store.reading() as view:
        scene, running = (
            QueueAndStandings(view, queue, seen_by(asker, user), age),
            view.runs.unfinished(),
        )
        jobs = scene.jobs_by_organization(running, lambda job: job.user == user)
    if not jobs:
        if queue.failure is not None:
            raise queue.failure
        elsewhere = {cluster for job, cluster in queue.elsewhere if job.user == user}
        counts = f" here, and pending ones count at {names_shown(elsewhere)}: ask there"
        raise NothingToExplainError(
            f"no job of user {user} is pending or running{counts if elsewhere else ''}; "
            f"see `squeue -u {user}` and `sacct -u {user}`"
        )
    return JobsExplanation(basis=scene.basis, whose="user", name=user, organizations=jobs)


def explain_account(
    store: ClusterStore,
    slurm: QueueSource,
    account: str,
    asker: Asker | None = None,
    *,
    age: int = 0,
) -> JobsExplanation:
    """Explains the priorities of all pending jobs of an account, without those below it.

    Args:
        store: of the cluster, where the standings are.
        slurm: where the jobs are.
        account: its name.
        asker: as for a job.
        age: so as well.

    Raises:
        NothingToExplainError: such an account was never heard of, or is not the asker's to see.
        StoreError: it cannot be found out.
    """
    if asker is not None and not asker.rights().see(account):
        raise NothingToExplainError(
            f"the jobs of account {account} are shown only to its coordinators and to operators; "
            "--user shows your own"
        )
    queue = ReadQueue.asked_of(slurm)
    with store.reading() as view:
        scene = QueueAndStandings(view, queue, seen_by(asker), age=age)
        running = view.runs.unfinished()
        jobs = scene.jobs_by_organization(running, lambda job: job.account == account, account)
    if not scene.tenures.knows("account", account) and not jobs[0].waiting:
        raise NothingToExplainError(unknown_account(account, scene.tenures))
    return JobsExplanation(basis=scene.basis, whose="account", name=account, organizations=jobs)


def _pushes_for(pushes: PushesView, job: PendingJob) -> Sequence[Push]:
    """Returns the last writes to what a job has its points of, by any channel."""
    found = {
        push.number: push
        for channel in CHANNELS.values()
        for push in pushes.latest(limit=PUSHES_SEARCHED, key=channel.key_of(job))
        if CHANNELS[push.channel].key_of(job) == push.key
    }
    return [found[number] for number in sorted(found, reverse=True)]


def _pushes_to(pushes: PushesView, label: str) -> Sequence[Push]:
    """Returns the last writes to the job with that id or name, as the store knows it."""
    by_id = pushes.latest(limit=PUSHES_SEARCHED, key=label)
    found = by_id or [push for push in pushes.latest(limit=PUSHES_SEARCHED) if push.label == label]
    return [push for push in found if CHANNELS[push.channel].per_job]


def unknown_account(account: str, tenures: Tenures) -> str:
    """Says that no such account is known, and which may be meant."""
    known = {tenure.name for tenure in tenures if tenure.kind == "account"}
    near = get_close_matches(account, sorted(known), n=1)
    hint = f"did you mean {near[0]}?" if near else "see `sacctmgr show account`"
    return f"no account {account} is known here; {hint}"
