"""The layers are as documented, and no module is part of a circle."""

from __future__ import annotations

import re

import pytest

from tests.architecture import PICTURE, ROOT, drawing, layers

ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()


def test_the_picture_of_the_layers_is_up_to_date() -> None:
    assert PICTURE.read_text() == drawing(layers()), "run: python -m tests.architecture"


def test_the_packages_are_documented_from_the_top_layer_down() -> None:
    table = ARCHITECTURE.split("| package |")[1].split("\n\n")[0]
    documented = re.findall(r"^\| `(\w+)`", table, flags=re.MULTILINE)
    assert documented == [name for layer in layers() for name in layer]


def test_no_module_imports_itself_by_way_of_others() -> None:
    """The contract on circles leaves out those of a package with its own modules."""
    grimp = pytest.importorskip("grimp")
    graph = grimp.build_graph("shapleyprio", cache_dir=None)
    waiting = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    while free := [module for module, imported in waiting.items() if not imported & set(waiting)]:
        for module in free:
            del waiting[module]
    assert not sorted(waiting)


def test_every_child_in_python_is_started_isolated() -> None:
    """Or it would import what lies in the current directory, or where PYTHONPATH says."""
    package = ROOT / "shapleyprio"
    code = {str(file.relative_to(package)): file.read_text() for file in package.rglob("*.py")}

    def naming(pattern: str) -> set[str]:
        return {name for name, text in code.items() if re.search(pattern, text)}

    starting = {"__main__.py", "common/workers.py"}
    assert naming(r"sys\.executable") == naming(r'sys\.executable, "-I"') == starting
    assert naming(r"\bget_context\b|\bset_start_method\b") == naming("PYTHONSAFEPATH")
    assert not naming(r"[\"'/]python3?[\"'],")
