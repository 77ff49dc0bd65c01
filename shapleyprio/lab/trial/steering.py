"""Our daemon beside a trial's Slurm, and what its forecasts of starts were worth."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import dropwhile
from pathlib import Path
from statistics import median

from shapleyprio.fairness.runs import Run, RunKey
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.processes import wait_until
from shapleyprio.lab.testbed.steering import SteeringDaemon
from shapleyprio.lab.trial.arms import Arm
from shapleyprio.lab.trial.plan import ClusterPlan
from shapleyprio.store import AllocatedRun, ClusterStore, CycleRow, ForecastRow, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidStart:
    """What was said of a pending job's start; seconds since the epoch.

    Attributes:
        forecast: the daemon's.
        by_slurm: what `squeue --start` said just after it; None where it said nothing.
    """

    forecast: ForecastRow
    by_slurm: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartErrors:
    """What forecasts of jobs that started in the window were worth.

    Attributes:
        forecasts: how many there were, one for each job and moment.
        coverage: share of the intervals in which the jobs started; 0 without any.
        compared: how many of them `squeue --start` answered, too.
        error_seconds: median of the absolute errors of these forecasts' medians; None without any.
        squeue_error_seconds: that of Slurm's answers.
    """

    forecasts: int
    coverage: float
    compared: int
    error_seconds: float | None
    squeue_error_seconds: float | None


def starts_by_slurm(cluster: PrivateSlurm) -> dict[int, int]:
    """Returns when Slurm expects pending jobs to start: job or array -> second."""
    command = ("squeue", "--start", "--noheader", "--states=PENDING", "--format=%F %S")
    lines = cluster.run("env", "SLURM_TIME_FORMAT=%s", *command).split("\n")
    words = (line.split() for line in lines)
    return {int(one[0]): int(one[1]) for one in words if len(one) == 2 and one[1].isdecimal()}


def errors_of(said: Sequence[SaidStart], starts: Mapping[int, int]) -> StartErrors:
    """Judges what was said.

    Args:
        said: of jobs.
        starts: job -> second at which it started.
    """
    known = [(one, starts[one.forecast.job_id]) for one in said if one.forecast.job_id in starts]
    covered = sum(one.forecast.early <= start <= one.forecast.late for one, start in known)
    both = [(one.forecast.median, one.by_slurm, start) for one, start in known if one.by_slurm]
    return StartErrors(
        forecasts=len(known),
        coverage=covered / len(known) if known else 0.0,
        compared=len(both),
        error_seconds=float(median(abs(ours - start) for ours, _, start in both)) if both else None,
        squeue_error_seconds=float(median(abs(slurms - start) for _, slurms, start in both))
        if both
        else None,
    )


COMMAND_SECONDS = 30  # real ones
LEASE_SECONDS = 10  # real ones
FIRST_PAST_JOB = 10_000_000
ESTIMATE_SECONDS = 120  # real ones
LOOK_SECONDS = 1.0  # real ones
FIRST_CYCLE_SECONDS = 180  # real ones, on a busy machine, with the first estimate


@dataclass(frozen=True, slots=True)
class CycleCounts:
    """What the daemon did.

    Attributes:
        outcomes: outcome -> how many cycles had it.
        fallen_back: how many cycles ranked by another rule than the arm's, after the first by that.
        written: how many priorities were written.
    """

    outcomes: Mapping[str, int]
    fallen_back: int
    written: int


@dataclass(frozen=True, slots=True)
class Pace:
    """How often the daemon asks Slurm, in seconds of the cluster's clock.

    Attributes:
        poll_seconds: from one cycle to the next.
        new_jobs_seconds: from one new-job poll to the next; None for never.
    """

    poll_seconds: int
    new_jobs_seconds: int | None


class TrialDaemon(SteeringDaemon):
    """The running daemon, and what it has done so far.

    Args:
        cluster: that it steers.
        config_file: its configuration.
        log: file for what it prints.
        store: that it writes.
        rule: by which it is to rank.

    Attributes:
        said: its forecasts of starts so far, beside Slurm's.
    """

    def __init__(
        self, cluster: PrivateSlurm, config_file: Path, log: Path, store: ClusterStore, rule: str
    ) -> None:
        super().__init__(cluster, config_file, log)
        self.said: list[SaidStart] = []
        self._cluster = cluster
        self._store = store
        self._rule = rule
        self._looked = 0.0

    def await_first_cycle(self) -> None:
        """Waits for a cycle that ranked by the rule, with an estimate if it takes one."""

        def ranked() -> bool:
            self.check()
            return any(ranked_by(self._rule, row) for row in self._rows())

        wait_until(ranked, real_seconds=FIRST_CYCLE_SECONDS, what="the first cycle of the daemon")

    def note_forecasts(self) -> None:
        """Asks Slurm for starts as soon as there are new forecasts; looks once a real second."""
        now = time.monotonic()
        if now < self._looked + LOOK_SECONDS:
            return
        self._looked = now
        with self._store.reading() as view:
            forecasts = view.forecasts.latest()
        if not forecasts or (self.said and self.said[-1].forecast.t >= forecasts[0].t):
            return
        by_slurm = starts_by_slurm(self._cluster)
        self.said += [SaidStart(forecast=f, by_slurm=by_slurm.get(f.job_id)) for f in forecasts]

    def cycles(self) -> CycleCounts:
        """Counts all cycles so far."""
        return counted(self._rows(), self._rule)

    def _rows(self) -> list[CycleRow]:
        with self._store.reading() as view:
            return sorted(view.history.cycles(limit=1_000_000), key=lambda row: row.number)


def counted(rows: Sequence[CycleRow], rule: str) -> CycleCounts:
    """Counts cycles of a daemon that is to rank by a rule, the first cycle first."""
    since = dropwhile(lambda row: not ranked_by(rule, row), rows)
    return CycleCounts(
        outcomes=Counter(row.outcome for row in rows),
        fallen_back=sum(row.outcome == "ok" and not ranked_by(rule, row) for row in since),
        written=sum(row.written for row in rows),
    )


def ranked_by(rule: str, row: CycleRow) -> bool:
    """Returns whether a cycle succeeded and ranked by a rule."""
    return row.outcome == "ok" and row.rule == rule


@contextmanager
def steering(
    cluster: PrivateSlurm, plan: ClusterPlan, arm: Arm, pace: Pace
) -> Iterator[TrialDaemon]:
    """Starts the daemon, waits for its first cycle, and kills it in the end if it still runs."""
    config_file = cluster.directory / "shapleyprio.toml"
    url = f"sqlite:///{cluster.directory / 'shapleyprio.db'}"
    config_file.write_text(
        configuration(
            plan,
            arm,
            cluster=cluster.spec.name,
            url=url,
            pace=pace,
            since=cluster.now(),
            speed=cluster.spec.speed,
        ),
        encoding="utf-8",
    )
    log = cluster.directory / "log" / "shapleyprio.log"
    with Store.open(url, create=True) as opened:  # we read it while the daemon starts
        store = opened.cluster(cluster.spec.name)
        if arm.knows_users:
            with store.transaction() as rows:
                rows.runs.put(past_runs(plan, cluster.paths.user, cluster.now()))
        with TrialDaemon(cluster, config_file, log, store, arm.rule) as daemon:
            daemon.await_first_cycle()
            yield daemon


def configuration(
    plan: ClusterPlan, arm: Arm, *, cluster: str, url: str, pace: Pace, since: int, speed: int
) -> str:
    """Returns the daemon's configuration; its time limits run on the cluster's clock, too."""
    moment = datetime.fromtimestamp(since, UTC).isoformat()
    new_jobs = "off" if pace.new_jobs_seconds is None else f"{pace.new_jobs_seconds}s"
    lines = [
        f'[slurm]\ncluster = "{cluster}"\ntimeout = "{COMMAND_SECONDS * speed}s"',
        f'[fairness]\nhorizon = "unlimited"\nsince = "{moment}"\nrule = "{arm.rule}"',
        f'guarantee = "{arm.guarantee}"',
        f'[estimation]\ntime_limit = "{ESTIMATE_SECONDS * speed}s"',
        f'longest_age = "{ESTIMATE_SECONDS * speed}s"',
        f'[push]\nchannel = "{arm.channel}"',
        f'[service]\npoll_interval = "{pace.poll_seconds}s"\nnew_jobs_interval = "{new_jobs}"',
        f'lease = "{LEASE_SECONDS * speed}s"',
        f'[store]\nurl = "{url}"',
        '[metrics]\naddress = "off"',
        '[drift]\ninterval = "off"',
    ]
    return "\n".join(lines) + "\n" + plan.organizations(arm)


def past_runs(plan: ClusterPlan, login: str, now: int) -> Iterator[AllocatedRun]:
    """Yields the jobs that ended before the window, as a site's own accounting knows them.

    They end a second after each other, the last one now, and are nobody's: only how long their
    users' jobs lasted, with which limits and how many processors, is known of them.

    Args:
        plan: of a workload with its history.
        login: of the user who submits all jobs here.
        now: second of the cluster's clock.
    """
    history, accounts = plan.workload.history, plan.accounts_of_users
    assert history is not None, "whose jobs are whose is known where it is made use of"
    past = [
        (account, limit, processors, seconds)
        for user, limit, processors, seconds in zip(
            history.past_user.tolist(),
            history.past_limit.tolist(),
            history.past_processors.tolist(),
            history.past_processing_time.tolist(),
            strict=True,
        )
        for account in accounts.get(user, ())
    ]
    for number, (account, limit, processors, seconds) in enumerate(past):
        end = now - (len(past) - number)
        key = RunKey(FIRST_PAST_JOB + number, end - seconds, end - seconds)
        run = Run(
            key=key,
            label=str(key.job_id),
            account=account,
            user=login,
            state="COMPLETED",
            release=key.start,
            limit=limit,
            begin=key.start,
            end=end,
            processors={"before": processors},
        )
        yield run, ()
