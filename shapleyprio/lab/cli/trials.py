"""`shapleyprio trials`: its options; what it does is in `shapleyprio.lab.cli.trialling`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from shapleyprio.cli.common import termination_unwinds
from shapleyprio.cli.options.json_output import json_option
from shapleyprio.cli.options.refusals import (
    packages_needed,
    refuse,
    refuse_missing_directories,
    refuse_the_same_file,
)
from shapleyprio.lab.cli.options import (
    OF_A_CLUSTER_SECONDS,
    directory_option,
    keep_option,
    side_by_side_option,
)
from shapleyprio.lab.cli.parameters import ListedTrial, TrialsParameters
from shapleyprio.lab.cli.trial import command as trial
from shapleyprio.lab.cli.trial import trial_parameters

NAME = "name"
NOT_FOR_LISTS = frozenset({"side-by-side", "repeat", "keep", "directory", "json"})
"""Options of `shapleyprio trial` that hold for the whole list."""


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
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="How often to run each trial.",
)
@keep_option("trials (NAME.json, NAME.2.json and so on)", required=True)
@side_by_side_option()
@directory_option
@json_option
def command(trial_list: Path, logs: Path, **options: Any) -> None:
    """Run the trials of LIST, and show them in one table.

    LIST is a TOML file with a table [[trial]] for each one. Its keys are `name`, `log` and the
    options of `shapleyprio trial`; keys before the first table apply to all:

    \b
    deal-users = 5
    arm = ["slurm-fairshare", "shapleyprio-site-factor"]
    [[trial]]
    name = "LPC-1"
    log = "LPC-EGEE-2004-1.2-cln.swf.gz"
    processors = 70
    window = "17770000:40000"

    With --repeat, first each trial is run once, then each again; the table shows the mean of the
    runs, and the least and the most. A trial's results are kept when its last arm has ended.
    After an interruption the same command continues with the others.
    """  # noqa: D301 - click looks for the character \b
    parameters = TrialsParameters(trials=tuple(trials_in(trial_list, logs)), **options)
    refuse_the_same_file(("--json", parameters.json_file), read=[("LIST", trial_list)])
    refuse_missing_directories(("--json", parameters.json_file))
    with packages_needed("trials", "trial"):
        from shapleyprio.lab.cli.trialling import trials
    with termination_unwinds(OF_A_CLUSTER_SECONDS):
        trials(parameters)


def trials_in(file: Path, logs: Path) -> list[ListedTrial]:
    """Reads a list.

    Raises:
        click.UsageError: it is not one; the message says where, and why.
    """
    try:
        defaults = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file}: {error}") from None
    tables = defaults.pop("trial", [])
    if not isinstance(tables, list) or not tables:
        raise click.UsageError(f"{file}: there is no table [[trial]]")
    listed: list[ListedTrial] = []
    for number, table in enumerate(tables, start=1):
        keys = {**defaults, **table}
        try:
            listed.append(_listed(keys, logs))
            refuse(
                (
                    listed[-1].name in {other.name for other in listed[:-1]},
                    f"name: {listed[-1].name} is also another trial's",
                )
            )
        except click.ClickException as error:
            where = keys.get(NAME, number)
            raise click.UsageError(f"{file}: trial {where}: {error.format_message()}") from None
    return listed


def _listed(keys: Mapping[str, Any], logs: Path) -> ListedTrial:
    options = dict(keys)
    name, log = (options.pop(key, None) for key in (NAME, "log"))
    refuse(
        (
            not isinstance(name, str) or not name or name != Path(name).name or "." in name,
            "name: it needs one fit for a file name, without a dot",
        ),
        (not isinstance(log, str), "log: it needs one"),
        *((key in NOT_FOR_LISTS, f"{key}: give it as an option of the command") for key in options),
    )
    arguments = [str(logs / str(log))]
    for key, value in options.items():
        for single in value if isinstance(value, list) else [value]:
            arguments += [f"--{key}"] if single is True else [f"--{key}", str(single)]
    # A command keeps its option for help, with the names it had at first: these lists have none.
    context = trial.make_context("trial", arguments, help_option_names=[])
    parameters = trial_parameters({**context.params, "json_file": Path(f"{name}.json")})
    return ListedTrial(name=str(name), keys=keys, parameters=parameters)
