"""The format of an export: which file has what. docs/export.md describes it.

A row that was written is checked when it is read: whoever sends an export may have changed it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from shapleyprio.config.values import OrganizationName
from shapleyprio.fairness.tenure import Kind

FORMAT: Literal["shapleyprio export"] = "shapleyprio export"

VERSION: Literal[1] = 1
"""Grows when a reader of before would misunderstand."""

MOST_PROCESSORS = 2**24 - 1
"""The most that a job may have, as in every log."""

LAST_SECOND = 2**32
"""Since the epoch, as in every log."""

LONGEST_LIMIT = 60 * 2**32
"""Seconds; Slurm has limits in minutes, and any user may ask for the longest."""

OF_KIND = "kind"
"""Says of what the name is by the field of this name beside it."""


@dataclass(frozen=True, slots=True)
class Named:
    """Says of a text that it names something.

    Attributes:
        kind: what, such as ``user``, or `OF_KIND`.
    """

    kind: str


class FreeText:
    """Says of a text that somebody has written it: no anonymized export has it."""


class Unordered:
    """Says of values that their order means nothing: an anonymized export has its own."""


class PointInTime:
    """Says of a number that it is a second since the epoch."""


class JobNumber:
    """Says of a number that Slurm gave it to a job."""


_VISIBLE = r"^[^\x00-\x1f\x7f]+$"
"""What a name is that may become one of a file."""

User = Annotated[str, Named("user"), Field(max_length=255)]
Account = Annotated[str, Named("account"), Field(max_length=255)]
Node = Annotated[str, Named("node"), Field(max_length=255)]
Partition = Annotated[str, Named("partition"), Field(max_length=255)]
Held = Annotated[str, Named(OF_KIND), Field(max_length=255)]
Pool = Annotated[str, Named("pool"), Field(max_length=64, pattern=_VISIBLE)]
ConsortiumName = Annotated[str, Named("consortium"), Field(max_length=255)]
Member = Annotated[str, Named("organization"), Field(max_length=64)]
Partitions = Annotated[tuple[Partition, ...], Unordered()]
Configured = Annotated[OrganizationName, Named("organization"), Field(max_length=64)]
LedgerName = Annotated[str, Named("ledger"), Field(max_length=64, pattern=_VISIBLE)]
Label = Annotated[str, Named("job"), Field(max_length=255)]
Reason = Annotated[str, FreeText(), Field(max_length=500)]
Word = Annotated[str, Field(max_length=64)]
Second = Annotated[int, PointInTime(), Field(ge=0, le=LAST_SECOND)]
Seconds = Annotated[int, Field(ge=0, le=LAST_SECOND)]
Job = Annotated[int, JobNumber(), Field(ge=0, le=2**53)]
Processors = Annotated[int, Field(ge=0, le=MOST_PROCESSORS)]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Priority = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Exact = Annotated[int, Field(gt=-(10**46), lt=10**46)]
Holdings = tuple[tuple[Member, Second | None], ...]
"""Who held something one after the other, each from a second on; None for always."""


class ExportRecord(BaseModel):
    """What is written as one object."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Row(ExportRecord):
    """A line of one of the files.

    Attributes:
        cluster: whose ledger it belongs to.
    """

    cluster: LedgerName


class ExportedAllocation(ExportRecord):
    """Processors of one owner that worked for one organization; see `Allocation`."""

    organization: Member
    owner: Member
    processors: Processors
    begin: Second
    end: Second | None


class ExportedRun(Row):
    """An execution of a job, in ``runs.jsonl``; see `Run`.

    Attributes:
        job: Slurm's own number.
        limit: seconds; None where unlimited or not known.
        nodes: node -> processors that it held there.
        allocations: whose processors worked for whom; none if it does not count.
    """

    job: Job
    submit: Second
    start: Second
    label: Label
    account: Account
    user: User
    partition: Partition
    state: Word
    release: Second
    limit: Annotated[int, Field(ge=0, le=LONGEST_LIMIT)] | None
    begin: Second
    end: Second | None
    paused_at: Second | None
    nodes: Annotated[dict[Node, Processors], Unordered()]
    counted: bool
    allocations: Annotated[tuple[ExportedAllocation, ...], Unordered()]

    @model_validator(mode="after")
    def _are_few(self) -> Self:
        held = (self.nodes.values(), (one.processors for one in self.allocations))
        if any(sum(processors) > MOST_PROCESSORS for processors in held):
            raise ValueError(f"has more than {MOST_PROCESSORS:,} processors")
        return self


class ExportedNode(Row):
    """A node, in ``nodes.jsonl``; see `NodeRow`."""

    name: Node
    since: Second
    processors: Processors
    partitions: Partitions


class ExportedAccount(Row):
    """An account's place in the tree, in ``accounts.jsonl``; see `AccountRow`."""

    name: Account
    since: Second
    parent: Account | None


class ExportedTenure(Row):
    """Time during which one organization held something, in ``tenures.jsonl``; see `Tenure`.

    Attributes:
        organization: empty for none.
    """

    kind: Kind
    name: Held
    organization: Member
    since: Second | None
    until: Second | None


class ExportedCorrection(Row):
    """A correction of past tenures, in ``corrections.jsonl``; see `CorrectionRow`."""

    number: Count
    kind: Kind
    name: Held
    at: Second
    user: User
    before: Holdings
    after: Holdings


class ExportedCapacity(Row):
    """What an organization brought to which partitions, in ``capacities.jsonl``.

    Attributes:
        processors: partitions, and the processors that are in exactly these; see `CapacityRow`.
    """

    organization: Member
    since: Second
    processors: Annotated[tuple[tuple[Partitions, Count], ...], Unordered()]


class ExportedSteering(Row):
    """Which rule ranked and which channel carried priorities, in ``steering.jsonl``.

    It lasts until the next row; see `SteeringRow`.
    """

    since: Second
    rule: Word
    chosen: Word
    channel: Word


class ExportedPause(Row):
    """A time in which nothing steered, in ``pauses.jsonl``; see `PauseRow`."""

    since: Second
    until: Second | None
    user: User
    reason: Reason
    keep: bool


class ExportedException(Row):
    """A job that went first, in ``exceptions.jsonl``; see `ExceptionRow`."""

    job: Job
    since: Second
    ended: Second | None
    label: Label
    organization: Member
    user: User
    reason: Reason
    before_all: bool
    passed: Annotated[dict[Member, Count], Unordered()]


class ExportedStanding(Row):
    """Where an organization stood last, in ``standings.jsonl``; see `StandingRow`."""

    cycle: Count
    organization: Member
    t: Second
    contribution: Exact
    utility: Exact
    score: Exact
    parts: Count
    all_parts: Count
    priority: Priority
    pending: Count
    running: Count
    processors: Count


class ExportedWorkAfterEnd(Row):
    """What a run executed after its end, in ``after_end.jsonl``; see `WorkAfterEnd`."""

    job: Job
    submit: Second
    start: Second
    organization: Member
    account: Account
    user: User
    end: Second
    processor_seconds: Count


class ExportedStay(ExportRecord):
    """A ledger's stay in a pool; see `Stay`."""

    pool: Pool
    since: Second
    clusters: Annotated[tuple[LedgerName, ...], Unordered()]
    stale_after: Seconds
    consortium: ConsortiumName


class ExportedLedger(ExportRecord):
    """A cluster, or what a pool has of one, as the manifest has it.

    Attributes:
        name: ``CLUSTER`` or ``CLUSTER/POOL``.
        weight: what counts as a processor.
        horizon: age in seconds from which a part gains no more worth; None for never.
        complete_from, complete_until: all that was executed between these seconds is there.
        releases: of Slurm, each with the first second at which it was seen.
        stay: in a pool; None if it is in none.
    """

    name: LedgerName
    weight: Word
    horizon: Seconds | None
    complete_from: Second
    complete_until: Second
    releases: tuple[tuple[Second, Word], ...]
    stay: ExportedStay | None


class Manifest(ExportRecord):
    """What stands in ``manifest.json``.

    Attributes:
        format, version: what this is.
        program: what wrote it.
        since, until: what was executed from then on and before is to be replayed, unless something
            else is asked for; None for no bound.
        organizations: in the order of the configuration, by which ties are broken.
        parents: organization -> its parent, of those that have one.
        ledgers: what is in it.
        anonymized: whether names were replaced.
        shifted: whether times were moved by whole weeks.
        rows: file -> number of its lines.
    """

    format: Literal["shapleyprio export"] = FORMAT
    version: Literal[1] = VERSION
    program: Word
    since: Second | None
    until: Second | None
    organizations: Annotated[tuple[Configured, ...], Field(min_length=1)]
    parents: Annotated[dict[Configured, Configured], Unordered()] = Field(default_factory=dict)
    ledgers: Annotated[tuple[ExportedLedger, ...], Field(min_length=1, max_length=1000)]
    anonymized: bool
    shifted: bool
    rows: dict[str, Count]

    @model_validator(mode="after")
    def _names_each_once(self) -> Self:
        for names in (self.organizations, [ledger.name for ledger in self.ledgers]):
            if len(set(names)) < len(names):
                raise ValueError("names an organization or a ledger twice")
        return self

    @property
    def games(self) -> list[str]:
        """One ledger of each pool, and those in none."""
        by_pool: dict[str, str] = {}
        for ledger in self.ledgers:
            by_pool.setdefault(ledger.stay.pool if ledger.stay else f"/{ledger.name}", ledger.name)
        return list(by_pool.values())


def wrong_in(error: ValidationError) -> str:
    """Says in a few words which value is wrong, and why."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"]))[:60]
    return f"{place}: {first['msg']}" if place else first["msg"]
