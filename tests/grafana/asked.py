"""What the dashboards ask Prometheus for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from grafana.generate import DASHBOARDS, FOLDER


@dataclass(frozen=True, slots=True)
class Asked:
    """A query of a panel.

    Attributes:
        dashboard, panel: where it stands.
        letter: its refId.
        expression: with the dashboard's variables.
        instant: whether it is asked for one moment only.
    """

    dashboard: str
    panel: str
    letter: str
    expression: str
    instant: bool

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.panel} {self.letter}"


def committed(name: str) -> dict[str, Any]:
    """A dashboard as it lies in the repository."""
    loaded: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return loaded


def panels_of(name: str) -> list[dict[str, Any]]:
    """All panels that show something."""
    return [panel for panel in committed(name)["panels"] if panel["type"] != "row"]


def all_asked() -> Iterator[Asked]:
    """Every query of every annotation and panel of every dashboard."""
    for name in DASHBOARDS:
        for mark in committed(name)["annotations"]["list"]:
            yield Asked(name, mark["name"], "annotation", mark["expr"], instant=False)
        for panel in panels_of(name):
            for target in panel["targets"]:
                yield Asked(
                    name, panel["title"], target["refId"], target["expr"], target["instant"]
                )
