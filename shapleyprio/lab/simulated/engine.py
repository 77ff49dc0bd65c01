"""The controller's side of the simulated Slurm: time passes, jobs come, start and end."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from shapleyprio.lab.simulated.jobs import (
    BEYOND_A_LIMIT,
    DEPENDS,
    HELD,
    NOT_YET,
    TOO_MANY_JOBS,
    TOO_MANY_TASKS,
    WAITS,
    Accounting,
    Job,
)
from shapleyprio.lab.simulated.scheduling import Machines, Priorities, Waiting
from shapleyprio.slurm.port import SlurmRefusedError

FIRST_JOB_ID = 1
REQUEUE_DELAY_SECONDS = 1
END, ARRIVAL = range(2)  # what is due at one second happens in this order

NO_SUCH_JOB = "Invalid job id specified"


class Engine:
    """Jobs on machines, second by second."""

    def __init__(
        self, machines: Machines, priorities: Priorities, accounting: Accounting, now: int
    ) -> None:
        self.now = now
        self.waiting = Waiting(machines.partitions)
        self.priorities = priorities
        self._machines = machines
        self._accounting = accounting
        self._jobs: dict[int, Job] = {}
        self._arrays: dict[int, dict[int, Job]] = {}
        self._announced: dict[int, Job] = {}
        self._events: list[tuple[int, int, int, int]] = []
        self._next_id = FIRST_JOB_ID
        self._most_jobs: dict[str, int] = {}
        self._limited: set[int] = set()
        self._dependent: dict[int, Job] = {}
        self.submitted = 0
        self.changed = 0
        self._began = self._computed = now
        self._changed = False

    # -- time

    def next_event(self) -> int | None:
        """Returns the second of the next end or arrival that is known, None if there is none."""
        while self._events:
            at, kind, job_id, execution = self._events[0]
            job = self._jobs.get(job_id)
            if kind != END or (job and (job.execution, job.ends) == (execution, at)):
                return max(at, self.now)
            heappop(self._events)
        return None

    def advance(self, to: int) -> None:
        """Decides the starts of this second and of all up to `to`, but not yet those of `to`."""
        only_now = to == self.now
        self._start_jobs()
        while (moment := self.next_event()) is not None and moment <= to:
            self.now = moment
            self.take_events()
            if moment < to or only_now:
                self._start_jobs()
        self.now = to

    def take_events(self) -> None:
        """Processes the events that are due: first jobs end, then jobs arrive."""
        while self.next_event() == self.now:
            at, kind, job_id, _ = heappop(self._events)
            if kind == END:
                ended = self._jobs[job_id]
                in_time = ended.will_execute() == ended.processing_time
                self._leave(ended, "COMPLETED" if in_time else "TIMEOUT", at)
            elif announced := self._announced.pop(job_id, None):
                self.arrive(announced)
            elif (job := self.waiting.jobs.get(job_id)) and job.reason == NOT_YET:
                self._wait(job, WAITS)

    def _start_jobs(self) -> None:
        self.settle()
        kept: set[str] = set()
        open_ = set(self._machines.partitions)
        while firsts := [job for name in open_ if (job := self.waiting.first(name))]:
            job = min(firsts, key=lambda job: job.rank)
            if limit := self._limit_of(job):
                self._wait(job, limit)
                self._limited.add(job.job_id)
                continue
            allocation = self._machines.take(job.partition, job.processors, kept)
            if allocation is not None:
                self._start(job, allocation)
            else:
                open_.remove(job.partition)
                kept.update(self._machines.partitions[job.partition])

    def _limit_of(self, job: Job) -> str | None:
        """Returns the reason why a job may not start, whatever is free; None if it may."""
        most = self._most_jobs.get(job.account)
        if most is not None and sum(one.account == job.account for one in self.started()) >= most:
            return TOO_MANY_JOBS
        if job.at_once is None or job.array_id is None:
            return None
        tasks = self._arrays[job.array_id].values()
        running = sum(task.start is not None for task in tasks)
        return TOO_MANY_TASKS if running >= job.at_once else None

    def _start(self, job: Job, allocation: dict[str, int]) -> None:
        if len(job.tasks) > 1:
            job = self._split(job, job.tasks[0])
        else:
            self.waiting.remove(job)
        job.start, job.allocation = self.now, allocation
        job.suspended = 0
        self._expect_end(job)
        self._account(job, "RUNNING")

    def _expect_end(self, job: Job) -> None:
        job.ends = self.now + job.will_execute() - job.executed(self.now)
        heappush(self._events, (job.ends, END, job.job_id, job.execution))

    # -- priorities

    def settle(self) -> None:
        """Catches up with the last of Slurm's regular recalculations.

        Ages and changes of QOS and associations await them.
        """
        period = max(self.priorities.settings.calc_period_seconds, 1)
        last = self.now - (self.now - self._began) % period
        if last <= self._computed:
            return
        self._computed = last
        if self.priorities.ages or self._changed:
            self._changed = False
            for job in self.waiting.jobs.values():
                self.priorities.compute(job, last)
            self.waiting.disorder()

    def compute(self, job: Job) -> None:
        """Recalculates one job's priority, as Slurm does at once when the job is updated."""
        self.priorities.compute(job, self.now)
        self.waiting.disorder()

    def set_qos_priority(self, qos: str, priority: int) -> None:
        """Changes a QOS; what waits already follows at the next recalculation."""
        self.settle()
        self.priorities.set_qos(qos, priority)
        self._changed = True

    def set_association_priority(self, account: str, user: str, priority: int) -> None:
        """Changes an account, or a user in it; what waits follows as with a QOS."""
        self.settle()
        if user:
            self.priorities.associations.set_user(account, user, priority)
        else:
            self.priorities.associations.set_account(account, priority)
        self._changed = True

    # -- jobs

    def new_id(self) -> int:
        """Returns the next free job id."""
        self.submitted += 1
        self._next_id += 1
        return self._next_id - 1

    def announce(self, job: Job, at: int) -> None:
        """Schedules the arrival of a job."""
        if at < self.now:
            raise ValueError(f"second {at} is over, it is {self.now}")
        self._announced[job.job_id] = job
        heappush(self._events, (at, ARRIVAL, job.job_id, 0))

    def arrive(self, job: Job) -> None:
        """Takes a job in."""
        job.submit = self.now
        self._know(job)
        self._wait_until(job, max(job.eligible, self.now))
        self._account(job, "PENDING")

    def named(self, target: str) -> tuple[list[Job], str | None]:
        """Returns the jobs a Slurm name (``33``, ``33_4``, ``33_[4-9]``) means, and a complaint.

        Tasks that are named alone leave the array that waits as one. The complaint says that a
        job is gone, or some of the tasks.
        """
        base, underscore, tasks = target.partition("_")
        if not base.isdecimal():
            return [], NO_SUCH_JOB
        job_id = int(base)
        plain = self._jobs.get(job_id)
        if not underscore and plain is not None and plain.array_id != job_id:
            return [plain], None
        jobs = list(self._arrays.get(job_id, {}).values())
        wanted = set(listed_tasks(tasks.strip("[]"))) if underscore else set()
        if underscore:
            jobs = [part for job in jobs for part in self._those(job, wanted)]
        found = sum(len(job.tasks) for job in jobs)
        return jobs, None if found and found >= len(wanted) else NO_SUCH_JOB

    def started(self) -> list[Job]:
        """Returns the jobs that have started and not ended."""
        return [job for job in self._jobs.values() if job.start is not None]

    def jobs(self, job_id: int) -> list[Job]:
        """Returns the job with this id, or all tasks of the array with this id."""
        found, complaint = self.named(str(job_id))
        if complaint is not None:
            raise SlurmRefusedError(f"job {job_id}: {complaint}")
        return found

    def set_most_jobs(self, account: str, jobs: int | None) -> None:
        """Limits how many jobs of an account run at the same time; None for any number."""
        if jobs is None:
            self._most_jobs.pop(account, None)
        else:
            self._most_jobs[account] = jobs
        self._look_at_limits_again()

    def set_account(self, job: Job, account: str) -> None:
        """Changes the account of a waiting job; its priority is recomputed."""
        job.account = account
        self.compute(job)
        self._account(job, "PENDING")

    def hold(self, job: Job) -> None:
        """Keeps a waiting job from starting."""
        self._wait(job, HELD)
        self._account(job, "PENDING")

    def release(self, job: Job) -> None:
        """Undoes a hold."""
        self._wait_until(job, max(job.eligible, self.now))
        self._account(job, "PENDING")

    def requeue(self, job: Job) -> None:
        """Stops a running job and queues it again; it may start a second later."""
        self._must(job.ends is not None, job, "it is not running")
        self._account(job, "REQUEUED", self.now)
        self._machines.give_back(job.allocation)
        job.execution += 1
        job.start = job.ends = None
        job.allocation = {}
        job.submit = self.now
        self._wait_until(job, self.now + REQUEUE_DELAY_SECONDS)
        self._account(job, "PENDING")
        self._look_at_limits_again()

    def suspend(self, job: Job) -> None:
        """Stops a running job where it is; it keeps its processors."""
        self._must(job.ends is not None, job, "it is not running")
        job.ends, job.suspended_since = None, self.now
        self._account(job, "SUSPENDED")

    def resume(self, job: Job) -> None:
        """Resumes a suspended job."""
        self._must(job.suspended_since is not None, job, "it is not suspended")
        self._end_suspension(job)
        self._expect_end(job)
        self._account(job, "RUNNING")

    def cancel(self, job: Job) -> None:
        """Ends a job, or takes it out of the queue."""
        self._end_suspension(job)
        if job.start is None:
            self.waiting.remove(job)
        self._leave(job, "CANCELLED", self.now)

    def _leave(self, job: Job, state: str, end: int) -> None:
        self._account(job, state, end)
        self._machines.give_back(job.allocation)
        del self._jobs[job.job_id]
        if job.array_id is not None:
            del self._arrays[job.array_id][job.job_id]
        for other in [one for one in self._dependent.values() if not self._depends(one)]:
            del self._dependent[other.job_id]
            if other.reason == DEPENDS and other.job_id in self.waiting.jobs:
                self._wait_until(other, max(other.eligible, self.now))
        self._look_at_limits_again()

    def _look_at_limits_again(self) -> None:
        """Lets jobs that were beyond a limit wait for their turn, after a change."""
        for job_id in self._limited & self.waiting.jobs.keys():
            if self.waiting.jobs[job_id].reason in BEYOND_A_LIMIT:
                self._wait(self.waiting.jobs[job_id], WAITS)
        self._limited.clear()

    def _end_suspension(self, job: Job) -> None:
        if job.suspended_since is not None:
            job.suspended += self.now - job.suspended_since
            job.suspended_since = None

    def _wait_until(self, job: Job, eligible: int) -> None:
        """Lets a job wait, from a second on for its turn."""
        job.eligible = eligible
        if self._depends(job):
            self._dependent[job.job_id] = job
            self._wait(job, DEPENDS)
            return
        if eligible > self.now:
            heappush(self._events, (eligible, ARRIVAL, job.job_id, job.execution))
        self._wait(job, NOT_YET if eligible > self.now else WAITS)

    def _depends(self, job: Job) -> bool:
        """Returns whether a job waits for the end of another one, or of an array."""
        return any(map(self._goes_on, job.after))

    def _goes_on(self, number: int) -> bool:
        """Returns whether a job, or anything of an array, has not ended."""
        return number in self._jobs or bool(self._arrays.get(number))

    def dependencies(self, job_id: int) -> tuple[int, ...]:
        """Returns the jobs and arrays that have to end before a waiting job may start."""
        job = self.waiting.jobs.get(job_id)
        if job is None or job.reason != DEPENDS:
            return ()
        return tuple(filter(self._goes_on, job.after))

    def _wait(self, job: Job, reason: str) -> None:
        job.reason = reason
        self.priorities.compute(job, self.now)
        self.waiting.add(job)

    def _know(self, job: Job) -> None:
        self._jobs[job.job_id] = job
        if job.array_id is not None:
            self._arrays.setdefault(job.array_id, {})[job.job_id] = job

    def _split(self, array: Job, task: int) -> Job:
        job = array.split_off(task, self.new_id())
        self._know(job)
        return job

    def _those(self, job: Job, wanted: set[int]) -> Iterator[Job]:
        """Returns the part of a job that stands for the wanted tasks."""
        here = [task for task in job.tasks if task in wanted]
        if len(here) == len(job.tasks):
            yield job
            return
        for task in here:
            alone = self._split(job, task)
            self._account(alone, "PENDING")
            self._wait(alone, job.reason)
            yield alone

    def _account(self, job: Job, state: str, end: int | None = None) -> None:
        record = job.record(state, self.now, end)
        hidden = job.start is None and job.reason == HELD
        self._accounting.change((job.job_id, job.execution), record, self.now, hidden=hidden)

    def _must(self, condition: bool, job: Job, otherwise: str) -> None:
        if not condition:
            raise SlurmRefusedError(f"job {job.job_id}: {otherwise}")


def listed_tasks(text: str) -> Iterator[int]:
    """Yields the numbers of tasks that stand in a list.

    >>> list(listed_tasks("0-2,5"))
    [0, 1, 2, 5]
    """
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
