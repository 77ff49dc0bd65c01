"""Puts the lines of squeue about waiting jobs together into the records that Slurm keeps.

Slurm keeps the waiting tasks of an array in one record, and each task that was once held, changed
or requeued by itself in one of its own, with its own nice and priority. squeue puts all of them on
one line and shows the nice of one of them. Its option ``--array`` lists every task on a line of its
own, with the number of its record; but where the tasks of a record are as far apart as in
``33_[1-40:3]``, it forgets the last one. The array's own line has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shapleyprio.slurm.port import Malformed, PendingJob, PendingQueue
from shapleyprio.slurm.tasks import task_list
from shapleyprio.slurm.text import (
    LARGEST_ID,
    UnreadableError,
    amount,
    duration,
    known_moment,
    malformed_line,
    whole,
)
from shapleyprio.slurm.text_queue import (
    LARGEST_FACTOR,
    is_task,
    names_task,
    target_of,
)

TASK_FIELDS = ("%A", "%i", "%a", "%u", "%P", "%q", "%Q", "%y", "%V", "%C", "%r", "%l")
"""Fields that ``squeue --array`` prints: the record's number, the name, and what all tasks of a
record have in common."""

ARRAY_FIELDS = ("%F", "%i")
"""Fields that squeue prints without it: the array's number and the name of all its tasks."""

BEFORE_RELEASE = frozenset(
    {"BeginTime", "Dependency", "DependencyNeverSatisfied", "JobArrayTaskLimit"}
)
"""Reasons of jobs that are not eligible, beside those of held jobs, whose priority is 0."""

NO_LIMIT = frozenset({"UNLIMITED", "NOT_SET"})

MOST_ASIDE = 1000
"""Lines that cannot be read and are quarantined; more are counted. An account that any user may
choose can have hundreds of line ends."""

MOST_STRANGE = 10
"""Lines contradicting the first of their record that are quarantined; the rest is dropped."""


def format_of(fields: Iterable[str], delimiter: str) -> str:
    """Returns the format in which squeue is to print fields."""
    return "".join(f"{field}{delimiter}" for field in fields)


class WaitingRecords:
    """The records of waiting jobs.

    A record that is listed twice, or in two ways, is not believed: its lines are malformed.

    Args:
        lines: of ``squeue -h --array`` in the format of `TASK_FIELDS`, without their line ends.
        delimiter: what stands after each field.
    """

    def __init__(self, lines: Iterable[str], delimiter: str) -> None:
        self._delimiter = delimiter
        self._records: dict[str, _Record] = {}
        self._torn: list[Malformed] = []
        self._more_torn = 0
        for line in lines:
            # what a text with a line end in it has torn must not spoil a record that it names
            if line.count(delimiter) != len(TASK_FIELDS) or not line.endswith(delimiter):
                if len(self._torn) < MOST_ASIDE:
                    self._torn.append(_torn(line, delimiter, TASK_FIELDS))
                else:
                    self._more_torn += 1
                continue
            number, label, same = line.split(delimiter, 2)
            known = self._records.get(number)
            if known is None:
                self._records[number] = _Record(number, label, same)
            else:
                known.add(label, same)

    def may_lack_tasks(self) -> bool:
        """Returns whether there are records whose last task squeue may have forgotten."""
        return any(record.next_task() is not None for record in self._records.values())

    def complete(self, lines: Iterable[str], delimiter: str) -> None:
        """Adds the tasks that were forgotten.

        Args:
            lines: of ``squeue -h`` in the format of `ARRAY_FIELDS`.
            delimiter: what stands after each field there.
        """
        listed = {record.base: set[int]() for record in self._records.values()}
        for record in self._records.values():
            listed[record.base].update(record.tasks)
        missing: dict[str, list[_Record]] = {}
        for record in self._records.values():
            task = record.next_task()
            if task is not None and task not in listed[record.base]:
                missing.setdefault(record.base, []).append(record)
        for line in lines:
            if line.count(delimiter) != len(ARRAY_FIELDS) or not line.endswith(delimiter):
                continue  # quarantined already, from the other listing
            base, label, _ = line.split(delimiter)
            for record in missing.get(base, ()):
                task = record.next_task()
                if task is not None and names_task(label, task):
                    record.tasks.append(task)

    def queue(self) -> PendingQueue:
        """Returns one job for each record, without site factors, and the lines of the others."""
        jobs: list[PendingJob] = []
        malformed: list[Malformed] = []
        for record in self._records.values():
            try:
                jobs.append(record.job(self._delimiter))
            except UnreadableError as error:
                malformed += [
                    malformed_line("squeue", line, self._delimiter, str(error))
                    for line in record.lines(self._delimiter)
                ]
        malformed += self._torn
        kept = malformed[:MOST_ASIDE]
        return PendingQueue(jobs, kept, len(malformed) - len(kept) + self._more_torn)


class _Record:
    """The lines of one record.

    Attributes:
        base: the number of its array, or its own.
        tasks: of the array; empty if it is none.
    """

    __slots__ = ("_label", "_number", "_same", "_strange", "base", "tasks")

    def __init__(self, number: str, label: str, same: str) -> None:
        self._number, self._label, self._same = number, label, same
        self.base, _, task = label.partition("_")
        self.tasks = [int(task)] if is_task(task) else []
        self._strange: list[tuple[str, str]] = []

    def add(self, label: str, same: str) -> None:
        base, _, task = label.partition("_")
        if same == self._same and base == self.base and self.tasks and is_task(task):
            self.tasks.append(int(task))
        elif len(self._strange) < MOST_STRANGE:
            self._strange.append((label, same))

    def next_task(self) -> int | None:
        """Returns the next task, if the tasks are equally far apart and not neighbors."""
        tasks = self.tasks
        step = tasks[1] - tasks[0] if len(tasks) > 1 else 1
        if step <= 1 or tasks != list(range(tasks[0], tasks[-1] + 1, step)):
            return None
        return tasks[-1] + step

    def job(self, delimiter: str) -> PendingJob:
        """Returns the waiting job.

        Raises:
            UnreadableError: its lines contradict each other, or a field cannot be read.
        """
        if self._strange:
            raise UnreadableError("listed in different ways")
        if len(set(self.tasks)) != len(self.tasks):
            raise UnreadableError("listed more than once")
        label = self._label
        if len(self.tasks) > 1:
            label = f"{self.base}_[{task_list(sorted(self.tasks))}]"
        account, user, partition, qos, *numbers, reason, limit, _ = self._same.split(delimiter)
        priority, nice, submit, cpus = numbers
        submitted = known_moment("submit time", submit)
        points = whole("priority", priority, 0, LARGEST_ID)
        can_start = points > 0 and reason not in BEFORE_RELEASE
        job_id = whole("job id", self._number, 1, LARGEST_ID)
        target = target_of(label)  # from here on the label is known to be one
        return PendingJob(
            job_id=job_id,
            array_job_id=int(self.base) if self.base.isdigit() else job_id,
            target=target,
            label=label,
            account=account,
            user=user,
            partition=partition,
            qos=qos,
            reason=reason,
            submit=submitted,
            release=submitted if can_start else None,
            limit=None if limit in NO_LIMIT else duration("time limit", limit),
            tasks=max(len(self.tasks), 1),
            priority=points,
            nice=whole("nice", nice, -LARGEST_FACTOR, LARGEST_FACTOR),
            site_factor=None,
            association=None,
            processors=amount("CPUs", cpus),
        )

    def lines(self, delimiter: str) -> Iterator[str]:
        """Yields some of the record's lines as they came: the first, and those that do not fit."""
        for label, same in ((self._label, self._same), *self._strange):
            yield delimiter.join((self._number, label, same))


def _torn(line: str, delimiter: str, fields: tuple[str, ...]) -> Malformed:
    found = line.count(delimiter)
    return malformed_line("squeue", line, delimiter, f"{found} fields instead of {len(fields)}")
