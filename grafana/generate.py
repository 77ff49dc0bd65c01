"""Writes the dashboards as JSON: ``python -m grafana.generate``."""

from __future__ import annotations

from pathlib import Path

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from grafana.health import health
from grafana.organization import organization
from grafana.overview import overview

FOLDER = Path(__file__).parent / "dashboards"
DASHBOARDS = {"overview": overview, "organization": organization, "health": health}


def encoded(dashboard: Dashboard) -> str:
    """The JSON that Grafana imports."""
    text = JSONEncoder(sort_keys=True, indent=2, ensure_ascii=False).encode(dashboard.build())
    return f"{text}\n"


def main() -> None:
    """Writes all dashboards."""
    for name, make in DASHBOARDS.items():
        (FOLDER / f"{name}.json").write_text(encoded(make()), encoding="utf-8")


if __name__ == "__main__":
    main()
