"""The commands behind `./run matrix` and `./run package`."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

import click

from shapleyprio.cli import InterruptibleGroup
from shapleyprio.lab.testbed.machine import SlurmUnavailableHere, slurm_release
from tests.matrix import pyslurm
from tests.matrix.packages import packages
from tests.matrix.roots import (
    KEPT,
    ROOT,
    MatrixError,
    NotPossibleError,
    Processes,
    Roots,
    require_roots,
)
from tests.matrix.sources import Sources
from tests.matrix.stages import OF_EACH_RELEASE, Done, bench, stages
from tests.matrix.suites import SUITES, Suite
from tests.matrix.table import write

NOT_POSSIBLE = 3
Found = TypeVar("Found")
RELEASES = click.Choice([suite.release for suite in SUITES])

releases_argument = click.argument("releases", metavar="[RELEASE]...", nargs=-1, type=RELEASES)
mirror_option = click.option("--mirror", metavar="URL", help="Take Debian's packages from there.")
fresh_option = click.option("--fresh", is_flag=True, help="Make the roots anew.")


class MatrixCommands(InterruptibleGroup):
    """The commands of this module."""

    program = "matrix"


@click.group(cls=MatrixCommands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Every Slurm release that is tested, each in a root of its own."""


@main.command(short_help="run the packages and the tests on every Slurm release")
@releases_argument
@fresh_option
@mirror_option
@click.option(
    "--side-by-side",
    type=click.IntRange(1),
    default=len(SUITES),
    show_default=True,
    help="So many releases at once.",
)
@click.option("--write-table", is_flag=True, help="Write the table in README.md anew.")
@click.option(
    "--beside-test",
    is_flag=True,
    help="Leave out the tests that ./run test runs on this machine's own Slurm.",
)
def matrix(
    releases: Sequence[str],
    mirror: str | None,
    side_by_side: int,
    *,
    fresh: bool,
    write_table: bool,
    beside_test: bool,
) -> None:
    """Run the packages and the tests on every Slurm release.

    RELEASE is 22.05, 24.11 or 26.05; all of them without one. For each one a Debian root is made
    with mmdebstrap and kept in .matrix/, the packages are built and installed there, and used
    from init to removal; then the tests on a real Slurm, a small trial among them, and a short demo
    run on what was installed. Exit codes: 0 all passed; 1 something failed; 3 not possible here;
    130 interrupted by Ctrl-C.
    """
    if write_table and (releases or beside_test):
        raise click.UsageError("--write-table needs all tests on all releases")
    tested = _own_release() if beside_test else None
    sources = Sources.read()

    def run(roots: Roots) -> list[Done]:
        found = []
        without = OF_EACH_RELEASE if roots.suite.release == tested else ()
        for done in stages(roots, sources, without=without):
            found.append(done)
            say(roots.suite, f"{done.stage}: {done.found} ({done.seconds:.0f} s)")
        return found

    results = on_each(releases, run, mirror=mirror, side_by_side=side_by_side, fresh=fresh)
    if write_table:
        write(results)


def _own_release() -> str | None:
    """The release of this machine's Slurm, if it has one: without, `./run test` skips its tests."""
    try:
        return slurm_release().series
    except SlurmUnavailableHere:
        return None


@main.command("pyslurm", short_help="build pyslurm for the Slurm of every suite that has one")
@mirror_option
def build_pyslurm(mirror: str | None) -> None:
    """Build pyslurm for the Slurm of every suite that has one, which takes minutes.

    Its wheel is kept for all checkouts; with it `matrix` also runs the contract of adapters through
    pyslurm. Exit codes: 0 all were built; 1 something failed; 3 not possible here.
    """

    def build(roots: Roots) -> None:
        say(roots.suite, str(pyslurm.build(roots)))

    releases = [suite.release for suite in SUITES if pyslurm.is_built_for(suite.release)]
    on_each(releases, build, mirror=mirror, side_by_side=len(releases), fresh=False)


@main.command(
    "bench",
    short_help="run benchmarks of the installed packages on every Slurm release",
    context_settings={"ignore_unknown_options": True},
)
@click.option(
    "--release", "releases", multiple=True, type=RELEASES, help="On this one; all without it."
)
@mirror_option
@click.argument("arguments", nargs=-1, required=True, type=click.UNPROCESSED)
def bench_on_each(releases: Sequence[str], mirror: str | None, arguments: Sequence[str]) -> None:
    """Run `shapleyprio bench ARGUMENTS` on every Slurm release, one after the other.

    ARGUMENTS are those of the command, such as: slurm --pending 50 --channel association.
    Exit codes: 0 all were run; 1 something failed; 3 not possible here.
    """
    sources = Sources.read()

    def run(roots: Roots) -> None:
        say(roots.suite, "\n" + bench(roots, sources, arguments))

    on_each(releases, run, mirror=mirror, side_by_side=1, fresh=False)


@main.command(short_help="build the Debian packages of every suite")
@releases_argument
@fresh_option
@mirror_option
def package(releases: Sequence[str], mirror: str | None, *, fresh: bool) -> None:
    """Build the Debian packages of every suite into dist/SUITE/.

    RELEASE is 22.05, 24.11 or 26.05, the Slurm in the suite; all of them without one.
    Exit codes: 0 all were built; 1 something failed; 3 not possible here.
    """
    sources = Sources.read()

    def build(roots: Roots) -> None:
        for file in sorted(packages(roots, sources).glob("*.deb")):
            say(roots.suite, f"{file.relative_to(ROOT)}, {file.stat().st_size / 1e6:.1f} MB")

    on_each(releases, build, mirror=mirror, side_by_side=len(SUITES), fresh=fresh)


def on_each(
    releases: Iterable[str],
    work: Callable[[Roots], Found],
    *,
    mirror: str | None,
    side_by_side: int,
    fresh: bool,
) -> dict[str, Found]:
    """Does the work on these releases (on all if none is named), several at once.

    Returns:
        Release -> what the work returned. If one fails, the others are finished, and the process
        ends with exit code 1.
    """
    try:
        require_roots()
    except NotPossibleError as reason:
        click.echo(f"matrix: skipped: {reason}")
        sys.exit(NOT_POSSIBLE)
    wanted = set(releases) or {suite.release for suite in SUITES}
    suites = [suite for suite in SUITES if suite.release in wanted]
    processes = Processes()
    results: dict[str, Found] = {}
    failed = []
    began = time.monotonic()
    with ThreadPoolExecutor(side_by_side) as pool:
        try:
            futures = {}
            for suite in suites:
                if fresh:
                    shutil.rmtree(KEPT / suite.release, ignore_errors=True)
                roots = Roots(suite, processes, mirror=mirror)
                futures[pool.submit(work, roots)] = suite
            for future in as_completed(futures):
                suite = futures[future]
                try:
                    results[suite.release] = future.result()
                except MatrixError as error:
                    failed.append(suite.release)
                    say(suite, f"FAILED: {error}")
        except BaseException:
            processes.end()
            raise
    click.echo(
        f"matrix: {len(results)} passed, {len(failed)} failed ({time.monotonic() - began:.0f} s)"
    )
    if failed:
        sys.exit(1)
    return results


def say(suite: Suite, words: str) -> None:
    """One line on one release."""
    click.echo(f"Slurm {suite.release} ({suite.name}): {words}")


if __name__ == "__main__":
    main(prog_name="./run")
