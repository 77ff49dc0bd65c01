"""Our daemon beside a private Slurm, as a process of its own on the cluster's clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from shapleyprio.replay.workload import Workload
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.store import Store
from shapleyprio.testbed.cluster import PrivateSlurm
from shapleyprio.testbed.processes import wait_until
from shapleyprio.testbed.steering import SteeringDaemon
from shapleyprio.trial.plan import CLUSTER, members_of

COMMAND_SECONDS = 30  # real ones
FIRST_CYCLE_SECONDS = 60  # real ones, on a busy machine


@dataclass(frozen=True, slots=True)
class CycleCounts:
    """What the daemon did.

    Attributes:
        outcomes: outcome -> how many cycles had it.
        written: how many priorities were written.
    """

    outcomes: Mapping[str, int]
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
        url: of its store.
    """

    def __init__(self, cluster: PrivateSlurm, config_file: Path, log: Path, url: str) -> None:
        super().__init__(cluster, config_file, log)
        self._url = url

    def await_first_cycle(self) -> None:
        """Waits for a cycle that succeeded."""

        def succeeded() -> bool:
            self.check()
            return self.cycles().outcomes.get("ok", 0) > 0

        wait_until(
            succeeded, real_seconds=FIRST_CYCLE_SECONDS, what="the first cycle of the daemon"
        )

    def cycles(self) -> CycleCounts:
        """Counts all cycles so far."""
        with Store.open(self._url) as store, store.cluster(CLUSTER).reading() as view:
            rows = view.cycles(limit=1_000_000)
        return CycleCounts(Counter(row.outcome for row in rows), sum(row.written for row in rows))


@contextmanager
def steering(
    cluster: PrivateSlurm, workload: Workload, channel: str, pace: Pace
) -> Iterator[TrialDaemon]:
    """Starts the daemon, waits for its first cycle, and kills it in the end if it still runs."""
    config_file = cluster.directory / "shapleyprio.toml"
    url = f"sqlite:///{cluster.directory / 'shapleyprio.db'}"
    config_file.write_text(
        configuration(
            workload,
            channel,
            url=url,
            pace=pace,
            since=cluster.now(),
            speed=cluster.spec.speed,
        ),
        encoding="utf-8",
    )
    Store.open(url, create=True).close()  # we read it while the daemon starts
    log = cluster.directory / "log" / "shapleyprio.log"
    with TrialDaemon(cluster, config_file, log, url) as daemon:
        daemon.await_first_cycle()
        yield daemon


def configuration(
    workload: Workload, channel: str, *, url: str, pace: Pace, since: int, speed: int
) -> str:
    """Returns the daemon's configuration; its time limits run on the cluster's clock, too."""
    moment = datetime.fromtimestamp(since, UTC).isoformat()
    new_jobs = "off" if pace.new_jobs_seconds is None else f"{pace.new_jobs_seconds}s"
    lines = [
        f'[slurm]\ncluster = "{CLUSTER}"\ntimeout = "{COMMAND_SECONDS * speed}s"',
        f'[fairness]\nhorizon = "unlimited"\nsince = "{moment}"',
        f'[push]\nchannel = "{channel}"',
        f'[service]\npoll_interval = "{pace.poll_seconds}s"\nnew_jobs_interval = "{new_jobs}"',
        f'[store]\nurl = "{url}"',
        '[metrics]\naddress = "off"',
    ]
    for member in members_of(workload):
        lines.append(f'[[organization]]\nname = "{member.handle}"\naccounts = ["{member.handle}"]')
        lines += [f'nodes = ["{member.node}"]'] if member.node is not None else []
        lines += [f'qos = "{member.handle}"'] if CHANNELS[channel].needs_qos else []
    return "\n".join(lines) + "\n"
