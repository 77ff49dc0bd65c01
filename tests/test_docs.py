"""The documentation and the code say the same."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from shapleyprio.cli import COMMANDS, main
from shapleyprio.cli.common import EXIT_CODES
from shapleyprio.config import config_reference
from shapleyprio.service.metrics import Metrics
from shapleyprio.service.report import Report
from shapleyprio.store import StandingRow

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SEMANTICS = (ROOT / "docs" / "semantics.md").read_text()


def test_the_reference_of_the_configuration_is_up_to_date() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text()
    assert written == config_reference(), (
        "run: python -m shapleyprio.config > docs/configuration.md"
    )


def test_the_readme_lists_every_command_and_no_other() -> None:
    section = README.split("## Commands")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `shapleyprio (\w+)", section, flags=re.MULTILINE)
    assert listed == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readme_names_only_options_that_exist(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    known = {option for parameter in command.params for option in parameter.opts}
    for line in README.splitlines():
        if line.startswith((f"| `shapleyprio {name}", f"shapleyprio {name} ")):
            named = set(re.findall(r"--[a-z-]+", line.split("  # ")[0]))
            assert named <= known, line


def test_the_readme_lists_every_metric_and_its_labels() -> None:
    metrics = Metrics("c")
    row = StandingRow(
        cycle=1, organization="a", t=1, contribution=1, utility=1, priority=1, pending=1,
        running=1, processors=1, parts=1,
    )  # fmt: skip
    metrics.publish(Report(number=1, standings=[row], seconds={"push": 1.0}))
    section = README.split("## Metrics")[1].split("\n## ")[0]
    table = dict(re.findall(r"^\| `(\w+)` \| ([\w, ]+) \|", section, flags=re.MULTILINE))
    exposed = {}
    for family in text_string_to_metric_families(generate_latest(metrics.registry).decode()):
        if family.name.endswith("_created"):  # when the client library began to count
            continue
        name = family.name + {"counter": "_total", "info": "_info"}.get(family.type, "")
        exposed[name] = {
            label for sample in family.samples for label in sample.labels if label != "le"
        }
    assert {name: set(labels.split(", ")) for name, labels in table.items()} == exposed


def test_the_exit_codes_are_documented() -> None:
    section = SEMANTICS.split("## Exit codes")[1]
    documented = {int(code) for code in re.findall(r"^\| (\d) \|", section, flags=re.MULTILINE)}
    assert documented == {0, 1, *EXIT_CODES.values()}
    assert main.help is not None
    for code in documented:
        assert f"{code} " in main.help


def test_links_in_the_documentation_lead_somewhere() -> None:
    for text, folder in ((README, ROOT), (SEMANTICS, ROOT / "docs")):
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (folder / target).exists(), target
