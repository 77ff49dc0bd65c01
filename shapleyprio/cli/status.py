"""`shapleyprio status`."""

from __future__ import annotations

from pathlib import Path

import click

from shapleyprio.cli.asked_daemon import daemon_to_ask, url_option
from shapleyprio.cli.options.json_output import json_option, write_json
from shapleyprio.cli.options.shared import config_option, pool_option
from shapleyprio.cli.shown.tables import standard_output
from shapleyprio.common.wording import visible
from shapleyprio.daemon.answering.inquiries import MOST_COLUMNS, Inquiry
from shapleyprio.daemon.client import ask


@click.command
@config_option
@url_option
@pool_option
@click.option("--waits", is_flag=True, help="Show how long jobs wait, too.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    config_path: Path,
    url: str | None,
    pool: str | None,
    *,
    waits: bool,
    json_file: Path | None,
) -> None:
    """Show every organization's standing after the last cycle.

    The first organization is served next. For each organization it shows the shares of the
    processors, of all contributions (φ) and of all utilities (ψ); the balance φ − ψ, which gives
    the order; how late or ahead it was in the last replayed window; the priority points of its
    jobs; and the numbers of pending and running jobs. The rule's score is shown if it is not the
    balance, and in a pool over several clusters the balance there. Under the rule shapley it also
    shows the waiting work in the estimate, and the users with the most of it that you may see.
    --json has exact numbers. If pools split the cluster, it shows all, or that of --pool.

    --waits shows, by organization and partition, the waits of jobs that started in the last day,
    the number of pending jobs that could start, and the longest wait among these.

    Exit code 1: the output may be out of date, since no cycle has succeeded for three times
    service.poll_interval and at least a minute, or none yet in one of the pools, or priorities
    have been restored since.

    If you cannot read the daemon's configuration, this asks the daemon at --url, or the one that
    /etc/shapleyprio/client.toml names.
    """
    console = standard_output()
    daemon = daemon_to_ask(context, config_path, url)
    if daemon is not None:
        columns = min(max(console.width, 1), MOST_COLUMNS)
        key = "waits" if waits else "columns"
        answer = ask(daemon, Inquiry("status", key, str(columns), pool))
        if write_json(json_file, answer.value):
            for line in answer.lines:
                click.echo(visible(line))
        context.exit(answer.code)
    from shapleyprio.cli.answers import status_in_store  # takes longer than to ask the daemon

    config, found = status_in_store(config_path, pool)
    if write_json(json_file, found.as_json()):
        found.render(console, config, waits=waits)
    context.exit(found.code)
