"""What commands share: options, opening things, exit codes, rendering."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table

from shapleyprio.config import Config, ConfigError, load_config
from shapleyprio.errors import ReplayError
from shapleyprio.service.accounting import AccountingError
from shapleyprio.service.explain import NothingToExplainError
from shapleyprio.service.lease import LeaseHeldError
from shapleyprio.slurm.command_line import CommandLineSlurm
from shapleyprio.slurm.port import Slurm, SlurmError
from shapleyprio.store import NewPush, Push, Store, StoreError

DEFAULT_CONFIG = Path("/etc/shapleyprio/shapleyprio.toml")

EXIT_CODES: dict[type[Exception], int] = {
    ConfigError: 2,
    SlurmError: 3,
    StoreError: 4,
    AccountingError: 5,
    LeaseHeldError: 6,
    NothingToExplainError: 2,
    ReplayError: 2,
}
"""Errors that end a command with one line -> exit code."""

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])


def exit_code_of(error: Exception) -> int | None:
    """The exit code of a known error, None for a defect."""
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), None)


def config_option(command: AnyCommand) -> AnyCommand:
    """Adds --config; the command gets `config_path`."""
    return click.option(
        "--config",
        "config_path",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar="SHAPLEYPRIO_CONFIG",
        default=DEFAULT_CONFIG,
        show_default=True,
        show_envvar=True,
        help="Configuration file.",
    )(command)


def json_option(command: AnyCommand) -> AnyCommand:
    """Adds --json; the command gets `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")(command)


def load(config_path: Path) -> Config:
    """Reads the configuration; ConfigError ends the command with exit code 2."""
    return load_config(config_path)


def connect(config: Config) -> Slurm:
    """The configured way to speak to Slurm."""
    return CommandLineSlurm(
        weight=config.fairness.weight,
        timeout_seconds=config.slurm.timeout,
        batch_size=config.slurm.batch_size,
        bin_directory=config.slurm.bin_directory,
    )


def cluster_of(config: Config, slurm: Slurm) -> str:
    """ClusterName; the configuration's, if it names one, must be Slurm's own.

    Raises:
        ConfigError: they differ.
        SlurmError: Slurm cannot be asked.
    """
    cluster = slurm.cluster()
    if config.slurm.cluster not in {None, cluster}:
        raise ConfigError(
            [
                f"slurm.cluster: {config.slurm.cluster!r} is configured, but Slurm here is "
                f"{cluster!r}; correct the key or leave it out"
            ]
        )
    return cluster


def stored_cluster(config: Config, store: Store) -> str:
    """The cluster whose rows to read, without asking Slurm.

    Raises:
        StoreError: the store holds none, or several and the configuration names none.
    """
    clusters = store.clusters()
    if config.slurm.cluster in clusters:
        return config.slurm.cluster
    if len(clusters) > 1 and config.slurm.cluster is None:
        raise StoreError(
            f"the store holds {', '.join(clusters)}, not one of them alone; "
            "name the one that is meant as slurm.cluster"
        )
    if len(clusters) != 1 or config.slurm.cluster is not None:
        wanted = "" if config.slurm.cluster is None else f", not {config.slurm.cluster}"
        raise StoreError(
            f"the store holds {', '.join(clusters) or 'no cluster yet'}{wanted}; "
            "has the daemon run? `shapleyprio daemon --once` makes a first cycle"
        )
    return clusters[0]


def print_json(value: object) -> None:
    """Prints JSON; integers beyond 64 bits stay whole."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def clock_time(second: int) -> str:
    """A second as people in the local time zone write it."""
    return datetime.fromtimestamp(second, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def print_plan(console: Console, pushes: Sequence[NewPush]) -> None:
    """Prints writes, made or planned: what stands there, what shall, and why."""
    if not pushes:
        console.print("nothing to write")
        return
    table = Table("channel", "target", "organization", "old", "new", "state", "why")
    for push in pushes:
        state = push.state.value if isinstance(push, Push) else "planned"
        cells = (push.channel.value, push.target, push.organization or "nobody")
        table.add_row(*cells, str(push.old), str(push.new), state, push.reason)
    console.print(table)


@contextmanager
def sigterm_unwinds() -> Iterator[None]:
    """Lets SIGTERM end the process as an error would: everything opened is closed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
