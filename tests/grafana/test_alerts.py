"""The alerts fire when they should, and only then; Prometheus' own tool says so."""

from __future__ import annotations

import re
from pathlib import Path

from tests.grafana.conftest import Promtool
from tests.grafana.exposition import everything, metrics_and_labels

FOLDER = Path(__file__).parents[2] / "grafana" / "alerts"
RULES = FOLDER / "shapleyprio.rules.yml"
CASES = sorted(FOLDER.glob("*.test.yml"))


def test_prometheus_finds_nothing_wrong_with_the_metrics(promtool: Promtool) -> None:
    checked = promtool("check", "metrics", stdin=everything())
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_prometheus_accepts_the_rules(promtool: Promtool) -> None:
    checked = promtool("check", "rules", RULES)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_alerts_fire_when_they_should_and_only_then(promtool: Promtool) -> None:
    tested = promtool("test", "rules", *CASES)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_must_not() -> None:
    cases = "".join(file.read_text() for file in CASES)
    for alert in re.findall(r"^      - alert: (\w+)$", RULES.read_text(), re.MULTILINE):
        assert re.search(rf"alertname: {alert}\n +exp_alerts:\n", cases), alert
        assert re.search(rf"alertname: {alert}\n +exp_alerts: \[\]", cases), alert


def test_the_alerts_ask_only_for_metrics_and_labels_that_there_are() -> None:
    exposed = metrics_and_labels()
    asked = re.findall(r"\b(shapleyprio_\w+)(?:\{(.*?)\})?", RULES.read_text())
    assert asked
    for metric, matchers in asked:
        assert set(re.findall(r"(\w+)[=!]~?=?\"", matchers)) <= exposed[metric]
