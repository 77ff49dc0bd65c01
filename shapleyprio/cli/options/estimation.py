"""Options that say how the policies shapley and live estimate contributions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import Any

import click

from shapleyprio.cli.options.refusals import is_given, refuse
from shapleyprio.cli.options.shared import choice_option, count_option, together
from shapleyprio.cli.options.types import duration, in_units
from shapleyprio.replay.coalitions.options import DEFAULT_ESTIMATION, EXACT_ORGANIZATIONS
from shapleyprio.replay.policies import PREDICTORS, Estimation, heeds, policies_heeding


def heeding(name: str) -> str:
    """Returns in words which policies heed an option."""
    return " and ".join(policies_heeding(name))


estimation_options = together(
    (
        click.option(
            "--recompute",
            type=duration("30s or 5m"),
            default=in_units(DEFAULT_ESTIMATION.recompute),
            show_default=True,
            help=f"How long {heeding('recompute')} use contributions while organizations compete, "
            "before they are recomputed.",
        ),
        count_option(
            "--coalitions",
            default=DEFAULT_ESTIMATION.coalitions,
            help=f"Coalitions that {heeding('coalitions')} value each time with more than "
            f"{EXACT_ORGANIZATIONS} organizations, some more if N is very small; up to "
            f"{EXACT_ORGANIZATIONS}, all are valued.",
        ),
        choice_option(
            "--predictor",
            choices=PREDICTORS,
            help=f"How {heeding('predictor')} predicts the end of unfinished jobs: by the mean of "
            "past jobs that lasted longer, most of them the user's, the mean of the user's last "
            "two, or the time limit.",
        ),
    )
)
"""Adds options; `estimation_parameters` reads them."""

ESTIMATION_FIELDS = tuple(field.name for field in fields(Estimation))


def estimation_parameters(options: dict[str, Any], policies: Collection[str]) -> Estimation:
    """Takes the estimation out of a command's options, and leaves the others there.

    Args:
        options: of the command that is called.
        policies: that it is to run.

    Raises:
        click.UsageError: an option was given that none of the policies heeds.
    """
    for name in ESTIMATION_FIELDS:
        useful = policies_heeding(name)
        refuse(
            (
                is_given(name) and not any(heeds(policy, name) for policy in policies),
                f"--{name} is for {heeding(name)}; add --policy {useful[-1]}",
            )
        )
    return Estimation(**{name: options.pop(name) for name in ESTIMATION_FIELDS})
