"""Reads TOML within bounds, with the lines on which keys stand, and writes literals.

The standard library's reader takes a time that grows with the square of the parts of a key, ends
with another error where tables or lists are nested too deeply, and does not give lines.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]
"""Where a value stands, such as ``("organization", 1, "name")``; tables of a list count from 0."""


LONGEST_FILE = 2**21
"""Characters; 30,000 organizations have room in them."""

MOST_PARTS = 32
"""Dots in a line outside texts, more than any key of ours has."""

DEEPEST = 32
"""Brackets that may be open at a time."""

LONGEST_WORD = 1000
"""Letters and digits in a row outside texts."""

_TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?(?:"{3,5}|\Z)|'{3}.*?(?:'{3,5}|\Z)'''
    r"""|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?|\#[^\n]*"""
    rf"|[\[\]{{}}.\n]|[0-9A-Za-z_+-]{{{LONGEST_WORD + 1},}}",
    re.DOTALL,
)
"""Texts, comments, and what matters outside of them."""


class BoundError(tomllib.TOMLDecodeError):
    """The text is longer or more deeply nested than any that is meant; says where."""

    def __init__(self, what: str, text: str, at: int) -> None:
        line = text.count("\n", 0, at) + 1
        column = at - text.rfind("\n", 0, at)
        ValueError.__init__(self, f"{what} (at line {line}, column {column})")


def read_toml(text: str) -> dict[str, Any]:
    """Reads TOML.

    Args:
        text: of a file; one character more than `LONGEST_FILE` is enough to see that it is too
            long.

    Raises:
        tomllib.TOMLDecodeError: it is none, or beyond the bounds.
    """
    if len(text) > LONGEST_FILE:
        raise BoundError(f"more than {LONGEST_FILE:,} characters", text, LONGEST_FILE)
    depth = dots = 0
    for token in _TOKEN.finditer(text):
        match token.group():
            case "\n":
                dots = 0
            case ".":
                dots += 1
                if dots > MOST_PARTS:
                    raise BoundError(f"more than {MOST_PARTS} dots in a line", text, token.start())
            case "[" | "{":
                depth += 1
                if depth > DEEPEST:
                    raise BoundError(f"more than {DEEPEST} open brackets", text, token.start())
            case "]" | "}":
                depth -= 1
            case word if word[0] not in "\"'#":
                what = f"more than {LONGEST_WORD} letters or digits in a row"
                raise BoundError(what, text, token.start())
    return tomllib.loads(text)


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
