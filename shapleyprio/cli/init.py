"""`shapleyprio init`."""

from __future__ import annotations

import os
from contextlib import suppress
from grp import getgrnam
from pathlib import Path
from pwd import getpwnam
from shlex import quote

import click

from shapleyprio.cli.options.json_output import STDOUT
from shapleyprio.cli.options.shared import config_option
from shapleyprio.common.errors import OutputError
from shapleyprio.common.output import whole_file
from shapleyprio.daemon.checking.draft import draft
from shapleyprio.slurm.adapters import connect
from shapleyprio.slurm.layout import Layout
from shapleyprio.slurm.port import Connection, SlurmError

DAEMON = "shapleyprio"
"""The daemon's user and group, where its packages or systemd have made them."""


@click.command
@config_option
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="File to write, - for standard output.  [default: the configuration file]",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--cluster-independent", is_flag=True, help="Write an example; do not contact Slurm.")
def command(
    config_path: Path, output: Path | None, *, force: bool, cluster_independent: bool
) -> None:
    """Write a configuration drawn from the live cluster.

    Every account below the root becomes an organization, with the partitions that seem to be
    its own. What could not be decided is in comments. An existing file is left alone. Only
    owner and group can read the new file: root and the group shapleyprio, if root writes it and
    the group exists.
    """
    target = output or config_path
    if target != STDOUT and target.exists() and not force:
        raise OutputError(
            f"{target}: already exists; --force overwrites it, --output FILE writes another"
        )
    text = draft(None if cluster_independent else _layout())
    if target == STDOUT:
        click.echo(text, nl=False)
        return
    with suppress(OSError):  # the file says why it cannot be written
        target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as file:
        _keep_private(file.fileno())
        file.write(text)
    check = f"shapleyprio check{'' if target == config_path else f' --config {quote(str(target))}'}"
    if os.geteuid() == 0 and _is_user(DAEMON):  # whose rights and store it also looks at
        check = f"runuser -u {DAEMON} -- {check}"
    click.echo(f"{target}: written; look through it, then run `{check}`", err=True)


def _is_user(name: str) -> bool:
    with suppress(KeyError):
        return bool(getpwnam(name))
    return False


def _keep_private(file: int) -> None:
    """Lets only its owner and the daemon read an open file that may hold a database password."""
    os.fchmod(file, 0o640)
    with suppress(KeyError):
        group = getgrnam(DAEMON).gr_gid
        if os.geteuid() == 0:
            os.fchown(file, 0, group)


def _layout() -> Layout:
    try:
        return connect(Connection()).layout()
    except SlurmError as error:
        raise type(error)(
            f"{error}; --cluster-independent writes an example without asking Slurm"
        ) from error
