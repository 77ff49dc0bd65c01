"""`shapleyprio trials`: its options; what it does is in `shapleyprio.cli.trialling_many`."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from shapleyprio.cli import trial
from shapleyprio.cli.common import sigterm_unwinds
from shapleyprio.cli.extras import packages_needed
from shapleyprio.cli.workloads import json_file_option, refuse, refuse_missing_directories

NAME = "name"
NOT_FOR_LISTS = frozenset({"side-by-side", "keep", "json"})
"""Options of `shapleyprio trial` that are the whole list's, not one trial's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One trial of a list.

    Attributes:
        name: of its file of results.
        asked: its keys in the list, as they were written.
        request: what they ask for.
    """

    name: str
    asked: Mapping[str, Any]
    request: trial.Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line.

    Attributes:
        trials: in the order of the list.
        results: directory for what each trial found out.
        side_by_side: how many arms run at once.
        keep: directory for logs and databases.
        json_file: what to write.
    """

    trials: tuple[Listed, ...]
    results: Path
    side_by_side: int
    keep: Path | None
    json_file: Path | None


@click.command
@click.argument(
    "trial_list", metavar="LIST", type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option(
    "--logs",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    help="Where the logs are that the list names.  [default: here]",
)
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Write each trial's results there as NAME.json; what is there is not run again.",
)
@click.option(
    "--side-by-side",
    type=click.IntRange(min=1),
    default=2,
    metavar="N",
    show_default=True,
    help="How many arms to run at once, of whichever trial.",
)
@trial.keep_option
@json_file_option
def command(trial_list: Path, logs: Path, **options: Any) -> None:
    """Run the trials of LIST, and show them in one table.

    LIST is a TOML file with a table [[trial]] for each one. Its keys are `name`, `log` and the
    options of `shapleyprio trial`; keys before the first table hold for all:

    \b
    deal-users = 5
    arm = ["slurm-fairshare", "shapleyprio-site-factor"]
    [[trial]]
    name = "LPC-1"
    log = "LPC-EGEE-2004-1.2-cln.swf.gz"
    processors = 70
    window = "17770000:40000"

    A trial's results are kept when its last arm has ended. Interrupted, the same command goes on
    with the others.
    """  # noqa: D301 - click looks for the character \b
    request = Request(trials=tuple(trials_in(trial_list, logs)), **options)
    refuse(trial.in_use(request.keep))
    refuse_missing_directories(("--json", request.json_file))
    with packages_needed("trials", "trial"):
        from shapleyprio.cli.trialling_many import trials
    try:
        with sigterm_unwinds():
            trials(request)
    except KeyboardInterrupt:
        sys.exit(130)


def trials_in(file: Path, logs: Path) -> list[Listed]:
    """Reads a list.

    Raises:
        click.UsageError: it is not one; the message says where, and why.
    """
    try:
        told = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file}: {error}") from None
    tables = told.pop("trial", [])
    if not isinstance(tables, list) or not tables:
        raise click.UsageError(f"{file}: there is no table [[trial]]")
    listed: list[Listed] = []
    for number, table in enumerate(tables, start=1):
        asked = {**told, **table}
        try:
            listed.append(_listed(asked, logs))
            refuse(
                (
                    listed[-1].name in {one.name for one in listed[:-1]},
                    f"name: {listed[-1].name} is another trial's, too",
                )
            )
        except click.ClickException as error:
            where = asked.get(NAME, number)
            raise click.UsageError(f"{file}: trial {where}: {error.format_message()}") from None
    return listed


def _listed(asked: Mapping[str, Any], logs: Path) -> Listed:
    options = dict(asked)
    name, log = (options.pop(key, None) for key in (NAME, "log"))
    refuse(
        (
            not isinstance(name, str) or not name or name != Path(name).name,
            "name: it needs one that can be a file's",
        ),
        (not isinstance(log, str), "log: it needs one"),
        *((key in NOT_FOR_LISTS, f"{key}: this is said to the command") for key in options),
    )
    arguments = [str(logs / str(log))]
    for key, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            arguments += [f"--{key}"] if one is True else [f"--{key}", str(one)]
    # A command keeps its option for help, with the names it had at first: these lists have none.
    context = trial.command.make_context("trial", arguments, help_option_names=[])
    request = trial.request_of({**context.params, "json_file": Path(f"{name}.json")})
    return Listed(name=str(name), asked=asked, request=request)
