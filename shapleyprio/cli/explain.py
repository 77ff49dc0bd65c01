"""`shapleyprio explain`."""

from __future__ import annotations

from pathlib import Path

import click

from shapleyprio.cli.common import (
    config_option,
    connect,
    json_option,
    load,
    print_json,
    stored_cluster,
)
from shapleyprio.cli.explaining import sentences_on_job, sentences_on_jobs
from shapleyprio.service.explain import explain_account, explain_job, explain_user
from shapleyprio.service.explain_facts import JobExplanation, JobsExplanation
from shapleyprio.store import Store


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
    as_json: bool,
) -> None:
    """Tell why the waiting job JOBID has its priority, and what would change it.

    With --user or --account instead of JOBID: why those jobs wait, and which is next. Told are
    how much more (or less) the organization received than it contributed, whose jobs are ahead,
    and whose would be under Slurm's fair share with the processors owned as shares. While Slurm
    is away the answer is what the last cycle knew.
    """
    if sum(one is not None for one in (jobid, user, account)) != 1:
        raise click.UsageError("give one of JOBID, --user and --account")
    config = load(config_path)
    influence = config.push.influence
    with Store.open(config.store.url) as store:
        known = (store, stored_cluster(config, store), connect(config))
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
    if as_json:
        print_json({**facts.as_json(), "influence": influence or "strict", "sentences": sentences})
    else:
        for sentence in sentences:
            click.echo(sentence)
