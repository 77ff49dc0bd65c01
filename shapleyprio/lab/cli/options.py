"""Options and bounds that several commands of the laboratory have, each declared once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from shapleyprio.cli.options.shared import AnyCommand, Option, count_option
from shapleyprio.cli.options.types import duration

OF_A_CLUSTER_SECONDS = 120
"""So long where a private Slurm is to be ended, on a machine that has much to do."""

SPEED = "Cluster seconds per real second at most; the clock is slow while Slurm computes."


def speed_option(*, help: str = SPEED) -> Option[Any]:  # noqa: A002
    """Returns --speed."""
    return click.option(
        "--speed", type=click.IntRange(1, 100), default=60, show_default=True, help=help
    )


def side_by_side_option(default: int = 2) -> Option[Any]:
    """Makes the option for how many arms to run at once."""
    return count_option("--side-by-side", default=default, help="How many arms to run at once.")


def _each_once(
    _context: click.Context, _option: click.Parameter, arms: tuple[str, ...]
) -> tuple[str, ...]:
    if len(set(arms)) < len(arms):
        raise click.UsageError("the same --arm is named twice")
    return arms


def arm_option(arms: Iterable[str], usual: Iterable[str]) -> Option[Any]:
    """Returns --arm, which may be given several times.

    Args:
        arms: names of all that there are.
        usual: those that run if none is named.
    """
    return click.option(
        "--arm",
        "arms",
        multiple=True,
        type=click.Choice(list(arms)),
        callback=_each_once,
        help=f"What to run; give it several times.  [default: {', '.join(usual)}]",
    )


def _unused(
    _context: click.Context, _option: click.Parameter, directory: Path | None
) -> Path | None:
    if directory is not None and directory.is_dir() and any(directory.iterdir()):
        raise click.UsageError(f"--directory: {directory} is not empty; name a new directory")
    return directory


def directory_option(command: AnyCommand) -> AnyCommand:
    """Adds --directory for the state of private clusters."""
    return click.option(
        "--directory",
        type=click.Path(path_type=Path, file_okay=False),
        callback=_unused,
        help="Keep configurations, logs and databases of the private cluster there (a new or empty "
        "directory with a short path).",
    )(command)


def poll_interval_option(
    *names: str,
    default: str | Sequence[str],
    help: str = "From one cycle of the daemon to the next, on the cluster's clock.",  # noqa: A002
) -> Option[Any]:
    """Returns --poll-interval; with several defaults it may be given several times."""
    return click.option(
        "--poll-interval",
        *names,
        type=duration("30s or 5m"),
        multiple=not isinstance(default, str),
        default=default,
        show_default=True,
        help=help,
    )


def keep_option(what: str, *, required: bool = False) -> Option[Any]:
    """Returns --keep: results of finished parts, which are not computed again.

    Args:
        what: the parts, in the plural.
        required: whether the option may not be left out.
    """
    return click.option(
        "--keep",
        required=required,
        type=click.Path(path_type=Path, file_okay=False),
        help=f"Keep finished {what} in that directory, and go on from those that are kept there.",
    )
