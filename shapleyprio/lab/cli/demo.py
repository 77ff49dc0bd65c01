"""`shapleyprio demo`."""

from __future__ import annotations

import io
import re
import time
from contextlib import nullcontext
from math import isnan
from pathlib import Path

import click
from rich.console import Console, Group, RenderableType
from rich.text import Text

from shapleyprio.cli.common import termination_unwinds
from shapleyprio.cli.options.refusals import refuse_missing_directories
from shapleyprio.cli.options.shared import output_option
from shapleyprio.common.output import whole_file
from shapleyprio.lab.cli.options import (
    OF_A_CLUSTER_SECONDS,
    directory_option,
    speed_option,
)
from shapleyprio.lab.demo.collector import collecting, reserved
from shapleyprio.lab.demo.consortium import rounds, workload
from shapleyprio.lab.demo.play import DemoEnd, opened, play
from shapleyprio.lab.demo.screen import LEGEND, cast, conclusion, frame, summary_table
from shapleyprio.lab.demo.stage import DemoError
from shapleyprio.lab.testbed.machine import TestbedError, state_directory

PAUSE_SECONDS = 0.3
"""Between two simulated cycles in a terminal."""

SVG_COLUMNS = 92


@click.command
@click.option("--simulated", is_flag=True, help="Use the simulated Slurm even if a real one could.")
@click.option(
    "--hours",
    type=click.FloatRange(0.1, 24),
    default=1.75,
    show_default=True,
    help="How long to go on, on the cluster's clock; with --watch, the length of a round.",
)
@speed_option(help="Cluster seconds per real second of the real Slurm.")
@click.option("--seed", default=2, show_default=True, help="Seed of the jobs' sizes and times.")
@directory_option
@output_option("--svg", "svg", help="Save the last screen there.")
@click.option(
    "--watch",
    is_flag=True,
    help="Go on, round after round, until Ctrl-C; daemon, status page and (where it is installed) "
    "Prometheus run along, and their addresses are printed.",
)
def command(
    *,
    simulated: bool,
    hours: float,
    speed: int,
    seed: int,
    directory: Path | None,
    svg: Path | None,
    watch: bool,
) -> None:
    """Show three organizations that share a cluster, and what their priorities do.

    Boots a private real Slurm on this machine, submits more jobs than it can run, steers it with
    the daemon and shows what happens; then stops everything. It needs neither a configuration
    nor a cluster. Where Slurm is not available, the simulated one takes its place.
    """
    if isnan(hours):
        raise click.BadParameter("nan is not a number of hours", param_hint="--hours")
    refuse_missing_directories(("--svg", svg))
    if watch and simulated:
        raise click.UsageError("the simulated Slurm has no daemon to --watch; drop --simulated")
    console = Console(highlight=False, markup=False, emoji=False)

    def say(line: str) -> None:
        console.print(line, soft_wrap=True)

    began = time.monotonic()
    duration = int(hours * 3600)
    lasting = None if watch else duration
    try:
        with (
            termination_unwinds(OF_A_CLUSTER_SECONDS),
            reserved() if watch else nullcontext() as addresses,
            state_directory(directory) as state,
            opened(
                rounds(seed, duration) if watch else workload(seed, duration),
                directory=state,
                speed=None if simulated else speed,
                address=None if addresses is None else addresses.daemon,
                pause_seconds=PAUSE_SECONDS if console.is_terminal else 0,
                say=say,
            ) as (stage, store),
            collecting(addresses, directory=state) as where,
        ):
            console.print(cast())
            for line in where:
                say(line)
            end = play(stage, store, duration=lasting, console=console)
            console.print(closing(end))
    except (DemoError, TestbedError) as error:
        raise click.ClickException(str(error)) from error
    if svg is not None:
        save_picture(svg, end, lasting)
    console.print(f"this took {time.monotonic() - began:.0f} s")
    if directory is not None:
        console.print(f"look around: shapleyprio status --config {directory}/shapleyprio.toml")
    if complaints := end.complaints():
        raise click.ClickException("\n".join(complaints))


def closing(end: DemoEnd) -> RenderableType:
    """Returns the summary."""
    rollback = f"rollback: {end.put_back} priorities put back as they were found"
    if not end.still_ours and not end.unreadable:
        rollback += ", none of ours is left"
    table = summary_table(end.results)
    said = Text(conclusion(end.results), "bold")
    return Group(rollback, Text(), table, Text(LEGEND, "dim"), Text(), said, Text())


def save_picture(file: Path, end: DemoEnd, duration: int | None) -> None:
    """Saves the last screen and the summary as SVG.

    Raises:
        OutputError: the file cannot be written.
    """
    console = Console(
        record=True, file=io.StringIO(), width=SVG_COLUMNS, force_terminal=True, highlight=False
    )
    console.print(frame(end.last, duration, lines=end.last.elapsed))
    console.print(closing(end))
    picture = console.export_svg(title="shapleyprio demo")
    without_fonts_from_the_network = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    with whole_file(file) as stream:
        stream.write(without_fonts_from_the_network)
