"""Options that several commands have, each declared once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from shapleyprio.cli.options.types import WINDOW
from shapleyprio.replay.workloads.choices import BACKFILLS, DEFAULT_SEED, SHARES, WIDE

DEFAULT_CONFIG = Path("/etc/shapleyprio/shapleyprio.toml")

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])
Option = Callable[[AnyCommand], AnyCommand]


guarantee_option = click.option(
    "--guarantee",
    metavar="4h",
    help="Also run each policy with this guarantee, as fairness.guarantee of the daemon, under the "
    "name POLICY@4h. With 4h:ahead as fairness.guarantee_ahead.",
)


def together(options: Sequence[Option[Any]]) -> Option[Any]:
    """Returns one decorator for several options, which helps list in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def count_option(
    *names: str,
    help: str,  # noqa: A002
    metavar: str = "N",
    default: int | None = None,
) -> Option[Any]:
    """Returns an option that takes a number from 1 on.

    Args:
        names: of the option, and of its parameter where that has another one.
        help: text without the default.
        metavar: what the number is called.
        default: of the parameter, which is shown; None to show none.
    """
    return click.option(
        *names,
        type=click.IntRange(min=1),
        metavar=metavar,
        default=default,
        show_default=default is not None,
        help=help,
    )


def output_option(
    name: str,
    parameter: str,
    *,
    help: str,  # noqa: A002
    metavar: str | None = None,
) -> Option[Any]:
    """Returns an option that names a file to write."""
    return click.option(
        name,
        parameter,
        metavar=metavar,
        type=click.Path(path_type=Path, dir_okay=False),
        help=help,
    )


pool_option = click.option(
    "--pool", metavar="NAME", help="Pool to take, if several split the cluster."
)
"""Adds --pool; the command gets `pool`, None where it is not given."""


def _reason(_context: click.Context, _parameter: click.Parameter, reason: str | None) -> str | None:
    if reason is None:
        return None
    words = " ".join(reason.split())
    if not words:
        raise click.BadParameter("give a reason: it is shown to all users")
    return words


def reason_option(*, required: bool = True) -> Option[Any]:
    """Returns the option --reason; the command gets `reason`."""
    return click.option(
        "--reason",
        required=required,
        metavar="TEXT",
        callback=_reason,
        help="The reason; it is stored and shown to all users.",
    )


config_option = click.option(
    "--config",
    "config_path",
    # who may not read it is refused by the reader, in one line, or asks the daemon
    type=click.Path(path_type=Path, dir_okay=False, readable=False),
    envvar="SHAPLEYPRIO_CONFIG",
    default=DEFAULT_CONFIG,
    show_default=True,
    show_envvar=True,
    help="Configuration file.",
)
"""Adds --config; the command gets `config_path`."""


# -- which jobs, and how they are scheduled

deal_users_option = count_option(
    "--deal-users",
    metavar="K",
    help="Deal the log's users to K organizations at random instead.",
)

processors_option = count_option(
    "--processors",
    help="Number of processors to deal.  [default: as many as the log says]",
)

seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    metavar="S",
    default=DEFAULT_SEED,
    show_default=True,
    help="Seed of all random draws.",
)

window_option = click.option(
    "--window",
    type=WINDOW,
    metavar="START:LENGTH",
    help="Jobs to take: seconds (or 10d:12h) from the log's first release.  [default: all]",
)


def choice_option(
    *names: str,
    choices: Sequence[str],
    help: str,  # noqa: A002
    has_default: bool = True,
    multiple: bool = False,
) -> Option[Any]:
    """Returns an option for one of several choices, of which the first is the default.

    Args:
        names: of the option, and of its parameter where that has another one.
        choices: what can be chosen.
        help: text without the default.
        has_default: whether the parameter is the default where the option is left out, not None.
        multiple: whether it may be given several times.
    """
    first = choices[:1] if multiple else choices[0]
    return click.option(
        *names,
        type=click.Choice(choices),
        default=first if has_default else None,
        multiple=multiple,
        help=f"{help}  [default: {choices[0]}]",
    )


def processor_shares_option(*names: str, multiple: bool = False) -> Option[Any]:
    """Returns --processor-shares.

    Args:
        names: of the parameter, where it is not the option's.
        multiple: whether it may be given several times; if not, the parameter is None where it is
            left out, since it goes with other options only.
    """
    several = "; given twice, each is a group" if multiple else ""
    return choice_option(
        "--processor-shares",
        *names,
        choices=SHARES,
        help=f"How to deal the processors{several}.",
        has_default=multiple,
        multiple=multiple,
    )


wide_option = choice_option(
    "--wide",
    choices=WIDE,
    help="A job of q processors needs all q at once, or becomes q sequential copies.",
)

backfill_option = choice_option(
    "--backfill",
    choices=BACKFILLS,
    help="Which jobs may pass a rigid job that does not fit.",
)


def cores_option() -> Option[Any]:
    """Returns --cores."""
    return click.option(
        "--cores",
        type=click.IntRange(min=1),
        default=lambda: len(os.sched_getaffinity(0)),
        metavar="N",
        help="Cores to compute on.  [default: all]",
    )
