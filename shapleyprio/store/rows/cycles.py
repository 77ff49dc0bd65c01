"""What cycles decided, and what admins ordered and configured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple


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
        refused: writes that Slurm refused.
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
        job_id: Slurm's own number.
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
    def is_of_array(self) -> bool:
        """Whether its number means all tasks that wait, if it is that of an array."""
        return not self.by_guarantee and (self.label.isdecimal() or "[" in self.label)

    @property
    def others(self) -> str:
        """The jobs that it goes before, in words."""
        return "all others" if self.before_all else f"all others of {self.organization}"
