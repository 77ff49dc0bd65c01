"""Docstrings of functions and methods say in the third person what they do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "shapleyprio"
PARTS = sorted(
    path for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
)
"""The package's folders and the modules beside them."""

NOUNS = {
    *("As", "Its", "This", "Whose"),
    *("Bars", "Cells", "Columns", "Jobs", "Lines", "Parts", "Percentiles", "Processors", "Rows"),
    *("Seconds", "Standings", "Tables", "Units", "Users", "Windows", "Words"),
}
"""First words that end as a verb in the third person does, and are none."""


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yields functions and methods; neither properties nor commands, whose docstrings are helps."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            if not re.search(r"\b(cached_)?property\b|\bcommand\b|\bgroup\b", decorators):
                yield node


def begins_with_verb(docstring: str) -> bool:
    """Returns whether the first word looks like a verb in the third person.

    >>> [begins_with_verb(text) for text in ("Reads it.", "Read it.", "Seconds of it.")]
    [True, False, False]
    """
    word = re.match(r"[A-Z][a-z-]*s\b(?!')", docstring)
    return word is not None and word[0] not in NOUNS


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.stem)
def test_docstrings_of_functions_begin_with_a_verb(part: Path) -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {docstring.splitlines()[0]}"
        for path in ([part] if part.is_file() else sorted(part.rglob("*.py")))
        for node in functions(ast.parse(path.read_text()))
        if (docstring := ast.get_docstring(node)) and not begins_with_verb(docstring)
    ]
    assert found == []
