"""The general experiment: policies × windows × deals over one or more logs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, replace
from itertools import product
from pathlib import Path

from shapleyprio.common.databases import without_password
from shapleyprio.common.wording import duration
from shapleyprio.lab.experiment.cells import (
    CellParameters,
    Experiment,
    ExperimentError,
    Share,
    WindowsParameters,
)
from shapleyprio.lab.experiment.windows import WindowCell, check_policies
from shapleyprio.replay.engine.limits import MOST_REF_ORGANIZATIONS
from shapleyprio.replay.policies import COMPARED, POLICIES
from shapleyprio.replay.policies.registry import RULE

GROUPS = ("log", "shares", "organizations", "policy")


def windows_experiment(logs: Sequence[str], parameters: WindowsParameters) -> Experiment:
    """Makes an experiment: policies against `ref` in windows drawn at random, each with its deal.

    Args:
        logs: files, or URLs of stores.
        parameters: of windows, deals and policies.

    Raises:
        PolicyError: there is no such policy.
        ExperimentError: two logs have the same name, or Ref cannot have so many organizations.
    """
    parameters = replace(parameters, policies=tuple(dict.fromkeys(parameters.policies)))
    most = max(parameters.organizations)
    check_policies(parameters.policies)
    if most > MOST_REF_ORGANIZATIONS:
        raise ExperimentError(
            f"{most} organizations; policies are compared with ref, which takes "
            f"{MOST_REF_ORGANIZATIONS} at most"
        )
    names = [label_of(log) for log in logs]
    if len(set(names)) < len(names):
        raise ExperimentError(f"logs of the same name: {', '.join(sorted(names))}; rename one")
    in_common = {field.name: getattr(parameters, field.name) for field in fields(CellParameters)}
    cells = [
        WindowCell(
            source=source if "://" in source else str(Path(source).resolve()),
            log=name,
            organizations=count,
            shares=share,
            window=window,
            deal=deal,
            **in_common,
        )
        # the larger numbers of organizations take longest
        for count in sorted(set(parameters.organizations), reverse=True)
        for source, name in zip(logs, names, strict=True)
        for share, window, deal in product(
            parameters.shares, range(parameters.windows), range(parameters.deals)
        )
    ]
    return Experiment(
        name="windows",
        description="Δψ/p_tot against ref, in seconds; "
        f"{parameters.windows:,} {_kind(parameters)} of {duration(parameters.length)} of each log",
        cells=cells,
        by=GROUPS,
        value="unfairness",
        paired=("log", "shares", "organizations", "window", "deal"),
        share=Share("out of turn", part="out_of_turn", whole="contested"),
        inputs=[
            *(Path(log) for log in logs if "://" not in log),
            *_files_of(parameters.policies),
        ],
        parameters=_flat(parameters),
    )


def _flat(parameters: WindowsParameters) -> dict[str, object]:
    own = {name: value for name, value in asdict(parameters).items() if name != "estimation"}
    return own | asdict(parameters.estimation)


def _kind(parameters: WindowsParameters) -> str:
    if parameters.contended is None:
        return "windows"
    return f"windows with at least {duration(parameters.contended)} under {' or '.join(COMPARED)}"


def label_of(source: str) -> str:
    """Returns a log's name in the results: its file's name without the endings for its format.

    A store is named by its database.

    >>> label_of("logs/LPC-EGEE-2004-1.2-cln.swf.gz")
    'LPC-EGEE-2004-1.2-cln'
    """
    name = Path(without_password(source)).name
    if "://" in source:
        name = name.partition("?")[0]
    for ending in (".gz", ".xz", ".zst", ".swf", ".sacct", ".json", ".txt", ".db"):
        name = name.removesuffix(ending)
    return name


def _files_of(policies: Iterable[str]) -> list[Path]:
    """Returns the files of the users' functions by which policies decide.

    Args:
        policies: names of which `policy_named` has found each.
    """
    plain = (name.partition("@")[0] for name in policies)
    modules = {name.partition(":")[0] for name in plain if ":" in name} - {*POLICIES, RULE}
    files = (getattr(sys.modules.get(module), "__file__", None) for module in sorted(modules))
    return [Path(file) for file in files if file]
