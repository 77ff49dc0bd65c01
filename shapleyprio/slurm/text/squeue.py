"""Puts the lines of squeue about pending jobs together into the records that Slurm keeps.

Slurm keeps the waiting tasks of an array in one record, and each task that was once held, changed
or requeued by itself in one of its own, with its own nice and priority. squeue puts all of them on
one line and shows the nice of one of them. Its option ``--array`` lists every task on a line of its
own, with the number of its record; but where the tasks of a record are as far apart as in
``33_[1-40:3]``, it forgets the last one, and it never shows how many tasks may run at once. The
array's own line, ``33_[1-40:3%2]``, has both, the latter as long as the array is one record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import compress, count, repeat
from operator import attrgetter, ne
from sys import intern
from types import MappingProxyType

from shapleyprio.slurm.port import Malformed, PendingJob, PendingQueue
from shapleyprio.slurm.remembering import forget_others
from shapleyprio.slurm.text.queue import (
    LARGEST_FACTOR,
    Factors,
    is_task,
    names_task,
    target_of,
    task_list,
    tasks_at_once,
)
from shapleyprio.slurm.text.values import (
    LARGEST_ID,
    SEPARATOR,
    UnreadableError,
    amount,
    duration,
    if_readable,
    known_moment,
    malformed_line,
    moment,
    plain_lines,
    whole,
)

OWN_FIELDS = (
    *("JobID", "JobArrayID", "Partition", "QOS", "PriorityLong", "Nice", "SubmitTime", "NumCPUs"),
    *("TimeLimit", "EligibleTime"),
)
"""Fields that ``squeue --array`` prints, in Slurm's own words: the record's number, the name, and
what all tasks of a record have in common."""

TEXT_FIELDS = ("Account", "UserName", "Reason")
"""Fields that it prints after these, likewise in common: they may be any text."""

OWN_SEPARATOR = "|"
"""Stands between the former, so that there is less to read and replace. A delimiter that nobody can
know stands after the last of them and after each of the latter: no text breaks up into a line."""

ARRAY_FIELDS = ("ArrayJobID", "JobArrayID")
"""Fields that squeue prints without it: the array's number and the name of all its tasks."""

NOT_SHOWN = Factors(None, None)
"""Factors of a job of which sprio shows none."""

MOST_ASIDE = 1000
"""Lines that cannot be read and are quarantined; more are counted. An account that any user may
choose can have hundreds of line ends."""

MOST_STRANGE = 10
"""Lines contradicting the first of their record that are quarantined; the rest is dropped."""


def format_of(fields: Iterable[str], delimiter: str) -> str:
    """Returns the format (``--Format``) in which squeue is to print fields, each in full.

    A delimiter that began with a digit would be taken for a part of the width, 0 for any.
    """
    return ",".join(f"{field}:0{delimiter}" for field in fields)


def task_format(delimiter: str) -> str:
    """Returns the format in which squeue is to print the lines of `WaitingRecords`."""
    *own, last = OWN_FIELDS
    return f"{format_of(own, OWN_SEPARATOR)},{format_of((last, *TEXT_FIELDS), delimiter)}"


class WaitingRecords:
    """The records of pending jobs.

    A record that is listed twice, or in two ways, is not believed: its lines are malformed.

    Args:
        texts: of ``squeue -h --array`` in the `task_format`, each some whole lines.
        delimiter: the text in it.
        before: what was `known` of an earlier answer, so that it need not be read again; it is
            added to.

    Attributes:
        known: hash of a line, with `SEPARATOR` for the delimiter -> what it says, for the records
            of one line, once `queue` was called.

    Raises:
        ListedAgainError: a record is listed otherwise than before; then all lines are to be read.
    """

    def __init__(
        self,
        texts: Iterable[str],
        delimiter: str,
        before: dict[int, KnownRecord] | None = None,
    ) -> None:
        self.known = {} if before is None else before
        self._records: dict[str, _Record | KnownRecord] = {}
        self._unread: dict[str, _Record] = {}
        self._torn: list[Malformed] = []
        self._more_torn = 0
        records = self._records
        for lines, between in plain_lines(texts, delimiter):
            known = self.known if between == SEPARATOR else {}
            found = list(map(known.get, map(hash, lines)))
            if all(found):  # nearly always, and far sooner done for many lines at once
                same = {one.number: one for one in found if one is not None}
                if len(same) == len(found) and records.keys().isdisjoint(same):
                    records.update(same)
                    continue
            for line, same_as in zip(lines, found, strict=True):
                if same_as is not None and same_as.number not in records:
                    records[same_as.number] = same_as
                else:
                    self._read(line, between)

    def _read(self, line: str, between: str) -> None:
        # what a text with a line end in it has torn must not spoil a record that it names
        own, *texts = line.split(between)
        is_whole = len(texts) == 1 + len(TEXT_FIELDS) and not texts[-1]
        if not is_whole or own.count(OWN_SEPARATOR) != len(OWN_FIELDS) - 1:
            if len(self._torn) < MOST_ASIDE:
                self._torn.append(
                    malformed_line("squeue", line, between, "other fields than asked for")
                )
            else:
                self._more_torn += 1
            return
        number, label, same = line.split(OWN_SEPARATOR, 2)
        known = self._records.get(number)
        if known is None:
            self._records[number] = self._unread[number] = _Record(number, label, same, between)
            return
        if isinstance(known, KnownRecord):
            raise ListedAgainError(number)
        known.add(label, same)

    def has_arrays(self) -> bool:
        """Returns whether there are records of several tasks, of which not all is known yet."""
        return any(len(record.tasks) > 1 for record in self._unread.values())

    def complete(self, texts: Iterable[str], delimiter: str) -> None:
        """Adds the tasks that were forgotten, and how many tasks of an array may run at once.

        Args:
            texts: of ``squeue -h`` in the format of `ARRAY_FIELDS`, each some whole lines.
            delimiter: the text after each field there.
        """
        of_several: dict[str, list[_Record]] = {}
        for record in self._unread.values():
            if len(record.tasks) > 1:
                of_several.setdefault(record.base, []).append(record)
        listed = {base: set[int]() for base in of_several}
        for other in self._records.values():
            if (known := listed.get(other.base)) is not None:
                known.update(other.tasks)
        for line in (line for text in texts for line in text.split("\n")):
            if line.count(delimiter) != len(ARRAY_FIELDS) or not line.endswith(delimiter):
                continue  # quarantined already, from the other listing
            base, label, _ = line.split(delimiter)
            for record in of_several.get(base, ()):
                record.at_once = tasks_at_once(label) or record.at_once
                task = record.next_task()
                if task is not None and task not in listed[base] and names_task(label, task):
                    record.tasks.append(task)

    def queue(self, factors: Mapping[int, Factors] = MappingProxyType({})) -> PendingQueue:
        """Returns one job for each record, and the lines of the others.

        A job of which nothing has changed is the same object as before.

        Args:
            factors: job id -> what sprio shows of the job.
        """
        malformed: list[Malformed] = []
        for number in list(self._unread):
            record = self._unread.pop(number)  # what was read takes more room than what it says
            try:
                job = record.job(factors)
            except UnreadableError as error:
                malformed += [
                    malformed_line("squeue", line, record.between, str(error))
                    for line in record.lines()
                ]
                del self._records[number]
                continue
            read = self._records[number] = KnownRecord(record.number, job)
            if (text := record.only_line()) is not None:
                self.known[hash(text)] = read
        records = [one for one in self._records.values() if isinstance(one, KnownRecord)]
        jobs = [record.job for record in records]
        shown = map(factors.get, map(attrgetter("job_id"), jobs), repeat(NOT_SHOWN))
        changed = map(ne, map(attrgetter(*Factors._fields), jobs), shown)
        for place in compress(count(), changed):
            shown_now = factors.get(jobs[place].job_id, NOT_SHOWN)
            job = replace(jobs[place], **shown_now._asdict())
            records[place].job = jobs[place] = job
        forget_others(self.known, records)
        malformed += self._torn
        kept = malformed[:MOST_ASIDE]
        return PendingQueue(jobs, kept, len(malformed) - len(kept) + self._more_torn)


class ListedAgainError(Exception):
    """A record of which one line is known has another."""


class KnownRecord:
    """A record that was read.

    Attributes:
        number: of the record, as printed.
        job: the pending job as of the last answer.
    """

    __slots__ = ("job", "number")

    def __init__(self, number: str, job: PendingJob) -> None:
        self.number, self.job = number, job

    @property
    def base(self) -> str:
        """The number of its array, or its own."""
        return self.job.label.partition("_")[0]

    @property
    def tasks(self) -> list[int]:
        """The task of the array; empty if it is none."""
        return _tasks_of(self.job.label)


class _Record:
    """The lines of one record.

    Attributes:
        number: of the record, as printed.
        base: the number of its array, or its own.
        tasks: of the array; empty if it is none.
        at_once: how many of them may run at the same time; None for all.
        between: the delimiter.
    """

    __slots__ = ("_label", "_same", "_strange", "at_once", "base", "between", "number", "tasks")

    def __init__(self, number: str, label: str, same: str, between: str) -> None:
        self.number = label if label == number else number  # kept once
        self._label, self._same, self.between = label, same, between
        self.base = label.partition("_")[0]
        self.tasks = _tasks_of(label)
        self.at_once: int | None = None
        self._strange: tuple[tuple[str, str], ...] = ()

    def only_line(self) -> str | None:
        """Returns the line of a record that has no other, with `SEPARATOR` for the delimiter."""
        if self._strange or len(self.tasks) > 1 or self.between != SEPARATOR:
            return None
        return OWN_SEPARATOR.join((self.number, self._label, self._same))

    def add(self, label: str, same: str) -> None:
        base, _, task = label.partition("_")
        if same == self._same and base == self.base and self.tasks and is_task(task):
            self.tasks.append(int(task))
        elif len(self._strange) < MOST_STRANGE:
            self._strange += ((label, same),)

    def next_task(self) -> int | None:
        """Returns the next task, if the tasks are equally far apart and not neighbors."""
        tasks = self.tasks
        step = tasks[1] - tasks[0] if len(tasks) > 1 else 1
        if step <= 1 or tasks != list(range(tasks[0], tasks[-1] + 1, step)):
            return None
        return tasks[-1] + step

    def job(self, factors: Mapping[int, Factors]) -> PendingJob:
        """Returns the pending job.

        Args:
            factors: job id -> what sprio shows of the job.

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
        own, account, user, reason, _ = self._same.split(self.between)
        partition, qos, priority, nice, submit, cpus, limit, eligible = own.split(OWN_SEPARATOR)
        job_id = whole("job id", self.number, 1, LARGEST_ID)
        target = target_of(label)  # from here on the label is known to be one
        shown = factors.get(job_id, NOT_SHOWN)
        submitted = known_moment("submit time", submit)
        is_of_array = self.base.isdigit() and self.base != self.number
        return PendingJob(
            job_id=job_id,
            array_job_id=int(self.base) if is_of_array else job_id,
            target=target,
            label=label,
            account=intern(account),
            user=intern(user),
            partition=intern(partition),
            qos=intern(qos),
            reason=intern(reason),
            submit=submitted,
            eligible=submitted
            if eligible == submit
            else if_readable(moment, "eligible time", eligible),
            limit=_limit(limit),
            tasks=max(len(self.tasks), 1),
            at_once=self.at_once,
            priority=_priority(priority),
            nice=whole("nice", nice, -LARGEST_FACTOR, LARGEST_FACTOR),
            **shown._asdict(),
            processors=if_readable(amount, "CPUs", cpus) or 0,
        )

    def lines(self) -> Iterator[str]:
        """Yields some of the record's lines as they came: the first, and those that do not fit."""
        for label, same in ((self._label, self._same), *self._strange):
            yield OWN_SEPARATOR.join((self.number, label, same))


def _tasks_of(label: str) -> list[int]:
    task = label.partition("_")[2]
    return [int(task)] if is_task(task) else []


@lru_cache(maxsize=4096)
def _priority(text: str) -> int:
    return whole("priority", text, 0, LARGEST_ID)


@lru_cache(maxsize=4096)
def _limit(text: str) -> int | None:
    return if_readable(duration, "time limit", text)
