"""docs/security.md and the tests of attacks say the same."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| \*\*(.+)\*\*: (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "docs" / "security.md").read_text())


def names_in(folder: Path) -> list[str]:
    return [
        node.name
        for file in sorted(folder.rglob("test_*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def test_every_attack_that_is_repeated_is_in_the_table_and_no_other() -> None:
    repeated = Counter(names_in(ROOT / "tests" / "hostile"))
    listed = Counter(name for *_, cell in ROWS for name in re.findall(r"`(\w+)`", cell))
    assert listed == repeated, "docs/security.md names each test of tests/hostile once"
    assert set(repeated.values()) == {1}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_every_row_says_who_wants_what_and_names_a_test(row: tuple[str, ...]) -> None:
    *words, tests = map(str.strip, row)
    assert all(words)
    assert re.fullmatch(r"`test_\w+`(, `test_\w+`)*", tests)
