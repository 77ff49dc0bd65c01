"""Numbers as people read them."""

from __future__ import annotations


def short_number(number: int) -> str:
    """A number for eyes: three digits and k, M, G, ..."""
    value = float(number)
    for unit in ("", "k", "M", "G", "T", "P", "E"):
        if abs(value) < 1000:
            return f"{value:.0f}{unit}" if unit == "" else f"{value:.3g}{unit}"
        value /= 1000
    return f"{value:.3g}Z"
