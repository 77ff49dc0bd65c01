"""docs/status-page.md says what is so."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from shapleyprio.config import MetricsSection
from shapleyprio.daemon.answering.freshness import MISSED_CYCLES, SHORTEST_PATIENCE
from shapleyprio.daemon.serving import checks, overview, server
from shapleyprio.daemon.serving.page import REFRESH_SECONDS
from shapleyprio.store import DriftRow
from tests.daemon.consortium import NAME, NOW, Service
from tests.daemon.forecasting.examples import forecast
from tests.daemon.serving.sites import Served

TEXT = (Path(__file__).parents[3] / "docs" / "status-page.md").read_text()


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
    text: str = found
    return text


def keys(value: Any) -> Any:
    """What there is beside the values: lists of tables count by their first."""
    if isinstance(value, dict):
        return {key: keys(one) for key, one in value.items()}
    is_table = isinstance(value, list) and value and isinstance(value[0], dict)
    return [keys(value[0])] if is_table else None


def test_the_json_has_the_keys_that_are_served(opened: Served, steered: Service) -> None:
    row = DriftRow(
        t=NOW, organization="physics", schedule="recorded", begin=NOW - 604_800, reference="ref",
        utility=-50, fair=0, parts=10,
    )  # fmt: skip
    with steered.store.cluster(NAME).transaction() as transaction:
        transaction.history.save_drifts([row])
        transaction.forecasts.save([], [forecast(9, NOW - 400)])
        transaction.forecasts.note_starts({9: NOW - 300})
    opened.site._checks.once()
    assert keys(json.loads(block("json"))) == keys(opened.ask("/api/status").json)


def test_the_settings_are_those_there_are() -> None:
    settings = tomllib.loads(block("toml"))["metrics"]
    assert settings.keys() == MetricsSection.model_fields.keys()
    MetricsSection(**settings)


def test_the_addresses_and_limits_are_those_there_are(opened: Served) -> None:
    listed = re.findall(r"^\| `(/[\w/]*)`", TEXT, flags=re.MULTILINE)
    assert set(listed) == set(opened.site._server._connections._app._routes)  # type: ignore[union-attr]
    assert (REFRESH_SECONDS, checks.CHECK_SECONDS) == (60, 600)
    assert (MISSED_CYCLES, SHORTEST_PATIENCE) == (3, 60)
    assert "three times `service.poll_interval`, at least a minute" in TEXT
    assert (server.CONNECTIONS, server.CONNECTIONS_OF_ONE) == (256, 128)
    assert (server.REQUEST_SECONDS, server.ANSWER_SECONDS, overview.KEPT_SECONDS) == (10, 90, 2)
    assert (server.AT_ONCE, server.LARGEST_HEAD) == (16, 16 * 1024)
    assert "every 10 minutes" in TEXT
