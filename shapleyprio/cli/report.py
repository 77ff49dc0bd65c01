"""`shapleyprio report`: its options; what it does is in `shapleyprio.cli.offline.monthly`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from shapleyprio.cli.options.refusals import is_given, packages_needed, refuse
from shapleyprio.cli.options.shared import config_option, cores_option
from shapleyprio.cli.options.types import MONTH, Month, month_before
from shapleyprio.config import load_config


@click.command
@click.argument(
    "file", metavar="[EXPORT]", required=False, type=click.Path(path_type=Path, dir_okay=False)
)
@config_option
@click.option(
    "--month",
    type=MONTH,
    help="Month to report, such as 2026-10.  [default: the one before this]",
)
@click.option(
    "--output",
    "directory",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory for the files; it is created if missing.",
)
@cores_option()
def command(
    file: Path | None, config_path: Path, month: Month | None, directory: Path, cores: int
) -> None:
    """Write how fair a month was, from the daemon's store or what `shapleyprio export` wrote.

    Written are CLUSTER-MONTH.html and CLUSTER-MONTH.json. The first page is for those who decide:
    how fair the month was, whose work came too late, what to do, and the same figures of the month
    before. Where pools split the cluster, each has files of its own, CLUSTER-POOL-MONTH; a pool
    over several clusters is one game, and has POOL-MONTH.

    What was executed in the month counts, in this machine's time zone. The store keeps runs for
    service.keep_runs.
    """
    refuse((file is not None and is_given("config_path"), "EXPORT and --config: give one"))
    config = load_config(config_path) if file is None else None
    with packages_needed("report", "replay"):
        from shapleyprio.cli.offline.monthly import write_reports, write_reports_of_export
    with packages_needed("report", "report"):
        import shapleyprio.reports  # noqa: F401
    month = month or month_before(int(time.time()))
    if file is not None:
        write_reports_of_export(file, month, directory, cores=cores)
    elif config is not None:
        write_reports(config, config_path, month, directory, cores=cores)
