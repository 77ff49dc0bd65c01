"""Charts as pictures, drawn without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import vl_convert

from shapleyprio.reports.html.page import Chart, Page, ReportError, Section
from shapleyprio.reports.html.writing import STYLE, VEGA_LITE, rounded

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
