"""Finds the lines on which keys of TOML stand, and writes literals."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]
"""Where a value stands, such as ``("organization", 1, "name")``; tables of a list count from 0."""

_TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?(?:"{3,5}|\Z)|'{3}.*?(?:'{3,5}|\Z)'''
    r"""|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?|\#[^\n]*|[\[\]{}\n]""",
    re.DOTALL,
)
"""Texts, comments, and what matters outside of them."""


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
    """Cuts valid TOML into the smallest pieces that are TOML on their own, with their lines."""
    begin, line, depth = 0, 1, 0
    for token in _TOKEN.finditer(text + "\n"):
        match token.group():
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case "\n" if depth == 0:
                piece = text[begin : token.end()]
                if piece.strip() and not piece.lstrip().startswith("#"):
                    yield line, piece
                line += piece.count("\n")
                begin = token.end()


def _paths(read: dict[str, Any]) -> Iterator[Path]:
    for name, value in read.items():
        yield (name,)
        if isinstance(value, dict):
            yield from ((name, *path) for path in _paths(value))
