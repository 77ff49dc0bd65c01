"""`shapleyprio check`."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import click

from shapleyprio.cli.options.json_output import json_option, write_json
from shapleyprio.cli.options.shared import config_option
from shapleyprio.common.wording import visible
from shapleyprio.config import connect, load_config
from shapleyprio.daemon.checking.check import check
from shapleyprio.daemon.checking.check_host import check_host
from shapleyprio.slurm.findings import Finding, Severity

EXIT_CODES = {Severity.ERROR: 3, Severity.WARNING: 1, Severity.NOTICE: 0}


@click.command
@config_option
@click.option(
    "--cluster-independent", is_flag=True, help="Only check the file; do not contact Slurm."
)
@json_option
@click.pass_context
def command(
    context: click.Context, config_path: Path, *, cluster_independent: bool, json_file: Path | None
) -> None:
    """Compare the configuration with the live cluster and this host.

    Run it as the daemon's user: it also finds out whether that user can keep the store where the
    configuration says.

    Exit codes: 0 all is well, though there may be notices; 1 warnings; 2 the configuration
    itself cannot be used; 3 errors.
    """
    config = load_config(config_path)
    found: list[Finding] = []
    if not cluster_independent:
        found = [*check(config, connect(config), int(time.time())), *check_host(config)]
    findings = sorted(found, key=lambda one: list(Severity).index(one.severity))
    counts = Counter(finding.severity for finding in findings)
    numbers = {f"{severity}s": counts[severity] for severity in Severity}
    rows = [asdict(finding) for finding in findings]
    if write_json(json_file, {"findings": rows} | numbers):
        for finding in findings:
            line = f"{finding.subject}: {finding.message}; {finding.remedy}"
            click.echo(visible(f"{finding.severity}: {line}"))
        summary = ", ".join(
            f"{counts[severity]} {severity}{'s' * (counts[severity] != 1)}" for severity in Severity
        )
        click.echo(summary)
    context.exit(max((EXIT_CODES[severity] for severity in counts), default=0))
