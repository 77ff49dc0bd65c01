"""Pages as HTML that needs nothing but itself, and their charts as pictures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from shapleyprio.common.output import whole_file
from shapleyprio.common.wording import cell, visible
from shapleyprio.reports.html.page import Cell, Chart, Page, ReportError, Section

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


WIDTH = 960
"""Pixels before scaling; a slide is about twice as wide as it is high."""

SCALE = 2

FONT_SIZES: dict[str, Any] = {
    "axis": {**STYLE["axis"], "labelFontSize": 14, "titleFontSize": 14},
    "legend": {**STYLE["legend"], "labelFontSize": 14, "titleFontSize": 14},
    "background": "white",
    "title": {"fontSize": 20, "anchor": "start", "offset": 12},
}


def write_pictures(page: Page, directory: Path) -> list[Path]:
    """Writes every chart as PNG, one for each option that it depends on.

    Args:
        page: whose charts.
        directory: made if it does not exist.

    Returns:
        The files, ``NAME.png`` or ``NAME-OPTION.png``, in the order of the page.

    Raises:
        ReportError: they cannot be written.
    """
    written = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, spec in _pictures(page):
            file = directory / f"{name}.png"
            file.write_bytes(_drawn(spec))
            written.append(file)
    except OSError as error:
        raise ReportError(
            f"{directory}: pictures cannot be written ({error.strerror}); name another directory"
        ) from None
    return written


def _drawn(spec: dict[str, Any]) -> bytes:
    return vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=SCALE, allowed_base_urls=[])


def _pictures(page: Page) -> Iterator[tuple[str, dict[str, Any]]]:
    for section in page.sections:
        if section.chart is None:
            continue
        if page.choice is None or not section.chart.has("choice"):
            yield section.chart.name, _specification(section, section.chart, None)
            continue
        for option in page.choice.options:
            name = f"{section.chart.name}-{re.sub(r'[^A-Za-z0-9]+', '-', option)}"
            yield name, _specification(section, section.chart, option)


def _specification(section: Section, chart: Chart, option: str | None) -> dict[str, Any]:
    chosen = [
        {**parameter, "value": option}
        if option is not None and parameter["name"] == "choice"
        else parameter
        for parameter in chart.spec.get("params", ())
    ]
    columns = [rounded(values) for values in chart.data.values()]
    rows = [dict(zip(chart.data, row, strict=True)) for row in zip(*columns, strict=True)]
    return {
        **chart.spec,
        **({"params": chosen} if chosen else {}),
        "title": section.title if option is None else f"{section.title} ({option})",
        "width": WIDTH,
        "config": {**STYLE, **FONT_SIZES},
        "data": {"values": rows},
    }
