"""The general experiment: policies × windows × deals over one or more logs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from shapleyprio.experiment.cells import Experiment, ExperimentError
from shapleyprio.experiment.windows import WindowCell, check_policies
from shapleyprio.replay.deal import Shares
from shapleyprio.replay.limits import MOST_REF_ORGANIZATIONS
from shapleyprio.replay.workload import Backfill, Wide

USUAL_POLICIES = ("rand", "directcontr", "fairshare", "utfairshare", "currfairshare", "roundrobin")
GROUPS = ("log", "shares", "organizations", "policy")


def experiment_of(
    logs: Sequence[str],
    *,
    policies: Sequence[str] = USUAL_POLICIES,
    windows: int = 100,
    length: int = 50_000,
    deals: int = 1,
    organizations: Sequence[int] = (5,),
    shares: Sequence[Shares] = ("zipf",),
    processors: int | None = None,
    wide: Wide = "expand",
    backfill: Backfill = "none",
    seed: int = 0,
) -> Experiment:
    """Policies against `ref` in windows drawn at random, every window with deals of its own.

    Args:
        logs: files, or URLs of stores.
        policies: as `WindowCell` names them.
        windows: how many of each log.
        length: of a window, seconds.
        deals: how many of each window.
        organizations: numbers of organizations to deal out to.
        shares: how to deal the processors out.
        processors: how many; None: as many as the log tells.
        wide: what becomes of jobs of several processors.
        backfill: what may pass a rigid job that does not fit.
        seed: of all random draws.

    Raises:
        PolicyError: there is no such policy.
        ExperimentError: two logs have the same name, or Ref cannot have so many organizations.
    """
    check_policies(policies)
    if max(organizations) > MOST_REF_ORGANIZATIONS:
        raise ExperimentError(
            f"{max(organizations)} organizations; policies are held against ref, which takes "
            f"{MOST_REF_ORGANIZATIONS} at most"
        )
    names = [label_of(log) for log in logs]
    if len(set(names)) < len(names):
        raise ExperimentError(f"logs of the same name: {', '.join(sorted(names))}; rename one")
    cells = [
        WindowCell(
            source=source if "://" in source else str(Path(source).resolve()),
            log=name,
            length=length,
            organizations=count,
            shares=share,
            processors=processors,
            policies=tuple(dict.fromkeys(policies)),
            wide=wide,
            backfill=backfill,
            seed=seed,
            window=window,
            deal=deal,
        )
        # the larger numbers of organizations take longest
        for count in sorted(set(organizations), reverse=True)
        for source, name in zip(logs, names, strict=True)
        for share, window, deal in product(shares, range(windows), range(deals))
    ]
    return Experiment(
        name="windows",
        description="Δψ/p_tot against ref, in seconds; "
        f"{windows:,} windows of {length:,} s of each log",
        cells=cells,
        by=GROUPS,
        value="unfairness",
        paired=("log", "shares", "organizations", "window", "deal"),
        inputs=[Path(log) for log in logs if "://" not in log],
        parameters={
            "policies": list(dict.fromkeys(policies)),
            "windows": windows,
            "length": length,
            "deals": deals,
            "organizations": list(organizations),
            "shares": list(shares),
            "processors": processors,
            "wide": wide,
            "backfill": backfill,
            "seed": seed,
        },
    )


def label_of(source: str) -> str:
    """What a log is called in the results: its file's name without what tells its format.

    >>> label_of("logs/LPC-EGEE-2004-1.2-cln.swf.gz")
    'LPC-EGEE-2004-1.2-cln'
    """
    name = Path(source.rpartition("://")[2]).name
    for ending in (".gz", ".xz", ".swf", ".sacct", ".txt", ".db"):
        name = name.removesuffix(ending)
    return name
