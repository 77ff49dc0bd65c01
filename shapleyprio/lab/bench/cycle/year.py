"""A year of cycles on the simulated Slurm: does what the daemon needs level off, is all counted?

``python -m shapleyprio.lab.bench.cycle.year FOLDER DAYS`` lives it in a process of its own, whose
memory is the daemon's, and prints how many days are over, and last what was found as JSON.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from statistics import fmean
from time import process_time
from typing import NamedTuple
from zoneinfo import ZoneInfo

import structlog

from shapleyprio.common.wording import DAY
from shapleyprio.common.workers import PYTHON
from shapleyprio.config import load_config
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.lab.bench.measure import BenchParameters, Measurement, of_runs, run_apart
from shapleyprio.lab.simulated import SimulatedSlurm, SimulatedSpec
from shapleyprio.slurm.port import Controller, Malformed
from shapleyprio.slurm.running import Moment
from shapleyprio.store import ClusterStore, Store


class Done(NamedTuple):
    """A job that was executed: whose, on which node, on how many processors, and its seconds."""

    account: str
    node: str
    processors: int
    begin: int
    end: int


def literal_ledger(
    jobs: Iterable[Done], holders: Mapping[int, Mapping[str, str]], t: int, horizon: int
) -> dict[str, tuple[int, int]]:
    """Returns organization -> its contribution and utility at t.

    Args:
        jobs: all there were.
        holders: second -> who holds which account and node from then on; what somebody holds first
            was always so.
        t: seconds since the epoch.
        horizon: seconds.
    """
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])

    def worth(age: int) -> int:
        """Returns the worth of a part of each second up to an age."""
        young = min(age, horizon)
        return young * (young + 1) // 2 + (age - young) * horizon

    changes = [*holders, t]
    for job in jobs:
        for (since, held), until in zip(holders.items(), changes[1:], strict=True):
            begin, end = max(job.begin, since), min(job.end, until)
            if begin < end and job.account in held:
                parts = job.processors * (worth(t - begin) - worth(t - end))
                found[held[job.account]][1] += parts
                if job.node in held:
                    found[held[job.node]][0] += parts
    return {name: (contribution, utility) for name, (contribution, utility) in found.items()}


CLUSTER = "year"
FILE = "year.db"
DAYS = 400
JOBS_OF_A_DAY = 1_000
CYCLE_SECONDS = 4 * 3600
LONGEST_SECONDS = 3_000
PROCESSORS_OF_A_NODE = 16
HORIZON = 30 * DAY
PURGED_AFTER = 30 * DAY
"""Age from which slurmdbd has forgotten jobs."""

ZONE = "Europe/Berlin"
"""Two of the months that are reported have an hour more or less there."""

BEGIN = int(datetime(2026, 6, 28, tzinfo=UTC).timestamp())
LEAP_SECONDS = [int(datetime(2026, 7, 1, tzinfo=UTC).timestamp())]
"""The count of seconds since the epoch leaves out the one before."""

MEMBERS = ["abc", "abcd", "abde", "abe", "abce", "abcde", "bcd", "abcd"]
"""Who belongs to the consortium in each eighth of the time."""

EVERYBODY = "abcde"
NODES = [f"{letter}{number}" for letter in EVERYBODY for number in (1, 2)]
LENT, BORROWER = "a2", "b"
"""In every other eighth the node is another one's."""

MEASURED = 60
"""Cycles at the ends of the first quarter, when the store keeps all that it will, and the last."""

LEVEL_BELOW = 1.2
"""The year may end with so many times what the first quarter ends with."""

QUANTITIES = {"size of the store": "MB", "memory": "MB", "processor time of a cycle": "s"}


class LeapingSlurm(SimulatedSlurm):
    """A cluster whose clock is set back at each leap second."""

    def controller(self) -> Controller:
        """Returns the controller's state, as seen on a clock that counts leap seconds."""
        leaps = sum(self.now >= second for second in LEAP_SECONDS)
        return replace(super().controller(), seen=Moment(CLUSTER, self.now + leaps))


def measure_year(asked: BenchParameters) -> Iterator[Measurement]:
    """Measures the first and the last quarter of a year, and compares its ledger."""
    import shapleyprio.cli.offline.monthly  # noqa: F401  # else the first report would fail

    command = [*PYTHON, "-m", "shapleyprio.lab.bench.cycle.year", str(asked.folder), str(DAYS)]
    found = json.loads(run_apart(command, asked.bar("days", DAYS)).last_line)
    what = f"after {DAYS} days with {JOBS_OF_A_DAY:,} jobs each"
    quarter = "that, to after a quarter of the days"
    for name, (first, last) in found["levels"].items():
        yield of_runs("year", f"{what}: {name}", [last], unit=QUANTITIES[name])
        yield of_runs("year", quarter, [last / first], unit="times", below=LEVEL_BELOW)
    yield of_runs("year", "months reported", [found["reports"]], unit="")
    what = "organizations whose ledger is not the literal one"
    yield of_runs("year", what, [found["wrong"]], unit="", below=1)


class Year:
    """Days of a cluster, and of the daemon that steers it.

    Attributes:
        holders: second -> who holds which node and which account from then on.
        needs: by cycle what `QUANTITIES` names.
        reports: that were written.
    """

    def __init__(self, folder: Path, store: ClusterStore, days: int) -> None:
        nodes = dict.fromkeys(NODES, PROCESSORS_OF_A_NODE)
        partitions = {node: [node] for node in NODES}
        accounts = dict.fromkeys(EVERYBODY)
        spec = SimulatedSpec(cluster=CLUSTER, nodes=nodes, partitions=partitions, accounts=accounts)
        self.slurm = LeapingSlurm(spec, now=BEGIN)
        self.holders: dict[int, dict[str, str]] = {}
        self.needs: list[tuple[float, float, float]] = []
        self.reports = 0
        self._folder, self._store = folder, store
        self._seconds = days * DAY
        self._chance = Random(1)  # noqa: S311  # the same jobs every time are what is wanted

    def live(self) -> Iterator[Done]:
        """Lives all days; yields the jobs of each day, and what runs at the end as if it ended."""
        end = BEGIN + self._seconds
        for since in range(BEGIN, end, CYCLE_SECONDS):
            members = len(MEMBERS) * (since - BEGIN) // self._seconds
            if len(MEMBERS) * (since - CYCLE_SECONDS - BEGIN) // self._seconds < members:
                cycle = self._under(members)
            began = process_time()
            cycle.run()
            cycle.prune()
            took = process_time() - began
            self.needs.append((_size_of(self._folder / FILE) / 1e6, _megabytes(), took))
            self._submit()
            self.slurm.advance(since + CYCLE_SECONDS)
            yield from self._done(since)
            self.slurm.purge(since - PURGED_AFTER)
            print((self.slurm.now - BEGIN) // DAY, flush=True)
            if _month(since) != _month(self.slurm.now):
                cycle.run()
                self._report(_month(since))
        cycle.run()
        yield from self._done(end, running=True)

    def _under(self, members: int) -> Cycle:
        """Returns what runs the cycles from now on, with a row of `MEMBERS`."""
        held = {name: name[0] for name in (*NODES, *EVERYBODY) if name[0] in MEMBERS[members]}
        if members % 2:
            held[LENT] = BORROWER
        self.holders[self.slurm.now] = held
        sections = [
            f'[[organization]]\nname = "{one}"\naccounts = ["{one}"]\n'
            f"nodes = {[node for node in NODES if held.get(node) == one]}\n"
            for one in MEMBERS[members]
        ]
        file = self._folder / "year.toml"
        file.write_text(
            f'[slurm]\ncluster = "{CLUSTER}"\n[fairness]\nrule = "directcontr"\n'
            f'horizon = "{HORIZON}s"\n[store]\nurl = "sqlite:///{self._folder / FILE}"\n'
            + "".join(sections),
            encoding="utf-8",
        )
        return Cycle(load_config(file), self.slurm, self._store, clock=lambda: self.slurm.now)

    def _submit(self) -> None:
        """Submits half of the jobs until the next cycle at once, the others later."""
        for number in range(JOBS_OF_A_DAY * CYCLE_SECONDS // DAY):
            later = self.slurm.now + self._chance.randrange(CYCLE_SECONDS)
            self.slurm.submit(
                self._chance.choice(EVERYBODY),
                partition=self._chance.choice(NODES),
                processors=self._chance.choice((1, 1, 2, 4, 8)),
                processing_time=self._chance.randint(60, LONGEST_SECONDS),
                at=later if number % 2 else None,
            )

    def _done(self, since: int, *, running: bool = False) -> Iterator[Done]:
        """Yields what has ended behind a second, or what runs."""
        now = self.slurm.now
        for record in self.slurm.records(since, now):
            assert not isinstance(record, Malformed)
            ended = record.end is not None and record.end > since
            if record.start is not None and (record.end is None if running else ended):
                (node,) = record.nodes
                end = now if record.end is None else record.end
                yield Done(record.account, node, record.processors, record.start, end)

    def _report(self, month: str) -> None:
        """Has the month's report written, in local time."""
        command = [*PYTHON, "-m", "shapleyprio", "report", "--month", month, "--config"]
        files = [str(self._folder / "year.toml"), "--output", str(self._folder)]
        run_apart(["env", f"TZ={ZONE}", *command, *files])
        written = (self._folder / f"{CLUSTER}-{month}.json").read_text(encoding="utf-8")
        begin = datetime.fromisoformat(f"{month}-01").replace(tzinfo=ZoneInfo(ZONE))
        end = (begin + timedelta(days=31)).replace(day=1)
        if json.loads(written)["window"]["length"] != end.timestamp() - begin.timestamp():
            raise RuntimeError(f"the report of {month} lacks a part of the month")
        self.reports += 1


def _size_of(file: Path) -> int:
    """Returns the bytes of an SQLite store, with the files beside it."""
    return sum(each.stat().st_size for each in file.parent.glob(f"{file.name}*"))


def _month(second: int) -> str:
    return f"{datetime.fromtimestamp(second, ZoneInfo(ZONE)):%Y-%m}"


def _megabytes() -> float:
    """Returns the memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main(folder: Path, days: int) -> None:
    """Lives so many days, and prints what was found."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    done = folder / "done"  # in memory it would grow
    with Store.open(f"sqlite:///{folder / FILE}", create=True) as opened:
        store = opened.cluster(CLUSTER)
        lived = Year(folder, store, days)
        with done.open("w", encoding="ascii") as file:
            file.writelines(f"{json.dumps(job)}\n" for job in lived.live())
        with store.reading() as view:
            rows = view.history.latest_standings()
    with done.open(encoding="ascii") as file:
        jobs = (Done(*json.loads(line)) for line in file)
        literal = literal_ledger(jobs, lived.holders, BEGIN + days * DAY, HORIZON)
    first, last = (lived.needs[: len(lived.needs) // 4][-MEASURED:], lived.needs[-MEASURED:])
    levels = [[fmean(column) for column in zip(*rows, strict=True)] for rows in (first, last)]
    found = dict(zip(QUANTITIES, zip(*levels, strict=True), strict=True))
    wrong = [row for row in rows if (row.contribution, row.utility) != literal[row.organization]]
    print(json.dumps({"levels": found, "reports": lived.reports, "wrong": len(wrong)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
