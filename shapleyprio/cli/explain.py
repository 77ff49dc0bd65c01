"""`shapleyprio explain`."""

from __future__ import annotations

from pathlib import Path

import click

from shapleyprio.cli.common import (
    load,
    stored_cluster,
)
from shapleyprio.cli.explaining import sentences_on_job, sentences_on_jobs
from shapleyprio.cli.json_output import json_option, write_json
from shapleyprio.cli.options import config_option
from shapleyprio.config import connect
from shapleyprio.service.explain import explain_account, explain_job, explain_user
from shapleyprio.service.explain_facts import JobExplanation, JobsExplanation
from shapleyprio.store import Store
from shapleyprio.wording import visible


@click.command
@click.argument("jobid", required=False)
@click.option("-u", "--user", metavar="NAME", help="All jobs of this user that wait.")
@click.option("-A", "--account", metavar="NAME", help="All jobs of this account that wait.")
@config_option
@json_option
def command(
    jobid: str | None,
    user: str | None,
    account: str | None,
    config_path: Path,
    *,
    json_file: Path | None,
) -> None:
    """Explain why the waiting job JOBID has its priority, and what would change it.

    With --user or --account instead of JOBID: why those jobs wait, and which is next. Shown are
    why the organization has its rank (under the rule directcontr, how much more or less it
    received than it contributed), whose jobs are ahead, and whose would be under Slurm's fair
    share with the processors owned as shares. While Slurm is away the answer is what the last
    cycle knew.
    """
    if sum(name is not None for name in (jobid, user, account)) != 1:
        raise click.UsageError("give one of JOBID, --user and --account")
    config = load(config_path)
    influence = config.push.influence
    with Store.open(config.store.url) as store:
        known = (stored_cluster(config, store), connect(config))
        facts: JobExplanation | JobsExplanation
        if jobid is not None:
            facts = explain_job(*known, jobid)
            sentences = sentences_on_job(facts, influence)
        elif user is not None:
            facts = explain_user(*known, user)
            sentences = sentences_on_jobs(facts, influence)
        else:
            facts = explain_account(*known, account or "")
            sentences = sentences_on_jobs(facts, influence)
    value = {**facts.as_json(), "influence": influence or "strict", "sentences": sentences}
    if write_json(json_file, value):
        for sentence in sentences:
            click.echo(visible(sentence))
