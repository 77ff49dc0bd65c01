"""--report and --png for any command, and the command line that a report is reproduced with."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from shapleyprio.cli.options.json_output import OPTION
from shapleyprio.cli.options.parameters import ReportParameters
from shapleyprio.cli.options.refusals import packages_needed, refuse_missing_directories
from shapleyprio.cli.options.shared import output_option, together

if TYPE_CHECKING:
    from shapleyprio.reports import Page


HTML = ".html"
"""How the name of a page's file ends."""


def report_parameters(options: dict[str, Any]) -> ReportParameters:
    """Takes what makes a report out of a command's options, and leaves the others there.

    Raises:
        click.BadParameter: the page's directory is missing, or its name ends in something else.
    """
    parameters = ReportParameters(
        file=options.pop("report_file"),
        pictures=options.pop("png_directory"),
        command=command_line(),
    )
    if parameters.file is not None and parameters.file.suffix.lower() != HTML:
        raise click.BadParameter(
            f"{parameters.file} is no HTML; name a file that ends in {HTML}",
            param_hint="--report",
        )
    refuse_missing_directories(("--report", parameters.file))
    return parameters


def check_report_packages(parameters: ReportParameters) -> None:
    """Finds out before anything is computed whether a report, if wanted, can be made."""
    if parameters.wanted:
        with packages_needed("--report", "report"):
            import shapleyprio.reports  # noqa: F401


report_options = together(
    (
        output_option(
            "--report",
            "report_file",
            metavar="FILE.html",
            help="Write a page about the results there, for a browser or a printer.",
        ),
        click.option(
            "--png",
            "png_directory",
            metavar="DIRECTORY",
            type=click.Path(path_type=Path, file_okay=False),
            help="Write the report's charts there as pictures.",
        ),
    )
)
"""Adds --report and --png; `report_parameters` reads them."""


def publish(parameters: ReportParameters, page: Callable[[], Page]) -> None:
    """Writes the page and the pictures that are wanted.

    Args:
        parameters: what to write.
        page: makes the page, if one is needed.

    Raises:
        ReplayError, OutputError: it cannot be made or written.
    """
    if not parameters.wanted:
        return
    from shapleyprio.reports import write_page, write_pictures

    finished = page()
    if parameters.file is not None:
        write_page(finished, parameters.file)
    if parameters.pictures is not None:
        write_pictures(finished, parameters.pictures)


def command_line() -> str:
    """Returns the command as it can be typed again, without passwords of stores."""
    context = click.get_current_context()
    words = ["shapleyprio", context.info_name or ""]
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) in {
            ParameterSource.COMMANDLINE,
            ParameterSource.ENVIRONMENT,
        }:
            words += _typed(parameter, context.params[name])
    return shlex.join(words)


def _typed(parameter: click.Parameter, value: Any) -> list[str]:
    if isinstance(parameter, click.Argument):
        from shapleyprio.common.databases import without_password  # it takes a moment

        logs = value if isinstance(value, tuple) else (value,)
        return [without_password(str(log)) for log in logs]
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return [parameter.opts[0]]
    if parameter.multiple:
        return [word for single in value for word in (parameter.opts[0], str(single))]
    if type(value) is tuple:  # --window START:LENGTH
        value = ":".join(map(str, value))
    if OPTION in parameter.opts:
        return [f"{parameter.opts[0]}={value}"]  # its value may be left out, and a word follow
    return [parameter.opts[0], str(value)]
