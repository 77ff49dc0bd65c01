"""The records that the store keeps beside runs, allocations, entries and tenures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from shapleyprio.fairness.runs import Run
from shapleyprio.fairness.tenure import Allocation, Kind
from shapleyprio.fairness.trajectory import Trajectory
from shapleyprio.slurm.port import Malformed

AllocatedRun = tuple[Run, tuple[Allocation, ...]]
"""A run and its allocations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """How far a cluster's accounting has come; written together with the rows it stands for.

    Attributes:
        weight: what counts as a processor in all that is stored.
        opened: first second that counts.
        observed_until: second up to which accounting is known to be complete.
        sure_until: what the controller's clock would show if it had never gone ahead, at the last
            look at it: if it comes back, records bear times from there on.
        accounted_to: time at which the stored ledger stands; no event in it is later.
        horizon: age in seconds from which a part gains nothing more, None for never.
        folded_to: the fold of the stored ledger.
        pruned_until: runs that ended up to then are no longer stored.
        controller_time: the controller's clock at the last look; 0 before the first.
        boot: identifies the boot to which monotonic_time belongs.
        monotonic_time: this machine's clock at the last look, which cannot be set.
        again_from: second from which accounting is to be read once more, for late records; None
            where that is not needed.
        again_at: when, by the machine's own clock.
    """

    weight: str = "cpus"
    opened: int
    observed_until: int
    sure_until: int
    accounted_to: int = 0
    horizon: int | None
    folded_to: int = 0
    pruned_until: int
    controller_time: int = 0
    boot: str = ""
    monotonic_time: int = 0
    again_from: int | None = None
    again_at: int = 0

    @property
    def complete_until(self) -> int:
        """Second up to which accounting is complete, with the records that may still be late."""
        known = (self.observed_until, self.again_from)
        return min(second for second in known if second is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionRow:
    """A node or an account of which a correction changed who had held it since when.

    Attributes:
        number: of the correction, which may have changed others as well.
        kind: ``node`` or ``account``.
        name: of it.
        at: when it was corrected, seconds since the epoch.
        user: who did it, for people.
        before, after: its holders one after the other, NOBODY among them, each with the first
            second for which it counts (None for always).
    """

    number: int
    kind: Kind
    name: str
    at: int
    user: str
    before: tuple[tuple[str, int | None], ...]
    after: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A node as Slurm has it configured, until its next row.

    Attributes:
        name: its name.
        since: second from which it is so.
        processors: how many it has, up or down, in the ledger's weight; 0 once it is gone.
        partitions: names of those that it is in, sorted.
    """

    name: str
    since: int
    processors: int
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """Where an account is in the tree of accounts, until its next row; it stays when it is gone.

    Attributes:
        name: its name.
        since: second from which it is so.
        parent: the account above it; None right below the root.
    """

    name: str
    since: int
    parent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRow:
    """How many processors an organization brings to which partitions, until its next row.

    Of a node on which Slurm starts no jobs, only what its running jobs hold counts; of one in no
    partition, nothing.

    Attributes:
        organization: that owns them.
        since: second from which it brings so many.
        processors: names of partitions, sorted -> those of its nodes that are in exactly these, in
            the ledger's weight, above 0; empty once it has none any more.
    """

    organization: str
    since: int
    processors: Mapping[tuple[str, ...], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleRow:
    """One cycle of the service.

    Attributes:
        number: counts up from 1.
        started, finished: seconds since the epoch.
        outcome: one word.
        t: second at which the ledger stood at its end; 0 if it did not get there.
        seen: records read, those of jobs that wait left out.
        kept: runs written to the store.
        quarantined: lines that could not be read.
        refused: writes that Slurm refused; in cycles before revision 0006 of the store, lines
            that could not be read as well.
        written: priorities written to Slurm.
        message: one line for the admin (at most 500 characters are kept).
        seconds: phase -> how long it took.
        slurm_version: the release of Slurm, such as ``24.11.5``; empty if it is not known.
        adapter: through which Slurm was spoken to; empty if it is not known.
        rule: name of the rule that ranked the organizations; empty if it did not get there.
        estimated_at: second for which the contributions that it ranked by were estimated; None
            if they are the ledger's.
        missed: pending jobs first seen without the points that the table of points should have
            given them.
        postponed: writes left to the next cycle.
        of_unknown_accounts: pending jobs under accounts that Slurm's accounting does not know.
        by_hand: what somebody has set at pending jobs (``priority``, ``site_factor`` or ``nice``)
            -> at how many.
    """

    number: int
    started: int
    finished: int
    outcome: str
    t: int = 0
    seen: int = 0
    kept: int = 0
    quarantined: int = 0
    refused: int = 0
    written: int = 0
    message: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    slurm_version: str = ""
    adapter: str = ""
    rule: str = ""
    estimated_at: int | None = None
    missed: int = 0
    postponed: int = 0
    of_unknown_accounts: int = 0
    by_hand: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeringRow:
    """What gave jobs their priorities, until the next row.

    Attributes:
        since: second of its first cycle, or of the rollback.
        rule: that ranked the organizations; empty where nothing steered, after a rollback or in a
            pause.
        chosen: the rule that was configured; `rule` differs while there is no estimate to rely on.
        channel: that carried the priorities.
    """

    since: int
    rule: str
    chosen: str
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationRow:
    """A configuration that a daemon has taken over, or refused.

    Attributes:
        number: counts up from 1.
        at: when, by the clock of the daemon's host.
        version: of shapleyprio.
        written: key that the file sets -> its value, without secrets; empty if it was refused.
        refused: why; empty if it was not.
    """

    number: int
    at: int
    version: str
    written: Mapping[str, str]
    refused: str = ""


class Interruption(NamedTuple):
    """Cycles that failed one after the other for one reason, or a time without any.

    Attributes:
        begin, end: seconds by the clock of the daemon's host.
        cycles: how many failed; 0 where there were none.
        outcome: theirs; empty where there were none.
        message: of the last one.
    """

    begin: int
    end: int
    cycles: int = 0
    outcome: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingJobs:
    """The jobs of an organization that could start in a partition and wait, at the last cycle.

    Attributes:
        organization: the jobs' organization.
        partition: where they may start; a job that names several counts in each.
        jobs: how many.
        since: second from which the first of them could start.
    """

    organization: str
    partition: str
    jobs: int
    since: int


class Wait(NamedTuple):
    """How long a job waited before it started.

    Attributes:
        organization: the job's organization.
        partition: where it started.
        seconds: from its release to its start.
    """

    organization: str
    partition: str
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedClockRow:
    """A controller's clock that was behind the ledger, and is right, for an admin has said so.

    Attributes:
        at: second by that clock, at which the ledger stands since.
        before: second at which it stood.
        ahead: runs that lay ahead, and are accounted when their time has come.
        user: who accepted it, for people.
    """

    at: int
    before: int
    ahead: int
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRow:
    """A time in which nothing steers, for an admin has said so.

    Attributes:
        since: its begin, by the cluster's clock.
        user: who paused, for people.
        reason: why.
        keep: whether priorities stay as they were written, instead of being put back.
        until: its end; None while it lasts.
        resumed_by: who ended it; empty while it lasts.
    """

    since: int
    user: str
    reason: str
    keep: bool
    until: int | None = None
    resumed_by: str = ""


GUARANTEE = "fairness.guarantee"
"""Who orders exceptions that no user does: the key of the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExceptionRow:
    """A job that goes first, for an admin or its organization's guarantee has said so.

    Attributes:
        job_id: Slurm's own number; that of an array means all its tasks that wait.
        since: when it was ordered, by the cluster's clock.
        label: the name users know the job by.
        organization: for which it counts.
        user: who ordered it, for people; GUARANTEE if nobody did.
        reason: why.
        before_all: whether it goes before the jobs of all organizations, not of its own alone.
        until: when it ends at the latest; None for no such end.
        ended: its end; None while it lasts.
        ended_by: what ended it, for people; empty while it lasts.
        passed: organization, NOBODY among them -> how many jobs it was put before, when it was
            first followed; empty until then.
    """

    job_id: int
    since: int
    label: str
    organization: str
    user: str
    reason: str
    before_all: bool
    until: int | None = None
    ended: int | None = None
    ended_by: str = ""
    passed: Mapping[str, int] = field(default_factory=dict)

    @property
    def by_guarantee(self) -> bool:
        """Whether nobody has ordered it."""
        return self.user == GUARANTEE

    @property
    def others(self) -> str:
        """The jobs that it goes before, in words."""
        return "all others" if self.before_all else f"all others of {self.organization}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingRow:
    """An organization's standing after a cycle.

    Attributes:
        cycle: its number.
        organization: that stands there.
        t: the second it holds for.
        contribution: the one that its score counts, φ̃ or an estimate of φ, in part-seconds.
        utility: ψ at t, in part-seconds.
        score: by which the ranking rule orders the organizations, the highest first.
        parts: of its jobs completed by t, no older than the horizon.
        all_parts: of all jobs, whoever's, completed by t, of any age; 0 if none were, or if the
            row is from a release that did not keep it.
        priority: what its jobs were given.
        pending, running: jobs.
        processors: owned.
        reason: why it has its priority, in a few words of the ranking rule.
        parent: organization that it is a part of; None if it is part of none.
    """

    cycle: int
    organization: str
    t: int
    contribution: int
    utility: int
    score: int
    parts: int
    priority: int
    pending: int
    running: int
    processors: int
    reason: str = ""
    all_parts: int = 0
    parent: str | None = None

    @property
    def head(self) -> str:
        """The organization at the head of its union: its parent, else itself."""
        return self.parent or self.organization

    @property
    def balance(self) -> int:
        """Contribution − ψ in part-seconds: the higher, the more it gave beyond what it got."""
        return self.contribution - self.utility

    @property
    def balance_per_part(self) -> Fraction | None:
        """The balance in seconds, spread over all parts; None if no part is known of."""
        return Fraction(self.balance, self.all_parts) if self.all_parts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAfterEnd:
    """A run whose processes went on after its end, while Slurm waited for them to end.

    Attributes:
        job_id, submit, start: the key of the run.
        organization: whose account it was at its end; NOBODY if no organization claimed it.
        account, user: as accounted.
        end: of the run, since the epoch.
        processor_seconds: of all its processors from then until its last process had ended, in the
            configured weight.
    """

    job_id: int
    submit: int
    start: int
    organization: str
    account: str
    user: str
    end: int
    processor_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAfterEnd:
    """What a user's runs in the accounts of one organization executed after their ends.

    Attributes:
        user, organization: whose it is, as in `WorkAfterEnd`.
        jobs: how many executions of jobs.
        processor_seconds: of all of them.
        last: the newest end of such a run, since the epoch.
    """

    user: str
    organization: str
    jobs: int
    processor_seconds: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRow:
    """An organization's estimated contribution, and what it rests on.

    Attributes:
        t: second for which it was estimated, since the epoch.
        organization: to which it belongs.
        begin: first second of which the coalitions were simulated.
        value, rate, acceleration, denominator: of φ in part-seconds at t and later, see
            `Trajectory`.
        error: standard error of φ in part-seconds; 0 if all coalitions were valued.
        utility: ψ of its jobs, of their parts from the begin on.
        alone: v({u}), what its jobs would be worth on its processors alone.
        without: v(N∖u), what the others' jobs would be worth on the others' processors.
        parts: of its jobs from the begin on.
        coalitions: how many were valued.
    """

    t: int
    organization: str
    begin: int
    value: int
    rate: int
    acceleration: int
    denominator: int
    error: int
    utility: int
    alone: int
    without: int
    parts: int
    coalitions: int

    @property
    def contribution(self) -> Trajectory:
        """φ in part-seconds, at t and later."""
        return Trajectory(self.value, self.rate, self.acceleration, self.denominator)


LATER = 2**62
"""Second of a forecast: later than any future was played."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastRow:
    """When a waiting job will start, as was forecast; seconds since the epoch, LATER perhaps.

    Attributes:
        job_id: Slurm's own number, that of the array for a part of one.
        t: second at which it was forecast.
        organization: whose job it is.
        median: half of the futures had started it by then.
        early, late: the interval that was told.
        drawn_early, drawn_late: that of the futures, before it was widened by what was observed.
        within_hour: in so many of 100 futures it starts within an hour from t on.
        waits_for: ``turn``, ``processors``, ``time`` (at which it is to begin), or ``dependency``.
    """

    job_id: int
    t: int
    organization: str
    median: int
    early: int
    late: int
    drawn_early: int
    drawn_late: int
    within_hour: int
    waits_for: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldForecast(ForecastRow):
    """A forecast that is judged when its job starts.

    Attributes:
        start: when it did, since the epoch; None if it has not yet.
    """

    start: int | None

    @property
    def held(self) -> bool:
        """Whether the job started in the interval that was told."""
        return self.start is not None and self.early <= self.start <= self.late


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingWork:
    """The waiting work that a user's jobs of one account bring into the newest estimate.

    Attributes:
        organization: whose account it is.
        account, user: of the jobs.
        jobs: how many, tasks of arrays each.
        processor_seconds: their processors times the seconds that they are expected to last.
    """

    organization: str
    account: str
    user: str
    jobs: int
    processor_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBack:
    """A job that counts for shorter than Slurm has called it eligible.

    Attributes:
        job_id: Slurm's own number; that of an array for all of its tasks.
        counts_since: second from which it counted, when it last began to; None if it never did
            anew.
        kept_since: second since which it could not start, had it been its turn; None if it could.
    """

    job_id: int
    counts_since: int | None
    kept_since: int | None

    def release(self, eligible: int, start: int) -> int:
        """Returns the second from which a run of the job could have started.

        Args:
            eligible: since when Slurm has called the job eligible.
            start: of the run. If the job was kept back until then, it could not start earlier.
        """
        if self.kept_since is not None and start >= self.kept_since:
            return start
        return min(max(eligible, self.counts_since or 0), start)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftRow:
    """What a schedule of a replayed window gave an organization, beside what was fair.

    Attributes:
        t: end of the window, in seconds since the epoch.
        organization: that has the utility.
        schedule: ``recorded``, ``directcontr``, ``fairshare``, or ``alone`` for what it would
            have had alone, with its own jobs and processors.
        begin: of the window.
        reference: what counts as fair: ``ref``, or ``rand`` where coalitions were sampled.
        utility: its ψ in the schedule at t, in part-seconds; v({u}) if alone.
        fair: its ψ in the reference's schedule.
        parts: that all organizations' jobs completed in the reference's schedule.
    """

    t: int
    organization: str
    schedule: str
    begin: int
    reference: str
    utility: int
    fair: int
    parts: int

    @property
    def drift(self) -> Fraction:
        """(ψ − ψ*) / p_tot: seconds by which the parts of all came too early because of it."""
        return Fraction(self.utility - self.fair, self.parts)


class PushState(StrEnum):
    """What became of a write to Slurm.

    PLANNED until it is known; UNCONFIRMED if Slurm could not be asked whether it took it;
    AT_SUBMISSION if we did not write: slurmctld took the value from the table of points.
    """

    PLANNED = "planned"
    APPLIED = "applied"
    REFUSED = "refused"
    UNCONFIRMED = "unconfirmed"
    AT_SUBMISSION = "at submission"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPush:
    """A write to Slurm, noted before it is tried.

    Attributes:
        cycle: number of the cycle it is part of.
        channel: name of the channel.
        target: as `Slurm.write` takes it: a job or part of an array, or a QOS.
        key: under which the target's managed value is stored: the job id, or the QOS.
        organization: for whom.
        label: the name users know the job by.
        original: value before we ever touched the target, which rolling back restores.
        old: value before this write.
        new: value after it.
        reason: why (at most 500 characters are kept).
        at: when, seconds since the epoch.
    """

    cycle: int
    channel: str
    target: str
    key: str
    organization: str
    label: str
    original: int
    old: int
    new: int
    reason: str
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Push(NewPush):
    """A write to Slurm.

    Attributes:
        number: counts up from 1 on its cluster.
        state: what became of it.
        note: what Slurm said to it, say.
    """

    number: int
    state: PushState
    note: str


@dataclass(frozen=True, slots=True)
class ManagedValue:
    """What we did to a job or QOS, kept as long as it exists.

    It stays after a rollback: a task that left its array before inherited a value of ours.

    Attributes:
        original: what the user or admin had asked for, which a rollback puts back.
        written: values of ours that may stand there, the last one last.
        by_hand: what somebody else has set there and we have seen since we wrote; None for nothing.
            It stands there instead, but not at tasks that had left the array before.
    """

    original: int
    written: tuple[int, ...]
    by_hand: int | None = None

    @property
    def asked(self) -> int:
        """What somebody else wants there."""
        return self.original if self.by_hand is None else self.by_hand

    @property
    def is_ours(self) -> bool:
        """Whether something of ours stood there when it was last written or seen."""
        return self.by_hand is None and self.written[-1] != self.original


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPoints:
    """What the table of points has given to new jobs, on the channel `site_factor`.

    Attributes:
        path: of the table.
        given: points that may stand at a job because of it, those of the last table among them.
        since: second after which every new job gets them; None while there is no table.
        until: second of the last submission that may have got some; None while there may be a
            table.
    """

    path: str
    given: tuple[int, ...]
    since: int | None
    until: int | None

    def may_have_given(self, submit: int) -> bool:
        """Returns whether a job that was submitted then may have got points from the table."""
        return self.until is None or submit <= self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedLine:
    """A line of Slurm's that could not be read.

    Attributes:
        line: source, text (at most 2,000 characters of it) and what is wrong with it.
        first_seen, last_seen: seconds since the epoch.
        times: how often.
    """

    line: Malformed
    first_seen: int
    last_seen: int
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRow:
    """Who may write to a cluster's Slurm.

    Attributes:
        holder: a name unique to the process that holds it; empty if it was given back.
        host, pid: where it runs, for people.
        since, renewed_at: seconds since the epoch, by the database's clock.
        ttl: seconds without a sign of life after which others may take it.
        token: grows each time it is taken.
        beat: grows with each sign of life of its holder.
        has_journal: whether its holder goes on steering while it can show no life, so that no one
            may take it.
        age: seconds since renewed_at, by the database's clock.
    """

    holder: str
    host: str
    pid: int
    since: int
    renewed_at: int
    ttl: int
    token: int
    beat: int
    has_journal: bool
    age: int

    @property
    def is_held(self) -> bool:
        """Whether it was taken and not given back, be its holder alive or not."""
        return bool(self.holder)

    def shows_life_since(self, before: LeaseRow) -> bool:
        """Returns whether it was taken, given back or renewed in between."""
        return (self.holder, self.token, self.beat) != (before.holder, before.token, before.beat)


@dataclass(frozen=True, slots=True)
class Revision:
    """The revision of a store's tables.

    Attributes:
        current: what it has, None if it has no tables yet.
        head: what this release works with.
    """

    current: str | None
    head: str
