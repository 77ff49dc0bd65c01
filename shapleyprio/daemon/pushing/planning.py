"""Plans a cycle's writes: what organizations are to have, what goes first, what is put back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog

from shapleyprio.common.wording import listed, names_shown
from shapleyprio.daemon.pushing import push, submission
from shapleyprio.daemon.pushing.by_hand import SITE_FACTOR, Managed, set_by_hand, set_since
from shapleyprio.daemon.pushing.cut_off import CutOff, LastKnown
from shapleyprio.daemon.pushing.following import Followers, Foreign, values_after
from shapleyprio.daemon.pushing.going_first import FirstJobs, PlannedFirst, SiteFactors
from shapleyprio.daemon.pushing.lasting import Guaranteed, LastingExceptions
from shapleyprio.daemon.pushing.managed import KnownValues, PlanBasis, SettledJobs
from shapleyprio.daemon.pushing.push import Ours, Stamp, Wanted
from shapleyprio.daemon.pushing.rollback import plan_rollback
from shapleyprio.daemon.pushing.urgency import Limits, most_urgent
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.slurm.channels import CHANNELS, Channel, Claims, PriorityTarget
from shapleyprio.slurm.layout import Layout
from shapleyprio.slurm.port import PendingJob, PendingQueue, Slurm
from shapleyprio.slurm.remembering import Source
from shapleyprio.store import (
    ClusterStore,
    ExceptionRow,
    ManagedValue,
    NewPush,
    PauseRow,
    PublishedPoints,
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """The jobs that wait, whose they are, and what their organizations are to have.

    Attributes:
        pending: those that count.
        stranded: those that are in no pool any more.
        queue: all of the cluster.
        claims: whose they are.
        layout: of the cluster, as Slurm has it.
        wanted: the points of the organizations.
        stamp: for the record.
        guaranteed: jobs that guarantees put first; None if that is not known.
    """

    pending: Sequence[PendingJob]
    stranded: Sequence[PendingJob]
    queue: PendingQueue
    claims: Claims
    layout: Layout
    wanted: Wanted
    stamp: Stamp
    guaranteed: Guaranteed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a cycle is to write, and why it leaves the rest.

    Attributes:
        pause: during which it was planned, so that nothing is steered; None if nothing was paused.
        pushes: the writes that are to be made, or in a dry run would be, the most urgent first.
        postponed: how many more are left to the next cycle.
        at_submission: what new jobs had got from the table of points, for the record.
        missed: jobs, first seen, to which the table should have given points and did not.
        set_by_others: as `set_since` has it.
        first: what puts the jobs of exceptions first.
        foreign: what others have set where we write.
        guarantees: as `Followed` has it.
        parts: as `Guaranteed` has it.
    """

    pause: PauseRow | None = None
    pushes: Sequence[NewPush] = ()
    postponed: int = 0
    at_submission: Sequence[NewPush] = ()
    missed: int = 0
    set_by_others: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    first: PlannedFirst = field(default_factory=PlannedFirst)
    foreign: Foreign = field(default_factory=Foreign)
    guarantees: Mapping[tuple[str, str], int] = field(default_factory=dict)
    parts: Sequence[tuple[PendingJob, int]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnRecord:
    """What the store has of earlier writes.

    Attributes:
        managed: what we did on the channel.
        of_jobs: so for each channel that writes to jobs.
        published: what the table of points gives.
        given: so, where the channel writes.
        at_site: so, where the site factor is.
        least: as `push.plan` has it.
    """

    managed: Mapping[str, ManagedValue]
    of_jobs: Managed
    published: PublishedPoints | None
    given: frozenset[int]
    at_site: frozenset[int]
    least: int | None


class Planner:
    """Plans the writes of one ledger's cycles.

    Args:
        slurm: the cluster.
        store: of the ledger.
        channel: that carries the priorities.
        managed: what we did there.
        limits: how many writes are made at a time.
        followers: the jobs that are to follow what is written elsewhere.
        cut_off: goes on from a plan while the store is away; None if nothing does.
    """

    def __init__(
        self,
        slurm: Slurm,
        store: ClusterStore,
        channel: Channel,
        managed: KnownValues,
        limits: Limits,
        followers: Followers,
        cut_off: CutOff | None,
    ) -> None:
        self._slurm = slurm
        self._store = store
        self._channel = channel
        self._managed = managed
        self._limits = limits
        self._followers = followers
        self._cut_off = cut_off
        self._settled = SettledJobs()
        self._exceptions = LastingExceptions(store)
        self._foreign = Foreign()
        self._pause: PauseRow | None = None

    def continue_from(self, before: Planner) -> None:
        """Goes on after a planner of an earlier configuration: what it has logged is no news."""
        self._exceptions, self._foreign = before._exceptions, before._foreign
        self._pause = before._pause

    def plan(self, waiting: PlanInput, source: Source) -> Plan:
        """Plans what is wanted, or what a pause leaves to do.

        Args:
            waiting: the jobs, and what is wanted for them.
            source: where jobs may have started that an exception puts first.

        Raises:
            SlurmError: Slurm is away or refuses.
            StoreError: so for the store.
        """
        pause, guaranteed = self._read_pause(), waiting.guaranteed
        if pause is not None:  # nobody can keep a guarantee meanwhile, so none is asked for
            guaranteed = Guaranteed(started=guaranteed.started if guaranteed else ())
        followed = self._exceptions.follow(
            waiting.queue, waiting.pending, source.started, waiting.stamp.at, guaranteed
        )
        if pause is not None:
            plan = self._plan_pause(pause, waiting)
            return replace(plan, guarantees=followed.guarantees)
        plan = self._plan(waiting, followed.rows, self._read(waiting))
        parts = guaranteed.parts if guaranteed else ()
        return replace(plan, guarantees=followed.guarantees, parts=parts)

    def _plan(
        self, waiting: PlanInput, exceptions: Sequence[ExceptionRow], record: _OnRecord
    ) -> Plan:
        channel, wanted, stamp = self._channel, waiting.wanted, waiting.stamp
        basis = PlanBasis(
            points=wanted.points,
            claims=waiting.claims,
            given=record.given,
            least=record.least,
            managed=record.managed,
        )
        unsettled = self._settled.others(waiting.pending, basis)
        looked_at = unsettled if channel.per_job else waiting.pending
        claims = waiting.claims
        if channel.carrier == "QOS":  # what the configuration no longer names is put back
            claims = replace(claims, qos={**dict.fromkeys(record.managed, NOBODY), **claims.qos})
        targets = channel.targets(self._slurm, looked_at, claims)
        at_site = self._at_site(waiting, record)
        first = FirstJobs.among(waiting.pending, exceptions, self._slurm, at_site)
        foreign = push.foreign(channel, targets, record.managed, at_site.ours)
        left_alone = {target.key for target in foreign}
        if channel is SITE_FACTOR:
            left_alone |= first.keys
        ours = [target for target in targets if target.key not in left_alone]
        needed = push.plan(channel, ours, record.managed, wanted, stamp, record.given, record.least)
        self._settled.settle(
            waiting.pending, unsettled, first.keys.union(item.key for item in needed)
        )
        needed += self._back(waiting, record, first)
        room = max(wanted.points.values(), default=0)
        planned_first = first.plan(waiting.pending, needed, at_site, room, stamp)
        needed += planned_first.pushes
        published = record.published is not None
        new = submission.first_seen(targets, record.managed) if published else []
        followed = ours if channel.follows_late else []
        del targets, ours  # as many as jobs wait, and to weigh what is needed takes memory as well
        pushes = most_urgent(needed, waiting.pending, self._limits)
        made = [item for item in pushes if item.channel == channel.name]
        strays = self._followers.await_values(
            channel, waiting.pending, values_after(followed, made, wanted), record.managed
        )
        others = {name: of for name, of in record.of_jobs.items() if name != channel.name}
        news = set_since(self._slurm, waiting.queue.jobs, others, record.published)
        if channel.per_job and (here := push.news_of_foreign(foreign, record.managed)):
            news[channel.name] = here
        found = self._foreign_at(waiting, record, foreign, strays, at_site.ours)
        self._log_foreign(found)
        self._note_last_known(waiting, record)
        keys = {item.key for item in made}  # a job that is postponed is seen again next time
        seen = [one for one in new if one.key in keys]
        return Plan(
            pushes=pushes,
            postponed=len(needed) - len(pushes),
            at_submission=submission.found_at(new, record.given, stamp),
            missed=submission.count_missed(seen, looked_at, record.published, wanted),
            set_by_others=news,
            first=planned_first,
            foreign=found,
        )

    def _at_site(self, waiting: PlanInput, record: _OnRecord) -> SiteFactors:
        """Returns what stands at the site factors of jobs, whatever the channel."""
        points = waiting.wanted.points
        return SiteFactors(
            claims=waiting.claims,
            points=points if self._channel is SITE_FACTOR else dict.fromkeys(points, 0),
            managed=record.of_jobs[SITE_FACTOR.name],
            given=record.at_site,
        )

    def _back(self, waiting: PlanInput, record: _OnRecord, first: FirstJobs) -> list[NewPush]:
        """Returns the writes that put back what other channels and jobs in no pool still have.

        What jobs have that wait in the segments of other ledgers is left to these, which know
        their own exceptions.
        """
        others = [other for other in CHANNELS.values() if other is not self._channel]
        back = first.without(plan_rollback(self._store, self._slurm, others, waiting.stamp))
        if back:
            here = push.live_keys(waiting.pending) | push.live_keys(waiting.stranded)
            elsewhere = push.live_keys(waiting.queue.jobs) - here
            back = [item for item in back if item.key not in elsewhere]
        return back + push.put_back(
            self._channel,
            self._slurm,
            waiting.stranded,
            record.managed,
            waiting.stamp,
            record.given,
            record.least,
        )

    def _note_last_known(self, waiting: PlanInput, record: _OnRecord) -> None:
        """Lets new jobs get these points, too, while the store is away."""
        if self._cut_off is not None:
            self._cut_off.last_known = LastKnown(
                cycle=waiting.stamp.cycle,
                wanted=waiting.wanted,
                claims=waiting.claims,
                given=record.given,
                least=record.least,
                keys=frozenset(push.live_keys(waiting.pending)).union(record.managed),
            )

    def _read_pause(self) -> PauseRow | None:
        """Returns the pause that lasts, and logs it when that has changed."""
        with self._store.reading() as view:
            pause = view.orders.pause()
        if pause != self._pause:
            self._pause = pause
            if pause is None:
                log.info("steering goes on after a pause")
            else:
                log.warning("steering is paused", by=pause.user, why=pause.reason)
        return pause

    def _plan_pause(self, pause: PauseRow, waiting: PlanInput) -> Plan:
        """Plans to put back what was found, at once; unless it is to stay as it was written."""
        if self._cut_off is not None:
            self._cut_off.last_known = None
        record = self._read(waiting)
        news = set_since(self._slurm, waiting.queue.jobs, record.of_jobs, record.published)
        if pause.keep:
            return Plan(pause=pause, set_by_others=news)
        back = plan_rollback(self._store, self._slurm, CHANNELS.values(), waiting.stamp)
        return Plan(pause=pause, pushes=back, set_by_others=news)

    def _read(self, waiting: PlanInput) -> _OnRecord:
        with self._store.reading() as view:
            managed = self._managed.read(view)
            published = view.pushes.published_points()
            of_jobs = {
                one.name: managed if one is self._channel else view.pushes.managed_values(one.name)
                for one in CHANNELS.values()
                if one.per_job
            }
        return _OnRecord(
            managed=managed,
            of_jobs=of_jobs,
            published=published,
            given=submission.given_on(self._channel, published),
            at_site=submission.given_on(SITE_FACTOR, published),
            least=self._channel.least_asked(lambda: waiting.layout.settings),
        )

    def _foreign_at(
        self,
        waiting: PlanInput,
        record: _OnRecord,
        foreign: Sequence[PriorityTarget],
        strays: Sequence[PendingJob],
        ours: Ours,
    ) -> Foreign:
        """Returns what others have set, at our targets and at jobs themselves."""
        user_top = waiting.layout.settings.user_top
        by_hand = set_by_hand(
            waiting.pending, record.of_jobs, ours, waiting.claims, user_top=user_top
        )
        return Foreign(
            () if self._channel.per_job else tuple(target.key for target in foreign),
            tuple(job.label for job in strays),
            by_hand,
        )

    def _log_foreign(self, foreign: Foreign) -> None:
        """Logs what others have set, when it is not what they had in the cycle before."""
        if foreign == self._foreign:
            return
        self._foreign = foreign
        if foreign == Foreign():
            log.info("no foreign priorities are left", channel=self._channel.name)
            return
        log.warning(
            "somebody else has set priorities; they are left as they are",
            channel=self._channel.name,
            targets=listed(foreign.targets),
            jobs=listed(foreign.jobs),
            **{f"by_{kind}": names_shown(labels) for kind, labels in foreign.by_hand.items()},
        )
