"""A simulated cluster whose clock steps and whose accounting is late, corrected and doubled."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from shapleyprio.lab.simulated import SimulatedSlurm, SimulatedSpec
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.layout import Layout, Node, Reservation
from shapleyprio.slurm.port import Controller, Malformed, PendingQueue, StartedJob, unchecked
from shapleyprio.slurm.running import Moment
from tests.daemon.consortium import NOW, QUIET

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from random import Random

    from shapleyprio.fairness.runs import JobRecord, Run, RunKey
    from shapleyprio.lab.simulated import DaemonName
    from shapleyprio.lab.simulated.jobs import RowKey

NODES = {"a1": 4, "a2": 4, "b1": 4, "c1": 2}
ACCOUNTS = ["phys", "bio", "chem", "lab", "guest"]
QOS = ["q1", "q2", "q3"]
PARTITIONS = {"all": ["a1", "a2", "b1", "c1"], "pa": ["a1", "a2"], "pbc": ["b1", "c1"]}


@dataclass
class Moments:
    """The moments at which something may happen to the daemon: each question, write, statement.

    Attributes:
        passed: how many there were since `arm`.
    """

    passed: int = 0
    _at: int | None = None
    _happens: Callable[[str], None] | None = None

    def arm(self, moment: int, happens: Callable[[str], None]) -> None:
        """Lets something happen once, when so many more moments have passed."""
        self.passed, self._at, self._happens = 0, moment, happens

    def disarm(self) -> None:
        """Lets nothing happen any more."""
        self._at = self._happens = None

    def pass_(self, name: str) -> None:
        """A moment, by what is about to be done."""
        self.passed += 1
        if self._at is not None and self.passed > self._at:
            happens = self._happens
            self.disarm()
            if happens is not None:
                happens(name)


@dataclass(frozen=True)
class Write:
    """A write that reached Slurm.

    Attributes:
        token: by which it was made.
        needed: whether something else stood there.
    """

    token: int
    channel: str
    target: str
    value: int
    needed: bool


@dataclass
class _Correction:
    """What somebody has changed in a record by hand."""

    columns: dict[str, Any] = field(default_factory=dict)
    taken_out: bool = False


class FaultyCluster(SimulatedSlurm):
    """Three organizations' cluster. Its seconds never go back, but the controller's clock does.

    Every time in a record is what the controller's clock showed then.

    Args:
        name: its name.
        chance: decides in which order records come, and which twice.
        delay: seconds until a change of a record can be read; the controller says nothing of it.

    Attributes:
        moments: of what it is asked.
        token: by which it is written to.
        boot: of the machine on which the daemon runs.
        delay: as above.
        writes: what was written.
    """

    def __init__(self, name: str, chance: Random, *, delay: int = 0) -> None:
        super().__init__(
            SimulatedSpec(
                cluster=name,
                nodes=NODES,
                partitions=PARTITIONS,
                accounts=dict.fromkeys(ACCOUNTS),
                qos=dict.fromkeys(["normal", *QOS], 0),
                settings=replace(QUIET, weights={"Age": 0, "QOS": 0, "Assoc": 1000}),
            ),
            now=NOW,
            accounting_delay=delay,
        )
        self.moments = Moments()
        self.token = 0
        self.boot = 0
        self.writes: list[Write] = []
        self._chance = chance
        self.delay = delay
        self._catching_up_until = NOW
        self._stepped_at = [NOW]
        self._offsets = [0]
        self._corrections: dict[RowKey, _Correction] = {}

    # -- the clock

    @property
    def clock(self) -> int:
        """What the controller's clock shows."""
        return self._stamp(self.now)

    @property
    def latest_clock(self) -> int:
        """The latest second that it has shown or will have shown when it is a second later."""
        ends = [*self._stepped_at[1:], self.now + 1]
        return max(end + offset for end, offset in zip(ends, self._offsets, strict=True))

    def step(self, seconds: int) -> None:
        """Somebody sets the clock; within a second that has just begun nothing has happened."""
        self.advance(self.now + 1)
        self._stepped_at.append(self.now)
        self._offsets.append(self._offsets[-1] + seconds)

    def _stamp(self, second: int) -> int:
        return second + self._offsets[bisect_right(self._stepped_at, second) - 1]

    def wait(self, seconds: int) -> None:
        """Lets time pass."""
        self.advance(self.now + seconds)

    # -- accounting

    @property
    def accounting_is_up(self) -> bool:
        return "slurmdbd" not in self._down and self.now >= self._catching_up_until

    @property
    def controller_is_up(self) -> bool:
        return "slurmctld" not in self._down

    @property
    def may_fail(self) -> bool:
        """Whether a question or a write may find Slurm away."""
        return bool(self._down) or self._writes_left is not None

    def rows(self) -> dict[RowKey, JobRecord]:
        """All that happened: job and how often it was requeued -> its record, as it reads now."""
        found = {}
        for job_id, runs in self._accounting._rows.items():
            records = self._accounting.of([job_id], self.now)
            for (run, _), record in zip(runs.items(), records, strict=True):
                key = (job_id, run)
                correction = self._corrections.get(key, _Correction())
                if not correction.taken_out:
                    found[key] = replace(self._stamped(record), **correction.columns)
        return found

    def correct(self, key: RowKey, **columns: Any) -> None:
        """Somebody changes a record by hand."""
        self._corrections.setdefault(key, _Correction()).columns.update(columns)

    def take_out(self, key: RowKey) -> None:
        """Somebody removes a record, as if it had never been."""
        self._corrections.setdefault(key, _Correction()).taken_out = True

    def _stamped(self, record: JobRecord) -> JobRecord:
        start, elapsed = record.start, record.elapsed
        if start is not None:
            elapsed = max(0, self._stamp(start + elapsed) - self._stamp(start))
        return replace(
            record,
            submit=self._stamp(record.submit),
            eligible=None if record.eligible is None else self._stamp(record.eligible),
            start=None if start is None else self._stamp(start),
            end=None if record.end is None else self._stamp(record.end),
            elapsed=elapsed,
        )

    def _as_they_come(self, records: Iterable[JobRecord]) -> Iterator[JobRecord | Malformed]:
        listed = list(records)
        listed += [record for record in listed if self._chance.random() < 0.2]
        self._chance.shuffle(listed)
        return iter([*(line for line in self.malformed if line.source != "squeue"), *listed])

    # -- what goes wrong

    def bring_up(self, daemon: DaemonName) -> None:
        super().bring_up(daemon)
        if daemon == "slurmdbd":
            self._catching_up_until = self.now + self.delay

    def write_on(self) -> None:
        """Forgets that a write was to be cut off."""
        self._writes_left = None

    def forget_a_write(self) -> None:
        """The controller is killed, and has not saved what was last written to one of its jobs."""
        waiting = list(self._engine.waiting.jobs.values())
        if waiting:
            job = self._chance.choice(waiting)
            job.site_factor = 0
            self._engine.compute(job)

    # -- the port

    def controller(self) -> Controller:
        self.moments.pass_("controller")
        found = super().controller()
        behind = found.accounting_backlog and (
            "slurmdbd" in self._down or self.now < self._catching_up_until
        )
        seen = Moment(f"boot {self.boot}", found.seen.seconds - 1000 * self.boot)
        return replace(found, time=self.clock, accounting_backlog=behind and 1, seen=seen)

    def layout(self) -> Layout:
        self.moments.pass_("layout")
        return super().layout()

    def nodes(self) -> Mapping[str, Node]:
        self.moments.pass_("nodes")
        return super().nodes()

    def records(self, since: int, until: int) -> Iterator[JobRecord | Malformed]:
        self.moments.pass_("records")
        list(super().records(since, until))
        return self._as_they_come(
            record
            for record in self.rows().values()
            if record.submit <= until and (record.end is None or record.end >= since)
        )

    def records_of(self, job_ids: Sequence[int]) -> Iterator[JobRecord | Malformed]:
        self.moments.pass_("records_of")
        list(super().records_of(job_ids))
        return self._as_they_come(
            record for record in self.rows().values() if record.job_id in set(job_ids)
        )

    def processors_of(self, runs: Sequence[Run]) -> Mapping[RunKey, Mapping[str, int]]:
        self.moments.pass_("processors_of")
        self._need("slurmctld")
        starts = {(row.job_id, row.start): key for key, row in self.rows().items()}
        found = {}
        for run in runs:
            key = starts.get((run.key.job_id, run.key.start))
            job = self._engine._jobs.get(run.key.job_id)
            if key is not None and job is not None and job.execution == key[1]:
                found[run.key] = dict(job.allocation)
        return found

    def pending(self) -> PendingQueue:
        self.moments.pass_("pending")
        queue = super().pending()
        jobs = [replace(job, submit=self._stamp(job.submit)) for job in queue.jobs]
        return replace(queue, jobs=jobs)

    def dependencies(self, job_ids: Sequence[int]) -> Mapping[int, tuple[int, ...]]:
        self.moments.pass_("dependencies")
        return super().dependencies(job_ids)

    def reservations(self) -> Sequence[Reservation]:
        self.moments.pass_("reservations")
        return super().reservations()

    def started(self) -> Sequence[StartedJob]:
        self.moments.pass_("started")
        return [replace(job, submit=self._stamp(job.submit)) for job in super().started()]

    def values_of(self, channel: str, job_ids: Collection[int]) -> Mapping[int, int | None]:
        self.moments.pass_("values_of")
        return super().values_of(channel, job_ids)

    def write(
        self, channel: str, values: Mapping[str, int], check: Callable[[], float] = unchecked
    ) -> Mapping[str, str]:
        refused: dict[str, str] = {}
        for target, value in values.items():
            self.moments.pass_("write")
            check()
            refused |= self.put(channel, target, value)
            self.moments.pass_("written")
        return refused

    def put(self, channel: str, target: str, value: int) -> Mapping[str, str]:
        """Does one write, of a daemon that has just checked that it may."""
        needed = value not in self.standing(channel, target)
        refused = super().write(channel, {target: value})
        if target not in refused:
            self.writes.append(Write(self.token, channel, target, value, needed))
        return refused

    def standing(self, channel: str, target: str) -> set[int]:
        """What stands at a target; empty where jobs, or accounting and controller, differ."""
        job_field = CHANNELS[channel].job_field
        if job_field is not None:
            found = {getattr(job, job_field.attribute) for job in self._engine.named(target)[0]}
        elif channel == "qos":
            found = {self._priorities.qos[target]}
        else:
            associations = self._priorities.associations
            own, heard = associations._own[target], associations._heard[target]
            found = set() if own is None or own != heard else {own}
        return found if len(found) == 1 else set()
