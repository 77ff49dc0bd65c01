"""`shapleyprio explain`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from shapleyprio.cli.asked_daemon import daemon_of, daemon_to_ask, url_option
from shapleyprio.cli.options.json_output import json_option, write_json
from shapleyprio.cli.options.shared import config_option
from shapleyprio.cli.options.types import Parsed, slurm_time
from shapleyprio.common.wording import visible
from shapleyprio.daemon.answering.inquiries import AskedJob, Inquiry, InquiryAnswer
from shapleyprio.daemon.client import ask


@click.command
@click.argument("jobid", required=False)
@click.option("-u", "--user", metavar="NAME", help="All pending jobs of this user.")
@click.option("-A", "--account", metavar="NAME", help="All pending jobs of this account.")
@click.option("--what-if", is_flag=True, help="A job submitted now; needs the next three options.")
@click.option("--time", type=Parsed("limit", slurm_time), help="Its time limit, as sbatch's.")
@click.option("--processors", type=click.IntRange(min=1), help="How many.")
@click.option("--partition", metavar="NAME", help="Its partition.")
@config_option
@url_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    jobid: str | None,
    user: str | None,
    account: str | None,
    time: int | None,
    processors: int | None,
    partition: str | None,
    config_path: Path,
    url: str | None,
    *,
    what_if: bool,
    json_file: Path | None,
) -> None:
    """Explain why the pending job JOBID has its priority, and what would change it.

    With --user or --account instead of JOBID: why those jobs are pending, and which is next. It
    shows why the organization has its rank (under the rule directcontr, how much more or less it
    received than it contributed), which organizations' jobs are ahead, and which would be under
    Slurm's fair share with owned processors as shares. While Slurm is away it shows what the last
    cycle knew.

    With --what-if: when a job would start that is submitted now for --account, or for your default
    one. This always asks the daemon.

    If you cannot read the daemon's configuration, this asks the daemon at --url, or the one that
    /etc/shapleyprio/client.toml names. A job is explained to its user, the coordinators of its
    account, and operators of Slurm.
    """
    asked = (time, processors, partition)
    if not what_if and asked != (None, None, None):
        raise click.UsageError("--time, --processors and --partition go with --what-if")
    if not what_if:
        inquiry = _about({"job": jobid, "user": user, "account": account})
    elif None not in asked and jobid is None and user is None:
        inquiry = _about_one_more(time or 0, processors or 0, partition or "", account or "")
    else:
        raise click.UsageError(
            "--what-if needs --time, --processors and --partition, and takes --account"
        )
    daemon = daemon_to_ask(context, config_path, url)
    if daemon is None and what_if:  # what waits is known to the daemon alone
        daemon = daemon_of(config_path)
    answer = ask(daemon, inquiry) if daemon else _explained_by_store(config_path, inquiry)
    if write_json(json_file, answer.value):
        for sentence in answer.lines:
            click.echo(visible(sentence))
    context.exit(answer.code)


def _explained_by_store(config_path: Path, inquiry: Inquiry) -> InquiryAnswer:
    from shapleyprio.cli.answers import explained_by_store  # takes longer than to ask the daemon

    return explained_by_store(config_path, inquiry)


def _about(named: Mapping[str, str | None]) -> Inquiry:
    given = [(key, value) for key, value in named.items() if value is not None]
    if len(given) != 1:
        raise click.UsageError("give one of JOBID, --user, --account and --what-if")
    return Inquiry("explain", *given[0])


def _about_one_more(limit: int, processors: int, partition: str, account: str) -> Inquiry:
    job = AskedJob(limit=limit, processors=processors, partition=partition, account=account)
    inquiry = Inquiry("explain", "what_if", job.as_text())
    try:
        inquiry.check()
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return inquiry
