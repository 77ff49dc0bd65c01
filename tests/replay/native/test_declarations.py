"""Python and C say the same of what goes from one to the other."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from shapleyprio.replay import native
from shapleyprio.replay.native import DECLARED, LIBRARY, Declaration

ARRAYS = {
    np.dtype(np.int64): "Ints",
    np.dtype(np.int32): "Ints32",
    np.dtype(np.uint64): "Words",
    np.dtype(np.float64): "Floats",
    np.dtype(np.bool_): "Bools",
    np.dtype(np.uint8): "Bytes",
}
"""The elements that arrays may have -> what they are called in C."""

STRUCT = re.compile(r"^typedef struct \{([^}]*)\} (\w+);", re.MULTILINE)
EXPORTED = re.compile(r"^EXPORTED (\w+) (\w+)\(([^)]*)\)", re.MULTILINE)
SCALARS = {int: "int64_t", bool: "bool", float: "double", type(None): "void"}

for folder in ("replay", "lab.papers.cloudshare"):
    package = importlib.import_module(f"shapleyprio.{folder}")
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.endswith(".library"):  # it is no module of Python's
            importlib.import_module(found.name)


def sources() -> str:
    text = "\n".join(
        file.read_text()
        for suffix in ("h", "c")
        for file in sorted(LIBRARY.parent.glob(f"*.{suffix}"))
    )
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def c_structs() -> dict[str, list[tuple[str, str]]]:
    """Returns name -> (type, name) of each field."""
    found = {}
    for body, name in STRUCT.findall(sources()):
        found[name] = [
            (kind, field)
            for kind, fields in re.findall(r"(\w+) ([^;]+);", body)
            for field in re.split(r",\s*", fields)
        ]
    return found


def c_name(annotation: Any) -> str:
    if annotation in SCALARS:
        return SCALARS[annotation]
    elements = native.array_type(annotation)
    return annotation.__name__.lstrip("_") if elements is None else ARRAYS[elements]


def structs_of(annotation: Any) -> Iterator[type]:
    if native.is_struct(annotation):
        yield annotation
        for _, inner in native.fields(annotation):
            yield from structs_of(inner)


STRUCTS = sorted(
    {one for each in DECLARED for kind in each.types()[0] for one in structs_of(kind)},
    key=lambda struct: struct.__qualname__,
)


@pytest.mark.parametrize("struct", STRUCTS)
def test_a_named_tuple_and_its_struct_have_the_same_fields(struct: type) -> None:
    fields = [(c_name(kind), name) for name, kind in native.fields(struct)]
    assert c_structs()[c_name(struct)] == fields


@pytest.mark.parametrize("declared", DECLARED, ids=lambda declared: declared.symbol)
def test_a_declaration_and_its_definition_have_the_same_types(declared: Declaration) -> None:
    (definition,) = [each for each in EXPORTED.findall(sources()) if each[1] == declared.symbol]
    types, result = declared.types()
    parameters = [
        re.sub(r"^const |\*?\w+$", "", parameter.strip()).strip()
        for parameter in definition[2].split(",")
    ]
    assert parameters == [c_name(kind) for kind in types]
    assert definition[0] == c_name(result)


def test_nothing_is_exported_that_nobody_declares() -> None:
    assert sorted(name for _, name, _ in EXPORTED.findall(sources())) == sorted(
        each.symbol for each in DECLARED
    )
