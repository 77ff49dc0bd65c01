"""Colors that color-blind readers can distinguish, the same for an organization everywhere."""

from __future__ import annotations

from collections.abc import Sequence

OKABE_ITO = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00"),
    *("#56B4E9", "#CC79A7", "#7F7F7F", "#F0E442"),
)
"""Okabe & Ito, *Color universal design* (2008), with gray for their black, which a dark screen
hides; yellow, the palest on white, comes last."""

SHADES = ((0x00, 0.0), (0x60, 0.5), (0xFF, 0.5))
"""What each further round of eight is mixed with, and how much of that."""


def colors_of(organizations: Sequence[str]) -> dict[str, str]:
    """Returns a color for each organization, by its place in the list.

    Beyond 24 organizations colors repeat; then only hovering distinguishes them.

    >>> colors_of(["physics", "biology"])
    {'physics': '#0072B2', 'biology': '#E69F00'}
    """
    return {name: _color(place) for place, name in enumerate(organizations)}


def _color(place: int) -> str:
    color = OKABE_ITO[place % len(OKABE_ITO)]
    other, part = SHADES[place // len(OKABE_ITO) % len(SHADES)]
    channels = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    mixed = (round(channel * (1 - part) + other * part) for channel in channels)
    return "#" + "".join(f"{channel:02X}" for channel in mixed)
