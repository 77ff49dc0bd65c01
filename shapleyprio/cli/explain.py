"""`shapleyprio explain`."""

from __future__ import annotations

from pathlib import Path

import click

from shapleyprio.cli.answers import explained
from shapleyprio.cli.common import daemon_to_ask, load, url_option
from shapleyprio.cli.options.json_output import json_option, write_json
from shapleyprio.cli.options.shared import config_option
from shapleyprio.common.wording import visible
from shapleyprio.config import connect
from shapleyprio.daemon.answering.inquiries import Inquiry, RecentQueue
from shapleyprio.daemon.client import ask
from shapleyprio.daemon.ledgers import stored_ledgers
from shapleyprio.store import Store


@click.command
@click.argument("jobid", required=False)
@click.option("-u", "--user", metavar="NAME", help="All pending jobs of this user.")
@click.option("-A", "--account", metavar="NAME", help="All pending jobs of this account.")
@config_option
@url_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    jobid: str | None,
    user: str | None,
    account: str | None,
    config_path: Path,
    url: str | None,
    *,
    json_file: Path | None,
) -> None:
    """Explain why the pending job JOBID has its priority, and what would change it.

    With --user or --account instead of JOBID: why those jobs are pending, and which is next. It
    shows why the organization has its rank (under the rule directcontr, how much more or less it
    received than it contributed), which organizations' jobs are ahead, and which would be under
    Slurm's fair share with owned processors as shares. While Slurm is away it shows what the last
    cycle knew.

    If you cannot read the daemon's configuration, this asks the daemon at --url, or the one that
    /etc/shapleyprio/client.toml names. A job is explained to its user, the coordinators of its
    account, and operators of Slurm.
    """
    if sum(name is not None for name in (jobid, user, account)) != 1:
        raise click.UsageError("give one of JOBID, --user and --account")
    inquiry = next(
        Inquiry("explain", key, value)
        for key, value in (("job", jobid), ("user", user), ("account", account))
        if value is not None
    )
    daemon = daemon_to_ask(context, config_path, url)
    if daemon is not None:
        answer = ask(daemon, inquiry)
    else:
        config = load(config_path)
        queue = RecentQueue(connect(config))  # each of the cluster's ledgers looks into it
        with Store.open(config.store.url) as store:
            answer = explained(config, stored_ledgers(config, store), queue, inquiry)
    if write_json(json_file, answer.value):
        for sentence in answer.lines:
            click.echo(visible(sentence))
    context.exit(answer.code)
