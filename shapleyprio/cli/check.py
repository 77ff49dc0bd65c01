"""`shapleyprio check`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shapleyprio.cli.common import config_option, connect, json_option, load, print_json
from shapleyprio.service.check import Finding, Severity, check
from shapleyprio.serving.security import read_security

COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTICE: "cyan"}
EXIT_CODES = {Severity.ERROR: 3, Severity.WARNING: 1, Severity.NOTICE: 0}


@click.command
@config_option
@json_option
@click.pass_context
def command(context: click.Context, config_path: Path, *, as_json: bool) -> None:
    """Hold the configuration against the live cluster.

    Exit codes: 0 all is well, though there may be notices; 1 warnings; 2 the configuration
    itself cannot be used; 3 errors.
    """
    config = load(config_path)
    read_security(config.metrics)
    findings = check(config, connect(config), int(time.time()))
    counts = Counter(finding.severity for finding in findings)
    if as_json:
        told = [asdict(finding) for finding in findings]
        print_json({"findings": told} | {f"{one}s": counts[one] for one in Severity})
    else:
        render(Console(), findings)
        summary = ", ".join(f"{counts[one]} {one}{'s' * (counts[one] != 1)}" for one in Severity)
        click.echo(summary)
    context.exit(max((EXIT_CODES[severity] for severity in counts), default=0))


def render(console: Console, findings: Sequence[Finding]) -> None:
    """Prints a table on a terminal, else one line for each finding."""
    if not console.is_terminal:
        for one in findings:
            click.echo(f"{one.severity}: {one.subject}: {one.message}; {one.remedy}")
    elif findings:
        table = Table("severity", "subject", "what was found", "what to do", show_lines=True)
        for one in findings:
            severity = Text(one.severity, style=COLOURS[one.severity])
            table.add_row(severity, Text(one.subject), Text(one.message), Text(one.remedy))
        console.print(table)
