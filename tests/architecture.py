"""Draws the layers of the import contracts: `python -m tests.architecture`.

The contracts in pyproject.toml say which package may import which. The picture in
docs/architecture.md is drawn from them, so that it cannot say anything else.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "architecture.svg"

WIDTH, MARGIN = 720, 20
BOX, GAP = 40, 16
"""Height of a layer and the space between two, in pixels."""

Layers = tuple[tuple[str, ...], ...]


def layers() -> Layers:
    """Returns the packages of every layer of the first import contract, the highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = (
        contract
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract.get("containers") == ["shapleyprio"]
    )
    return tuple(
        tuple(name.strip(" ()") for name in layer.split("|")) for layer in contract["layers"]
    )


def drawing(rows: Layers) -> str:
    """Returns the layers as text of an SVG file, a row of boxes for each.

    Args:
        rows: the packages of every layer, the highest first.
    """
    height = 2 * MARGIN + len(rows) * BOX + (len(rows) - 1) * GAP
    svg = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {WIDTH} {height}",
            "width": str(WIDTH),
            "height": str(height),
            "font-family": "sans-serif",
            "font-size": "15",
            "role": "img",
        },
    )
    ET.SubElement(svg, "title").text = "Layers of shapleyprio; imports point downwards"
    ET.SubElement(svg, "rect", {"width": str(WIDTH), "height": str(height), "fill": "#ffffff"})
    for number, names in enumerate(rows):
        _draw_row(svg, names, MARGIN + number * (BOX + GAP))
    _draw_arrow(svg, height)
    ET.indent(svg)
    return ET.tostring(svg, encoding="unicode") + "\n"


def _draw_row(svg: ET.Element, names: Sequence[str], top: int) -> None:
    left = 3 * MARGIN
    width = (WIDTH - left - MARGIN - GAP * (len(names) - 1)) // len(names)
    for number, name in enumerate(names):
        x = left + number * (width + GAP)
        box = {"x": str(x), "y": str(top), "width": str(width), "height": str(BOX), "rx": "6"}
        ET.SubElement(svg, "rect", {**box, "fill": "#e8f0f8", "stroke": "#34587c"})
        middle = {"x": str(x + width // 2), "y": str(top + BOX // 2 + 5)}
        text = ET.SubElement(svg, "text", {**middle, "text-anchor": "middle", "fill": "#10233a"})
        text.text = name


def _draw_arrow(svg: ET.Element, height: int) -> None:
    x, tip = 3 * MARGIN // 2, height - MARGIN
    line = {"stroke": "#34587c", "stroke-width": "2", "fill": "none"}
    path = f"M{x} {MARGIN}V{tip}M{x - 6} {tip - 10}L{x} {tip}L{x + 6} {tip - 10}"
    ET.SubElement(svg, "path", {"d": path, **line})


if __name__ == "__main__":
    PICTURE.write_text(drawing(layers()))
