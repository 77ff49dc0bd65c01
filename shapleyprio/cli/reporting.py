"""--report and --png for any command, and the command line that a report is reproduced with."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click
from click.core import ParameterSource

from shapleyprio.cli.workloads import refuse_missing_directories

if TYPE_CHECKING:
    from shapleyprio.report import Page

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """What was asked for on the command line; None where an option was left out.

    Attributes:
        file: of the page.
        pictures: directory of the charts.
        command: what was typed.
    """

    file: Path | None
    pictures: Path | None
    command: str

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> Self:
        """Takes its own out of a command's options, and leaves the others.

        Raises:
            click.BadParameter: the page's directory is missing.
        """
        request = cls(
            file=options.pop("report_file"),
            pictures=options.pop("png_directory"),
            command=command_line(),
        )
        refuse_missing_directories(("--report", request.file))
        return request

    @property
    def wanted(self) -> bool:
        """Whether there is anything to write."""
        return self.file is not None or self.pictures is not None


def report_options(command: AnyCommand) -> AnyCommand:
    """Adds --report and --png; `ReportRequest.taken_from` takes them from the options."""
    pictures = click.option(
        "--png",
        "png_directory",
        metavar="DIRECTORY",
        type=click.Path(path_type=Path, file_okay=False),
        help="Write the report's charts there as pictures.",
    )
    page = click.option(
        "--report",
        "report_file",
        metavar="FILE.html",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write a page about the results there, to look at in a browser.",
    )
    return page(pictures(command))


def publish(request: ReportRequest, page: Callable[[], Page]) -> None:
    """Writes what was asked for.

    Args:
        request: what that is.
        page: makes the page, if one is needed.

    Raises:
        ReplayError: it cannot be written.
    """
    if not request.wanted:
        return
    from shapleyprio.report import write_page, write_pictures

    made = page()
    if request.file is not None:
        write_page(made, request.file)
    if request.pictures is not None:
        write_pictures(made, request.pictures)


def command_line() -> str:
    """The command as it can be typed again, without passwords of stores."""
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
        logs = value if isinstance(value, tuple) else (value,)
        return [without_password(str(log)) for log in logs]
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return [parameter.opts[0]]
    if parameter.multiple:
        return [word for one in value for word in (parameter.opts[0], str(one))]
    if type(value) is tuple:  # --window START:LENGTH
        value = ":".join(map(str, value))
    return [parameter.opts[0], str(value)]


def without_password(text: str) -> str:
    """The text itself, or the URL of a store with its password hidden."""
    if "://" not in text:
        return text
    from sqlalchemy import make_url

    url = make_url(text)
    secret = {key: "***" for key in url.query if "passw" in key.lower()}
    return url.update_query_dict(secret).render_as_string(hide_password=True)
