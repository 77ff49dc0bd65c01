"""When the daemon's jobs run, and how they change that themselves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from threading import Lock, Thread

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

DRIFT = "drift"
"""The thread of replays; all else has one together."""


class Timetable:
    """Runs jobs by their names, in the background.

    Attributes:
        scheduler: that runs them.
    """

    def __init__(self) -> None:
        self.scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(1), DRIFT: ThreadPoolExecutor(1)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        self._changing = Lock()
        self._stopping = False

    def repeat(
        self,
        name: str,
        job: Callable[[], None],
        seconds: float | None,
        *,
        first: datetime | None = None,
        thread: str = "default",
    ) -> None:
        """Runs a job now and then, instead of the one that had its name.

        Args:
            name: its own.
            job: to run.
            seconds: from one time to the next; None for never.
            first: when it runs first; None for after so many seconds.
            thread: on which it runs.
        """
        if self.scheduler.get_job(name) is not None:
            self.scheduler.remove_job(name)
        if seconds is not None:
            begin = {} if first is None else {"next_run_time": first}
            self.scheduler.add_job(
                job, "interval", seconds=seconds, id=name, executor=thread, **begin
            )

    def bring_forward(self, name: str, due: datetime) -> None:
        """Runs a job earlier, if it is not due before."""
        job = self.scheduler.get_job(name)
        if job is not None and due < job.next_run_time:
            self.scheduler.modify_job(name, next_run_time=due)

    def change(self, change: Callable[[], object]) -> None:
        """Changes the schedule from within one of its jobs.

        While the scheduler is shut down it holds its locks and waits for these jobs, which must
        not wait for it then.
        """
        with self._changing:
            if not self._stopping:
                change()

    def end(self, may_wait: Callable[[], bool]) -> bool:
        """Prevents that any other job begins, and waits for those that run.

        Args:
            may_wait: asked now and then; they are given up when it is not so any more.

        Returns:
            whether they have ended.
        """
        with self._changing:
            self._stopping = True
        ending = Thread(target=self.scheduler.shutdown, name="ending", daemon=True)
        ending.start()
        while ending.is_alive() and may_wait():
            ending.join(0.1)
        return not ending.is_alive()
