"""The files that provision Prometheus and Grafana fit what ships and what the daemon serves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from shapleyprio.common.shipped import shipped_files
from shapleyprio.config import MetricsSection
from tests.grafana.conftest import Promtool

FOLDER = Path(__file__).parents[2] / "grafana"
PROMETHEUS = FOLDER / "prometheus" / "shapleyprio.yml"
DASHBOARDS = FOLDER / "provisioning" / "dashboards" / "shapleyprio.yml"
DATASOURCES = FOLDER / "provisioning" / "datasources" / "shapleyprio.yml"
INSTALLED = "/usr/share/shapleyprio/"
"""Where the Debian package has what ships."""

SHIPPED = [file.name for file in shipped_files()]


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text())


def test_prometheus_collects_from_the_daemons_address_under_the_name_the_alerts_want() -> None:
    (job,) = read(PROMETHEUS)["scrape_configs"]
    rules = (FOLDER / "alerts" / "shapleyprio.rules.yml").read_text()
    assert set(re.findall(r'up{job="(\w+)"}', rules)) == {job["job_name"]}
    assert job["static_configs"] == [{"targets": [MetricsSection.model_fields["address"].default]}]


def test_prometheus_loads_alerts_that_ship() -> None:
    for file in read(PROMETHEUS)["rule_files"]:
        assert file.removeprefix(INSTALLED) in SHIPPED


def test_prometheus_accepts_the_file(promtool: Promtool, tmp_path: Path) -> None:
    config = tmp_path / "prometheus.yml"
    config.write_text(PROMETHEUS.read_text().replace(INSTALLED, f"{FOLDER.parent}/"))
    checked = promtool("check", "config", config)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "1 rule files found" in checked.stdout


def test_grafana_loads_the_dashboards_that_ship() -> None:
    (provider,) = read(DASHBOARDS)["providers"]
    folder = provider["options"]["path"].removeprefix(INSTALLED)
    assert provider["type"] == "file"
    assert len([name for name in SHIPPED if name.startswith(f"{folder}/")]) == 3


def test_grafana_knows_a_prometheus() -> None:
    (source,) = read(DATASOURCES)["datasources"]
    assert source["type"] == "prometheus"
    assert source["url"].startswith("http://127.0.0.1:")
