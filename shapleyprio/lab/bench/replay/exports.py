"""Reading long exports of sacct, plain and compressed.

``python -m shapleyprio.lab.bench.replay.exports FILE`` reads one; it prints how many thousandths of
it are read now and then, and at the end the seconds it took. It has a process of its own, so that
its memory can be measured.
"""

from __future__ import annotations

import lzma
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from shapleyprio.common.wording import DAY
from shapleyprio.common.workers import PYTHON
from shapleyprio.lab.bench.measure import (
    BenchParameters,
    Measurement,
    of_runs,
    run_apart,
    seconds_of,
)
from shapleyprio.replay.logs.reading import read_log

LINES = 10_000_000
"""Some years of a large cluster."""

SECONDS_BELOW = 25.0
MEGABYTES_BELOW = 2000.0

HEADER = (
    "JobIDRaw|Account|User|Group|Partition|QOS|Submit|Eligible|Start|End|ElapsedRaw|AllocCPUS|"
    "State|Timelimit|NodeList|Cluster\n"
)
FIRST_SUBMIT = 1_577_836_800  # 2020-01-01
SECONDS_BETWEEN = 15
LONGEST = DAY
ACCOUNTS, USERS = 100, 5_000
NODES, PROCESSORS_OF_A_NODE = 5_000, 64
WIDE_EVERY = 3
"""Every third job has another list of many nodes."""

AT_ONCE = 100_000
SEED = 1


def measure_exports(asked: BenchParameters) -> Iterator[Measurement]:
    """Measures how long reading takes, and its peak memory; the exports are some gigabytes."""
    plain = asked.folder / "export.sacct"
    program = [*PYTHON, "-m", "shapleyprio.lab.bench.replay.exports"]
    write_export(plain, LINES, asked.bar("writing an export", LINES))
    for what, file in _compressed(plain):
        ran = run_apart([*program, str(file)], asked.bar(f"reading, {what}", 1_000))
        text = f"reading {LINES:,} lines of sacct, {what}"
        seconds = [float(ran.last_line)]
        yield of_runs("exports", text, seconds, unit="s", below=SECONDS_BELOW)
        memory = [ran.megabytes]
        yield of_runs("exports", "peak memory of that", memory, unit="MB", below=MEGABYTES_BELOW)


def write_export(file: Path, lines: int, progress: Callable[[int], None]) -> None:
    """Writes what sacct prints of made-up jobs, the same on every machine.

    Args:
        file: to write.
        lines: how many, beside the header.
        progress: called with how many are written.
    """
    random = np.random.default_rng(SEED)
    with file.open("w", encoding="ascii") as target:
        target.write(HEADER)
        for begin in range(0, lines, AT_ONCE):
            jobs = np.arange(begin, min(begin + AT_ONCE, lines))
            submit = FIRST_SUBMIT + jobs * SECONDS_BETWEEN
            start = submit + random.integers(0, LONGEST, len(jobs))
            elapsed = random.integers(1, LONGEST, len(jobs))
            columns = (
                jobs.tolist(),
                random.integers(0, USERS, len(jobs)).tolist(),
                _times(submit),
                _times(start),
                _times(start + elapsed),
                elapsed.tolist(),
                random.integers(0, NODES // 2, len(jobs)).tolist(),
                random.integers(1, 64, len(jobs)).tolist(),
            )
            target.writelines(map(_line, *columns))
            progress(begin + len(jobs))


def _line(
    job: int, user: int, submit: str, start: str, end: str, elapsed: int, node: int, nodes: int
) -> str:
    if job % WIDE_EVERY:
        nodes, names = 1, f"n{node:04}"
    else:
        names = f"n[{node:04}-{node + nodes - 1:04},{NODES - 1}]"
        nodes += 1
    who = f"account{user % ACCOUNTS}|user{user}|users"
    when = f"{submit}|{submit}|{start}|{end}|{elapsed}"
    what = f"{nodes * PROCESSORS_OF_A_NODE}|COMPLETED|1-00:00:00|{names}|c1"
    return f"{job + 1}|{who}|main|normal|{when}|{what}\n"


def _times(seconds: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[str]:
    texts: list[str] = np.datetime_as_string(seconds.astype("datetime64[s]")).tolist()
    return texts


def _compressed(plain: Path) -> Iterator[tuple[str, Path]]:
    """Yields what is special about each file, as soon as there is one."""
    yield "plain", plain
    compressed = plain.with_name(f"{plain.name}.xz")
    with plain.open("rb") as source, lzma.open(compressed, "wb", preset=0) as target:
        shutil.copyfileobj(source, target)
    yield "compressed by xz", compressed
    program = shutil.which("zstd")
    if program is not None:  # by which it is read, too
        subprocess.run([program, "-q", str(plain)], check=True)
        yield "compressed by zstd", plain.with_name(f"{plain.name}.zst")


def main(file: str) -> None:
    """Reads an export and prints how it goes."""
    size, shown = Path(file).stat().st_size, 0

    def show(read: int, *_: object) -> None:
        nonlocal shown
        if (now := 1_000 * read // size) > shown:
            shown = now
            print(now, flush=True)

    print(seconds_of(lambda: read_log(file, progress=show)))


if __name__ == "__main__":
    main(*sys.argv[1:])
