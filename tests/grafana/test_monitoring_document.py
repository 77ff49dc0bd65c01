"""docs/monitoring.md lists what there is: every metric, dashboard and alert, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from grafana.generate import DASHBOARDS
from shapleyprio.cli.files import command as files
from shapleyprio.lab.cli.demo import command as demo
from tests.grafana.exposition import metrics_and_labels

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "monitoring.md").read_text()
RULES = (ROOT / "grafana" / "alerts" / "shapleyprio.rules.yml").read_text()


def section(heading: str) -> str:
    return TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]


def test_every_metric_is_listed_with_its_labels_beside_cluster() -> None:
    table = re.findall(r"^\| `(\w+)` \| ([\w, ]*)\|", section("Metrics"), flags=re.MULTILINE)
    listed = {name: set(re.findall(r"\w+", labels)) for name, labels in table}
    assert listed == {name: labels - {"cluster"} for name, labels in metrics_and_labels().items()}


def test_every_dashboard_is_listed() -> None:
    listed = re.findall(r"^\| (\w+) \|", section("Dashboards"), flags=re.MULTILINE)
    assert listed[1:] == list(DASHBOARDS)


def test_every_alert_is_listed_with_its_severity() -> None:
    listed = re.findall(r"^\| `(\w+)` \| (\w+) \|", section("Alerts"), flags=re.MULTILINE)
    rules = re.findall(r"- alert: (\w+)$.*?severity: (\w+)$", RULES, re.MULTILINE | re.DOTALL)
    assert listed == rules


def test_the_options_that_are_named_exist() -> None:
    parameters = [*demo.params, *files.params]
    known = {option for parameter in parameters for option in parameter.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", TEXT)) <= known


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (ROOT / "docs" / target).exists(), target
