"""Attacks on the page and the metrics, over real sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

if TYPE_CHECKING:
    from tests.serving.sites import Served


@pytest.mark.parametrize("kind", ["application/openmetrics-text", "text/plain"])
@pytest.mark.parametrize("version", ["abc", "1.x", "9" * 5000, ".", "-"])
def test_make_the_metrics_fail_by_a_version_that_is_no_number(
    opened: Served, kind: str, version: str
) -> None:
    with capture_logs() as lines:
        answer = opened.ask("/metrics", headers={"Accept": f"{kind};version={version}"})
    assert (answer.status, lines) == (200, [])
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "shapleyprio_build_info" in answer.text
