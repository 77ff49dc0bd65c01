"""Replays: Ref with more and more organizations, the usual policies, whole logs, reading.

``python -m shapleyprio.lab.bench.replay.replay K CORES`` replays what is made up for K
organizations under Ref; it prints the second that was reached now and then, and at the end the
seconds it took.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from shapleyprio.common.workers import PYTHON
from shapleyprio.lab.bench.measure import (
    BenchParameters,
    MakeBar,
    Measurement,
    Ran,
    machine,
    of_runs,
    repeatedly,
    run_apart,
    seconds_of,
)
from shapleyprio.lab.bench.replay import replay_workloads as workloads
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.replay.policies import ONE_SCHEDULE, SHAPLEY, run_policy
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.workload import Workload

LPC = "LPC-EGEE-2004-1.2-cln.swf.gz"
RICC = "RICC-2010-2.swf.gz"
XDMOD = "xdmod-pozidriv.sacct.gz"
LOGS = {LPC: "LPC's whole log", RICC: "RICC's whole log", XDMOD: "text of sacct"}
"""File -> what is measured on it."""

RUNS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Ref with so many organizations.

    Attributes:
        organizations: how many.
        below: target for the seconds.
        megabytes_below: target for the peak memory, if there is one.
        runs: how many.
        one_core_too: whether two cores are held against one.
    """

    organizations: int
    below: float
    megabytes_below: float | None = None
    runs: int = RUNS
    one_core_too: bool = False


MADE_UP = (
    Case(organizations=5, below=0.02),
    Case(organizations=10, below=0.5),
    Case(organizations=12, below=2.5),
)
LARGE = (
    Case(organizations=14, below=6.0, runs=3, one_core_too=True),
    Case(organizations=16, below=15.0, megabytes_below=1000.0, runs=1, one_core_too=True),
    Case(organizations=18, below=90.0, megabytes_below=2000.0, runs=1),
    Case(organizations=20, below=1800.0, megabytes_below=8000.0, runs=1),
)
"""On two cores, if there are two."""

WHOLE_LOG = (
    Case(organizations=5, below=0.35),
    Case(organizations=8, below=4.0, runs=3),
    Case(organizations=10, below=30.0, runs=1),
)
TIMES_ABOVE = 1.6
"""Two cores against one."""

MANY_ORGANIZATIONS = 100
MONTH_PROCESSORS = 140
MONTH_FROM_DAY = 90
"""The month of LPC in which its processors had most to do."""

MONTH_SECONDS_BELOW = 60.0

JOBS_A_SECOND_ABOVE = 1_000_000.0
SWF_LINES_A_SECOND_ABOVE = 1_000_000.0
SACCT_LINES_A_SECOND_ABOVE = 200_000.0
SACCT_LINES = 200_000
"""So many there are at least, by repeating the log."""

RICC_ORGANIZATIONS = 5
RICC_PROCESSORS = 8_192
RICC_POLICY = "directcontr"
RICC_RUNS = 3
RICC_SECONDS_BELOW = 60.0
RICC_MEGABYTES_BELOW = 4000.0
RAND_BY_REF_BELOW = 1.1
"""As long, but for what runs differ by."""

HELP_SECONDS_BELOW = 0.3

FIRST_ORGANIZATIONS = 5
FIRST_POLICIES = ("ref", "directcontr")
FIRST_SECONDS_BELOW = 10.0


def measure_replay(asked: BenchParameters) -> Iterator[Measurement]:
    """Measures replays; logs that are not there are left out."""
    folder, bar, most_organizations = asked.folder, asked.bar, asked.most_organizations

    def small_enough(case: Case) -> bool:
        return case.organizations <= most_organizations

    for case in filter(small_enough, MADE_UP):
        what = f"ref, {_of(case)}"
        yield _ref(what, workloads.made_up(case.organizations), case, bar)
    # processes of their own come before the logs are read, see run_apart
    for case in filter(small_enough, LARGE):
        yield from _on_two_cores(case, bar)
    yield _start_up(bar)
    if most_organizations >= FIRST_ORGANIZATIONS:
        yield _first_replay(folder, bar)
    found = found_in(asked.logs)
    if RICC in found:
        yield from _whole_process(found[RICC], bar)
        if most_organizations >= RICC_ORGANIZATIONS:
            yield _rand_by_ref(read_log(str(found[RICC])), bar)
    if LPC in found:
        log = read_log(str(found[LPC]))
        for case in filter(small_enough, WHOLE_LOG):
            what = f"{LOGS[LPC]}, ref, {case.organizations} organizations"
            yield _ref(what, _of_lpc(log, case.organizations), case, bar)
        if most_organizations >= WHOLE_LOG[0].organizations:
            yield _month(log, bar)
        yield from _usual_policies(log, bar)
    yield from _reading(found, folder, bar)


def found_in(logs: Path | None) -> dict[str, Path]:
    """Maps names to files, for the logs that are there."""
    if logs is None:
        return {}
    return {name: logs / name for name in LOGS if (logs / name).is_file()}


def left_out(logs: Path | None) -> Iterator[str]:
    """Yields what cannot be measured here, and why; a line each."""
    missing = [f"{what} ({name})" for name, what in LOGS.items() if name not in found_in(logs)]
    if missing:
        why = "name their place with --logs DIRECTORY" if logs is None else f"not in {logs}"
        yield f"left out: {', '.join(missing)}: {why}"
    if machine().cores == 1:
        yield "left out: one core against two: this process may use only one"


def _ref(what: str, workload: Workload, case: Case, bar: MakeBar) -> Measurement:
    progress = bar(f"ref, k = {case.organizations}", case.runs)
    schedules = repeatedly(lambda: run_policy(workload, "ref"), case.runs, progress)
    seconds = [schedule.seconds for schedule in schedules]
    return of_runs("replay", what, seconds, unit="s", below=case.below)


def _on_two_cores(case: Case, bar: MakeBar) -> Iterator[Measurement]:
    seconds: dict[int, list[float]] = {1: [], 2: []}
    megabytes: dict[int, list[float]] = {1: [], 2: []}
    for cores, ran in _in_turn(case, bar):
        seconds[cores].append(float(ran.last_line))
        megabytes[cores].append(ran.megabytes)
    most = 2 if seconds[2] else 1
    what = f"ref, {_of(case)}, {most} core{'s' * (most > 1)}"
    yield of_runs("replay", what, seconds[most], unit="s", below=case.below)
    if case.megabytes_below is not None:
        below = case.megabytes_below
        yield of_runs("replay", "peak memory of that", megabytes[most], unit="MB", below=below)
    if seconds[1] and seconds[2]:
        what = f"ref, {case.organizations} organizations: one core's time by two cores'"
        times = [
            one_core / two_cores for one_core, two_cores in zip(seconds[1], seconds[2], strict=True)
        ]
        yield of_runs("replay", what, times, unit="times", above=TIMES_ABOVE)


def _in_turn(case: Case, bar: MakeBar) -> Iterator[tuple[int, Ran]]:
    """Runs on one core and on two alternately, so that both see the same moods of the machine."""
    most = min(machine().cores, 2)
    numbers = (1, 2) if most == 2 and case.one_core_too else (most,)
    turns = case.runs * len(numbers)
    progress = bar(f"ref, k = {case.organizations}", turns * workloads.SECONDS)
    program = [*PYTHON, "-m", "shapleyprio.lab.bench.replay.replay", str(case.organizations)]
    for turn, cores in enumerate(numbers * case.runs):
        yield cores, run_apart([*program, str(cores)], _from(progress, turn * workloads.SECONDS))


def _from(progress: Callable[[int], None], begin: int) -> Callable[[int], None]:
    return lambda done: progress(begin + done)


def _whole_process(file: Path, bar: MakeBar) -> Iterator[Measurement]:
    command = [*PYTHON, "-m", "shapleyprio", "replay", str(file), "--policy", RICC_POLICY]
    command += ["--deal-users", str(RICC_ORGANIZATIONS), "--processors", str(RICC_PROCESSORS)]
    command += ["--seed", str(workloads.SEED), "--wide", "expand"]
    progress = bar("replaying RICC", RICC_RUNS)
    ran = list(repeatedly(lambda: run_apart(command), RICC_RUNS, progress))
    what = f"{LOGS[RICC]}, expanded, {RICC_POLICY}: read, scheduled, measured and shown"
    seconds, megabytes = [run.seconds for run in ran], [run.megabytes for run in ran]
    yield of_runs("replay", what, seconds, unit="s", below=RICC_SECONDS_BELOW)
    what = "peak memory of that"
    yield of_runs("replay", what, megabytes, unit="MB", below=RICC_MEGABYTES_BELOW)


def _rand_by_ref(log: Log, bar: MakeBar) -> Measurement:
    """Lets Rand and Ref replay wide jobs; of 5 organizations both schedule some 30 coalitions."""
    workload = workloads.dealt_out(log, RICC_ORGANIZATIONS, processors=RICC_PROCESSORS)

    def times() -> float:
        sampled, every = (run_policy(workload, policy, cores=1) for policy in ("rand", "ref"))
        return sampled.seconds / every.seconds

    what = f"{LOGS[RICC]}, expanded, {RICC_ORGANIZATIONS} organizations: rand's time by ref's"
    ran = list(repeatedly(times, RICC_RUNS, bar("rand and ref", RICC_RUNS)))
    return of_runs("replay", what, ran, unit="times", below=RAND_BY_REF_BELOW)


def _start_up(bar: MakeBar) -> Measurement:
    command = [*PYTHON, "-m", "shapleyprio", "--help"]
    ran = repeatedly(lambda: run_apart(command), RUNS, bar("starting", RUNS))
    seconds = [run.seconds for run in ran]
    return of_runs("replay", "shapleyprio --help", seconds, unit="s", below=HELP_SECONDS_BELOW)


def _first_replay(folder: Path, bar: MakeBar) -> Measurement:
    """Replays as a user does who never did: nothing is kept anywhere."""
    log = folder / "first.swf"
    workloads.write_swf(workloads.made_up(FIRST_ORGANIZATIONS), log)
    home = folder / "home"
    home.mkdir()
    command = ["env", "--unset=XDG_CACHE_HOME", f"HOME={home}", *PYTHON, "-m", "shapleyprio"]
    command += ["replay", str(log), "--deal-users", str(FIRST_ORGANIZATIONS)]
    command += [word for policy in FIRST_POLICIES for word in ("--policy", policy)]
    ran = repeatedly(lambda: run_apart(command), RUNS, bar("a first replay", RUNS))
    seconds = [run.seconds for run in ran]
    what = f"a user's first replay: {' and '.join(FIRST_POLICIES)}, {workloads.JOBS:,} jobs"
    return of_runs("replay", what, seconds, unit="s", below=FIRST_SECONDS_BELOW)


def _of_lpc(log: Log, organizations: int) -> Workload:
    return workloads.dealt_out(log, organizations, processors=workloads.PROCESSORS)


def _month(log: Log, bar: MakeBar) -> Measurement:
    """Lets the policy `shapley` replay a month of LPC with more organizations than Ref can."""
    workload = workloads.month_of(
        log, MONTH_FROM_DAY, MANY_ORGANIZATIONS, processors=MONTH_PROCESSORS
    )
    show = bar(f"{SHAPLEY}, k = {MANY_ORGANIZATIONS}", 1)
    schedules = repeatedly(lambda: run_policy(workload, SHAPLEY), 1, show)
    what = f"a month of LPC, {SHAPLEY}, {MANY_ORGANIZATIONS} organizations"
    seconds = [schedule.seconds for schedule in schedules]
    return of_runs("replay", what, seconds, unit="s", below=MONTH_SECONDS_BELOW)


def _usual_policies(log: Log, bar: MakeBar) -> Iterator[Measurement]:
    organizations = WHOLE_LOG[0].organizations
    workload = _of_lpc(log, organizations)
    for policy in ONE_SCHEDULE:
        run = partial(run_policy, workload, policy)
        schedules = repeatedly(run, RUNS, bar(policy, RUNS))
        rates = [int(schedule.copies.sum()) / schedule.seconds for schedule in schedules]
        what = f"{LOGS[LPC]}, {policy}, {organizations} organizations: sequential jobs"
        yield of_runs("replay", what, rates, unit="jobs/s", above=JOBS_A_SECOND_ABOVE)


def _reading(found: Mapping[str, Path], folder: Path, bar: MakeBar) -> Iterator[Measurement]:
    for name in (LPC, RICC):
        if name in found:
            lines = workloads.lines_of(found[name])
            what = f"reading {LOGS[name]}, {lines:,} lines of SWF, decompression included"
            yield _lines_a_second(what, found[name], lines, SWF_LINES_A_SECOND_ABOVE, bar)
    if XDMOD in found:
        longer = folder / "repeated.sacct"
        lines = workloads.repeated(found[XDMOD], longer, SACCT_LINES)
        what = f"reading {lines:,} lines of {LOGS[XDMOD]}, one log over and over"
        yield _lines_a_second(what, longer, lines, SACCT_LINES_A_SECOND_ABOVE, bar)


def _lines_a_second(what: str, file: Path, lines: int, above: float, bar: MakeBar) -> Measurement:
    read = partial(read_log, str(file))
    seconds = repeatedly(lambda: seconds_of(read), RUNS, bar("reading", RUNS))
    rates = [lines / duration for duration in seconds]
    return of_runs("replay", what, rates, unit="lines/s", above=above)


def _of(case: Case) -> str:
    return (
        f"{case.organizations} organizations, {workloads.JOBS:,} jobs, {workloads.PROCESSORS} "
        f"processors, {workloads.SECONDS:,} s"
    )


def main(organizations: int, cores: int) -> None:
    """Replays what is made up under Ref and prints how it goes."""
    schedule = run_policy(
        workloads.made_up(organizations),
        "ref",
        cores=cores,
        progress=lambda second: print(second, flush=True),
    )
    print(schedule.seconds, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
