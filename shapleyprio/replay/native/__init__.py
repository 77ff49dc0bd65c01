"""Functions in C: how they are declared in Python, and how their arguments get there.

A declaration is a typed Python function without a body:

    @native("engine_advance")
    def advance(policy: int, world: World, until: int) -> int:
        "What it does."

and its definition in a file beside this one is

    EXPORTED int64_t engine_advance(int64_t policy, const World *world, int64_t until)

An array arrives as `Ints`, `Floats` and so on (`native.h`), a named tuple as a struct with the same
fields, where named tuples within it are structs within it. `tests/replay/native` holds the two
together. Functions run without the interpreter's lock, so threads work side by side.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from operator import index
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np

from shapleyprio.common.errors import ReplayError

LIBRARY = Path(__file__).with_name("library.so")
"""What `hatch_build.py` makes of the files in C."""

DIMENSIONS = 3

SCALARS: dict[Any, Any] = {int: ctypes.c_int64, bool: ctypes.c_bool, float: ctypes.c_double}

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=tuple[Any, ...])


class Declaration(NamedTuple):
    """A function in C, as Python declares it."""

    symbol: str
    function: Callable[..., Any]

    def types(self) -> tuple[list[Any], Any]:
        """Returns the types of its arguments, and that of what it returns."""
        hints = get_type_hints(self.function)
        result = hints.pop("return")
        return list(hints.values()), result


DECLARED: list[Declaration] = []


def native(symbol: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a Python function without a body the function in C that is called so.

    It takes arguments by position: named tuples, C-contiguous arrays, ints and floats; and returns
    an int, a bool or nothing. Arrays are not copied, and what it writes to them is seen.
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        declaration = Declaration(symbol, function)
        DECLARED.append(declaration)

        @cache
        def bound() -> Callable[..., Any]:
            return _bound(declaration)

        def call(*arguments: P.args, **none: P.kwargs) -> R:
            return cast("R", bound()(*arguments, **none))

        call.__doc__ = function.__doc__
        return call

    return declare


def packed(value: S) -> S:
    """Returns the same named tuple, made a struct once and not at each call of a function in C."""
    same = _packed_type(type(value))(*value)
    same.struct = _struct_of(type(value), value)
    return cast("S", same)


@cache
def _packed_type(struct: type) -> Any:
    return type(struct.__name__, (struct,), {})


@cache
def array_type(annotation: Any) -> np.dtype[Any] | None:
    """Returns the type of an array's elements; None if it is no array that is annotated so."""
    if aliased := getattr(get_origin(annotation), "__value__", None):  # NDArray, from numpy 2.5 on
        annotation = aliased[get_args(annotation)]
    if get_origin(annotation) is not np.ndarray:
        return None
    (scalar,) = get_args(get_args(annotation)[1])
    elements: np.dtype[Any] = np.dtype(scalar)
    return elements


def is_struct(annotation: Any) -> bool:
    """Returns whether a named tuple is annotated so."""
    return isinstance(annotation, type) and issubclass(annotation, tuple)


@cache
def fields(struct: type) -> tuple[tuple[str, Any], ...]:
    """Returns the names of a named tuple's fields and their types, in their order."""
    return tuple(get_type_hints(struct).items())


def _bound(declaration: Declaration) -> Callable[..., Any]:
    types, result = declaration.types()
    function = getattr(_library(), declaration.symbol)
    passing = [_passing(annotation) for annotation in types]
    function.argtypes = [as_what for as_what, _ in passing]
    function.restype = SCALARS.get(result)
    made = [make for _, make in passing]

    def call(*arguments: Any) -> Any:
        return function(*(make(given) for make, given in zip(made, arguments, strict=True)))

    return call


def _passing(annotation: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Returns the C type of an argument, and what makes it of the one in Python."""
    if annotation in SCALARS:
        return SCALARS[annotation], index if annotation is int else annotation

    def pointer(value: Any) -> Any:
        return getattr(value, "struct", None) or _struct_of(annotation, value)

    return ctypes.c_void_p, pointer


def _struct_of(annotation: Any, value: Any) -> Any:
    words: list[int] = []
    _pack(annotation, value, words)
    return (ctypes.c_int64 * len(words))(*words)


def _pack(annotation: Any, value: Any, words: list[int]) -> None:
    """Appends a value as it lies in a struct, all of whose parts have 64 bits."""
    if annotation is int:
        words.append(index(value))
    elif is_struct(annotation):
        for (_, inner), part in zip(fields(annotation), value, strict=True):
            _pack(inner, part, words)
    else:
        elements = array_type(annotation)
        if value.dtype != elements or not value.flags.c_contiguous or value.ndim > DIMENSIONS:
            raise TypeError(f"{value.dtype}{list(value.shape)} is no contiguous array {elements}")
        shape = value.shape
        words += (value.__array_interface__["data"][0], *shape)
        words += (1,) * (DIMENSIONS - len(shape))


@cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(LIBRARY))
        made = LIBRARY.stat().st_mtime
    except OSError as error:
        raise ReplayError(
            f"{LIBRARY} cannot be loaded ({error}); reinstall shapleyprio, or make it by "
            "hatch_build.py in a checkout"
        ) from None
    if any(source.stat().st_mtime > made for source in LIBRARY.parent.glob("*.[ch]")):
        raise ReplayError(f"{LIBRARY} is older than its sources; run `python hatch_build.py`")
    return library
