"""The glossary and the code use the same words, and each word for one thing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
ENTRIES = re.findall(r"^- \*\*(.+?)\*\*(?: \((.+?)\))?: .+$", GLOSSARY, flags=re.MULTILINE)
"""Term and, in brackets, its symbol, unit, source and class."""

MODULES = sorted((ROOT / "shapleyprio").rglob("*.py"))

TEXTS = [
    *MODULES,
    *(ROOT / "shapleyprio").rglob("*.html"),
    *(ROOT / "shapleyprio").rglob("*.jinja"),
    *(ROOT / "docs").glob("*.md"),
    *(path for path in (ROOT / "grafana").rglob("*.*") if path.suffix != ".pyc"),
    *(ROOT / "slurm_conf").iterdir(),
    *(ROOT / "systemd").iterdir(),
    *(path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)),
    *(path for path in (ROOT / "packaging").rglob("*") if path.suffix != ".pyc"),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "client.toml.example",
    ROOT / "shapleyprio.toml.example",
]
"""Where retired words must not stand; migrations and the changelog may name what was before."""

RETIRED = {
    r"\w*colour": "color",
    r"\w*neighbour": "neighbor",
    r"\w*behaviour": "behavior",
    r"(kept|keeps?|keeping)[ _-]aside|KeptAside": "quarantine",
    r"\btake_(in|back)\b": "ingest, subtract",
    r"\bCourses?\b": "trajectory",
    r"\basked[ _]value": "original value",
    r"taken back": "subtracted",
    r"\bsifting\b": "filtering",
}
"""Pattern of a retired word -> the word to use."""


@cache
def parsed() -> list[ast.Module]:
    return [ast.parse(path.read_text()) for path in MODULES]


def classes() -> Iterator[str]:
    """Names of all classes of shapleyprio that are not private to a module."""
    for tree in parsed():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name


def docstrings(tree: ast.AST) -> Iterator[str]:
    """Strings that stand alone: docstrings, and those below constants."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value.value


def test_every_term_is_defined_once() -> None:
    assert len(ENTRIES) == len(re.findall("^- ", GLOSSARY, flags=re.MULTILINE))
    assert [term for term, count in Counter(term for term, _ in ENTRIES).items() if count > 1] == []


def test_the_classes_that_the_glossary_names_exist() -> None:
    named = {name for _, more in ENTRIES for name in re.findall(r"`(\w+)`", more)}
    assert named
    assert named - set(classes()) == set()


def test_a_name_stands_for_one_class() -> None:
    assert [name for name, count in Counter(classes()).items() if count > 1] == []


def test_docstrings_name_the_thing_first() -> None:
    begin = [text.splitlines()[0] for tree in parsed() for text in docstrings(tree) if text]
    assert [line for line in begin if line.startswith("Of ")] == []


@pytest.mark.parametrize(("pattern", "instead"), RETIRED.items(), ids=RETIRED)
def test_retired_words_are_used_nowhere(pattern: str, instead: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in TEXTS
        if path.is_file()
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if re.search(pattern, line, flags=re.IGNORECASE)
    ]
    assert found == [], f"use: {instead}"
