"""`shapleyprio compile`."""

from __future__ import annotations

from pathlib import Path

import click

from shapleyprio.cli.extras import packages_needed


@click.command
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="SHAPLEYPRIO_CACHE_DIRECTORY",
    default=Path("/var/cache/shapleyprio"),
    show_default=True,
    show_envvar=True,
    help="Where the code is kept.",
)
def command(directory: Path) -> None:
    """Compile the replay's code for all users of this machine.

    Without it, every user waits 10 to 15 seconds at the first use of a policy, and a minute at the
    first audit or report. What is compiled already is left alone, and what other releases compiled
    is removed. Run it as root after each installation: only code of root's or their own is executed
    for users.
    """
    with packages_needed("compile", "replay"):
        from shapleyprio.experiment.compiling import compile_into
    total = 0
    for step in compile_into(directory):
        total += step.compiled
        done = f"{step.compiled} functions compiled" if step.compiled else "compiled already"
        click.echo(f"{step.what}: {done}")
    click.echo(f"{directory}: {f'{total} functions added' if total else 'was complete'}")
