"""The dashboards are what their source says, ask for what there is, and explain themselves."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from grafana.generate import DASHBOARDS, FOLDER, encoded
from tests.grafana.asked import all_asked, committed, panels_of
from tests.grafana.conftest import Promtool
from tests.grafana.exposition import metrics_and_labels

NAMES = sorted(DASHBOARDS)
PANELS = [(name, panel) for name in NAMES for panel in panels_of(name)]
A_METRIC = re.compile(r"\bshapleyprio_\w+")


def metrics_in(expression: str) -> set[str]:
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in A_METRIC.findall(expression)}


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_json_is_what_the_source_makes(name: str) -> None:
    written = (FOLDER / f"{name}.json").read_text()
    assert written == encoded(DASHBOARDS[name]()), "run: python -m grafana.generate"


def test_no_dashboard_is_without_a_source() -> None:
    assert sorted(file.stem for file in FOLDER.iterdir()) == NAMES


@pytest.mark.parametrize(
    ("name", "panel"), PANELS, ids=[f"{name}: {panel['title']}" for name, panel in PANELS]
)
def test_a_panel_explains_itself(name: str, panel: dict[str, Any]) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert defaults["unit"]
    assert defaults["thresholds"]["steps"][0]["value"] is None
    assert [target["refId"] for target in panel["targets"]] == list(
        "ABCDEFG"[: len(panel["targets"])]
    )


@pytest.mark.parametrize("name", NAMES)
def test_panels_have_their_own_number_and_place(name: str) -> None:
    panels = committed(name)["panels"]
    numbers = [panel["id"] for panel in panels]
    assert len(set(numbers)) == len(numbers)
    for first, other in combinations([panel["gridPos"] for panel in panels], 2):
        assert (
            first["x"] + first["w"] <= other["x"]
            or other["x"] + other["w"] <= first["x"]
            or first["y"] + first["h"] <= other["y"]
            or other["y"] + other["h"] <= first["y"]
        )
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_is_used_and_every_used_one_is_there(name: str) -> None:
    text = (FOLDER / f"{name}.json").read_text()
    used = set(re.findall(r"\$\{?([a-z]+)\b", text))
    assert used == {variable["name"] for variable in committed(name)["templating"]["list"]}


@pytest.mark.parametrize("name", NAMES)
def test_every_query_goes_to_the_chosen_data_source_and_cluster(name: str) -> None:
    for panel in panels_of(name):
        for target in panel["targets"]:
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            for metric in A_METRIC.findall(target["expr"]):
                if metric == "shapleyprio_leader":  # whose cluster is never a pool
                    assert f"{metric} and on (job, instance) " in target["expr"]
                elif metric != "shapleyprio_build_info":  # which has no cluster
                    assert f'{metric}{{cluster="$cluster"' in target["expr"]


def test_changes_are_marked_where_their_value_says_in_milliseconds() -> None:
    for name in DASHBOARDS:
        (mark,) = committed(name)["annotations"]["list"]
        assert mark["useValueForTime"] is True
        assert mark["expr"].startswith("1000 * shapleyprio_change_timestamp_seconds{")
        assert mark["textFormat"] == "{{what}}"
        assert mark["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_the_dashboards_ask_for_every_metric_and_for_no_other() -> None:
    asked = set[str]().union(*(metrics_in(asked.expression) for asked in all_asked()))
    assert asked == set(metrics_and_labels())


@pytest.mark.parametrize("cluster", ["c1", "c1/gpu"])
def test_who_steers_is_shown_of_a_pool_as_of_a_cluster(
    promtool: Promtool, tmp_path: Path, cluster: str
) -> None:
    (expression,) = (
        asked.expression for asked in all_asked() if asked.panel == "Daemons that steer"
    )
    daemons = {"a": (1, cluster), "b": (0, cluster), "c": (1, "c2")}
    series = [
        {"series": f'{metric},job="shapleyprio",instance="{instance}"}}', "values": f"{value}x9"}
        for instance, (leads, ledger) in daemons.items()
        for metric, value in (
            (f'shapleyprio_leader{{cluster="{ledger.partition("/")[0]}"', leads),
            (f'shapleyprio_cycles_total{{cluster="{ledger}",outcome="ok"', 7),
            (f'shapleyprio_cycles_total{{cluster="{ledger}",outcome="defect"', 0),
        )
    ]
    asked = {
        "expr": expression.replace("$cluster", cluster),
        "eval_time": "5m",
        "exp_samples": [{"labels": "{}", "value": 1}],
    }
    file = tmp_path / "case.yml"
    file.write_text(json.dumps({"tests": [{"input_series": series, "promql_expr_test": [asked]}]}))
    tested = promtool("test", "rules", file)
    assert tested.returncode == 0, tested.stdout + tested.stderr
