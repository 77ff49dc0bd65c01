"""Our daemon beside a private Slurm, as a process of its own on the cluster's clock."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from shapleyprio.replay.workload import Workload
from shapleyprio.slurm.port import Channel
from shapleyprio.store import Store
from shapleyprio.testbed.cluster import PrivateSlurm
from shapleyprio.testbed.processes import wait_until
from shapleyprio.trial.errors import TrialError
from shapleyprio.trial.plan import CLUSTER, members_of

COMMAND_SECONDS = 30  # real ones
FIRST_CYCLE_SECONDS = 60  # real ones, on a busy machine
LAST_CYCLE_SECONDS = 60  # real ones


@dataclass(frozen=True, slots=True)
class Cycles:
    """What the daemon did.

    Attributes:
        outcomes: outcome -> how many cycles had it.
        written: how many priorities were written.
    """

    outcomes: Mapping[str, int]
    written: int


class Daemon:
    """The running daemon.

    Attributes:
        log: its file.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path, url: str) -> None:
        self.log = log
        self._process = process
        self._url = url

    def check(self) -> None:
        """Raises TrialError if it has ended."""
        if self._process.poll() is not None:
            raise TrialError(f"the daemon has ended: {self._last_words()}")

    def await_first_cycle(self) -> None:
        """Waits for a cycle that succeeded."""

        def succeeded() -> bool:
            self.check()
            return self.cycles().outcomes.get("ok", 0) > 0

        wait_until(
            succeeded, real_seconds=FIRST_CYCLE_SECONDS, what="the first cycle of the daemon"
        )

    def cycles(self) -> Cycles:
        """All cycles so far."""
        with Store.open(self._url) as store, store.reading(CLUSTER) as view:
            rows = view.cycles(limit=1_000_000)
        return Cycles(Counter(row.outcome for row in rows), sum(row.written for row in rows))

    def end(self) -> None:
        """Ends it after its running cycle, as systemd would."""
        self._process.terminate()
        try:
            code = self._process.wait(LAST_CYCLE_SECONDS)
        except subprocess.TimeoutExpired:
            raise TrialError(f"the daemon does not stop: {self._last_words()}") from None
        if code != 0:
            raise TrialError(f"the daemon ended with exit code {code}: {self._last_words()}")

    def _last_words(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "its log is empty"


@contextmanager
def steering(
    cluster: PrivateSlurm, workload: Workload, channel: Channel, *, poll_seconds: int
) -> Iterator[Daemon]:
    """The daemon, after its first cycle; killed in the end if it still runs."""
    config_file = cluster.directory / "shapleyprio.toml"
    url = f"sqlite:///{cluster.directory / 'shapleyprio.db'}"
    config_file.write_text(
        configuration(
            workload,
            channel,
            url=url,
            poll_seconds=poll_seconds,
            since=cluster.now(),
            speed=cluster.spec.speed,
        ),
        encoding="utf-8",
    )
    Store.open(url, create=True).close()  # we look into it while the daemon starts
    log = cluster.directory / "log" / "shapleyprio.log"
    process = cluster.start_python("shapleyprio", "daemon", "--config", str(config_file), log=log)
    try:
        daemon = Daemon(process, log, url)
        daemon.await_first_cycle()
        yield daemon
    finally:
        process.kill()
        process.wait()


def configuration(
    workload: Workload, channel: Channel, *, url: str, poll_seconds: int, since: int, speed: int
) -> str:
    """The daemon's configuration; its time limits run on the cluster's clock, too."""
    moment = datetime.fromtimestamp(since, UTC).isoformat()
    lines = [
        f'[slurm]\ncluster = "{CLUSTER}"\ntimeout = "{COMMAND_SECONDS * speed}s"',
        f'[fairness]\nhorizon = "unlimited"\nsince = "{moment}"',
        f'[push]\nchannel = "{channel.value}"',
        f'[service]\npoll_interval = "{poll_seconds}s"',
        f'[store]\nurl = "{url}"',
        '[metrics]\naddress = "off"',
    ]
    for member in members_of(workload):
        lines.append(f'[[organization]]\nname = "{member.handle}"\naccounts = ["{member.handle}"]')
        lines += [f'nodes = ["{member.node}"]'] if member.node is not None else []
        lines += [f'qos = "{member.handle}"'] if channel is Channel.QOS else []
    return "\n".join(lines) + "\n"
