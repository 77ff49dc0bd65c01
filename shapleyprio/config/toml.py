"""Line numbers in TOML and TOML literals, which the standard library's reader does not give."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]
"""Where a value stands, such as ``("organization", 1, "name")``; tables of a list count from 0."""


def literal(value: object) -> str:
    """Writes the value as it stands in TOML.

    >>> print(literal(["physics", "n[1-4]"]), literal(True), literal("30d"))
    ["physics", "n[1-4]"] true "30d"
    """
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, dict):
        return "{...}"
    return str(value)


def lines_of(text: str) -> dict[Path, int]:
    r"""Returns the line, counted from 1, on which each table and key of valid TOML begins.

    >>> lines_of('[push]\ninfluence = 5\n[[organization]]')
    {('push',): 1, ('push', 'influence'): 2, ('organization',): 3, ('organization', 0): 3}
    """
    lines: dict[Path, int] = {}
    last_index: dict[str, int] = {}
    table: Path = ()
    for number, statement in _statements(text):
        read = tomllib.loads(statement)
        if statement.lstrip().startswith("["):
            table = ()
            while read:
                name, inside = next(iter(read.items()))
                table = (*table, name)
                lines.setdefault(table, number)
                if isinstance(inside, list):
                    last_index[name] = last_index.get(name, -1) + 1
                    inside = inside[0]
                if name in last_index:
                    table = (*table, last_index[name])
                    lines.setdefault(table, number)
                read = inside
        else:
            for path in _paths(read):
                lines.setdefault((*table, *path), number)
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Cuts the text into the smallest pieces that are TOML on their own, with their lines."""
    begin, piece = 0, ""
    for number, line in enumerate(text.split("\n"), start=1):
        if not piece:
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            begin = number
        piece += line + "\n"
        try:
            tomllib.loads(piece)
        except tomllib.TOMLDecodeError:
            continue  # it goes on in the next line
        yield begin, piece
        piece = ""


def _paths(read: dict[str, Any]) -> Iterator[Path]:
    for name, value in read.items():
        yield (name,)
        if isinstance(value, dict):
            yield from ((name, *path) for path in _paths(value))
