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
from shapleyprio.service.explain import explain
from shapleyprio.store import Store


@click.command
@click.argument("jobid")
@config_option
@json_option
def command(jobid: str, config_path: Path, *, as_json: bool) -> None:
    """Tell why the waiting job JOBID has its priority, and what would change it."""
    config = load(config_path)
    with Store.open(config.store.url) as store:
        explanation = explain(
            store,
            stored_cluster(config, store),
            connect(config),
            jobid,
            influence=config.push.influence,
        )
    if as_json:
        print_json(explanation.as_json())
    else:
        for sentence in explanation.sentences():
            click.echo(sentence)
