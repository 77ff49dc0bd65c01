"""Pages as HTML that needs nothing but itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from shapleyprio.common.output import whole_file
from shapleyprio.common.wording import cell, visible
from shapleyprio.reports.html.page import Cell, Chart, Page

VEGA_LITE = "6.4"
"""Release of Vega-Lite that specifications are written for."""

STYLE: dict[str, Any] = {
    "font": "system-ui, 'Liberation Sans', 'DejaVu Sans', sans-serif",
    "background": None,
    "view": {"stroke": None},
    "axis": {
        **{f"{part}Color": "currentColor" for part in ("grid", "domain", "tick", "label", "title")},
        **{f"{part}Opacity": 0.4 for part in ("domain", "tick")},
        "gridOpacity": 0.13,
        "labelFontSize": 11,
    },
    "axisY": {"domain": False, "ticks": False},
    "legend": {"labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 11},
    "text": {"color": "currentColor"},
}
"""What all charts look like, on the page and in pictures, whose text is light on a dark screen."""

DIGITS = 6
"""Significant digits of numbers in charts: more than any screen has pixels."""


def render(page: Page) -> str:
    """Renders the page as HTML with its scripts, styles and data, which needs no network."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters["cell"] = cell
    charts = [section.chart for section in page.sections if section.chart is not None]
    return environment.from_string(_resource("template.html")).render(
        page=page,
        css=Markup(_resource("page.css")),  # noqa: S704  # our own file
        library=Markup(_library()),  # noqa: S704  # Vega's
        script=Markup(_resource("page.js")),  # noqa: S704  # our own file
        data=Markup(_script_data({"style": STYLE, "charts": [_as_json(c) for c in charts]})),  # noqa: S704  # escaped
    )


def write_page(page: Page, file: Path) -> None:
    """Writes the page, whole or not at all.

    Raises:
        OutputError: it cannot be written.
    """
    text = render(page)
    with whole_file(file) as opened:
        opened.write(text)


def rounded(values: Sequence[Cell]) -> list[Cell]:
    """Rounds numbers to as many digits as a chart can show."""
    return [float(f"{v:.{DIGITS}g}") if isinstance(v, float) else v for v in values]


def _as_json(chart: Chart) -> dict[str, Any]:
    return {
        "name": chart.name,
        "spec": chart.spec,
        "data": {field: _packed(values) for field, values in chart.data.items()},
    }


def _packed(values: Sequence[Cell]) -> dict[str, Any] | list[Cell]:
    """Packs a column; names that come again and again are numbered."""
    if not any(isinstance(value, str) for value in values):
        return rounded(values)
    names = list(dict.fromkeys(values))
    place = {name: index for index, name in enumerate(names)}
    return {"names": names, "codes": [place[value] for value in values]}


def _script_data(value: Mapping[str, Any]) -> str:
    """Returns JSON that cannot end the script it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def _library() -> str:
    """Returns Vega, Vega-Lite and vega-embed as one script."""
    bundle = vl_convert.javascript_bundle("window.embed = vegaEmbed;", vl_version=VEGA_LITE)
    return bundle.replace("</script", "<\\/script")


def _resource(name: str) -> str:
    return files("shapleyprio.reports.html").joinpath(name).read_text(encoding="utf-8")
