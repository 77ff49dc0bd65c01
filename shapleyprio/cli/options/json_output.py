"""`--json [FILE]`: results for machines, the same way in all commands."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from shapleyprio.common.output import write_json as write_json_file
from shapleyprio.common.wording import visible_json

OPTION = "--json"
STDOUT = Path("-")


json_option = click.option(
    OPTION,
    "json_file",
    metavar="[FILE]",
    is_flag=False,
    flag_value=str(STDOUT),
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write the results as JSON: to FILE, or to standard output in place of the text. If an "
    "argument may follow, FILE must end in .json or be given as --json=FILE.",
)
"""Adds --json; the command gets `json_file`: None without the option, or `STDOUT`."""


def write_json(json_file: Path | None, value: object) -> bool:
    """Writes JSON where the option asks for it; integers beyond 64 bits stay whole.

    Args:
        json_file: the option's value; None to write nothing.
        value: what JSON knows.

    Returns:
        Whether standard output is left to people.

    Raises:
        OutputError: the file cannot be written.
    """
    if json_file == STDOUT:
        click.echo(visible_json(value))
        return False
    if json_file is not None:
        write_json_file(json_file, value)
    return True


def with_json_file_marked(
    parent: click.Context, command: click.Command, words: Sequence[str]
) -> list[str]:
    """Returns a command's words with `--json WORD` as `--json=WORD` or as `--json=- WORD`.

    The word is the option's file if it ends in .json, if it is -, or if the command has all its
    arguments without it. Otherwise it is an argument, such as a log, which must not be overwritten:
    where a command takes several, so is whatever is there already.

    Args:
        parent: context of the group that the command belongs to.
        command: that gets the words.
        words: that follow its name.
    """
    if OPTION not in words:
        return list(words)
    index = words.index(OPTION)
    before, following = words[:index], words[index + 1 :]
    if "--" in before:
        return list(words)
    if not following or (following[0].startswith("-") and following[0] != str(STDOUT)):
        return [*before, f"{OPTION}={STDOUT}", *following]
    word, rest = following[0], following[1:]
    if (
        word == str(STDOUT)
        or word.endswith(".json")
        or (
            _has_all_arguments(parent, command, [*before, *rest])
            and not (_takes_several(command) and _may_be_log(word))
        )
    ):
        return [*before, f"{OPTION}={word}", *rest]
    return [*before, f"{OPTION}={STDOUT}", *following]


def _arguments(command: click.Command) -> list[click.Argument]:
    return [found for found in command.params if isinstance(found, click.Argument)]


def _takes_several(command: click.Command) -> bool:
    return any(argument.nargs < 0 for argument in _arguments(command))


def _may_be_log(word: str) -> bool:
    return any(sign in word for sign in ("://", "*", "?", "[")) or os.path.lexists(word)


def _has_all_arguments(parent: click.Context, command: click.Command, words: Sequence[str]) -> bool:
    arguments = _arguments(command)
    if not arguments:
        return True
    context = command.make_context(command.name, list(words), parent=parent, resilient_parsing=True)
    return all(
        context.get_parameter_source(argument.name or "") == ParameterSource.COMMANDLINE
        for argument in arguments
    )
