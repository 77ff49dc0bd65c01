"""Finds functions of users: ``module:function``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from shapleyprio.replay.errors import PolicyError


def function_named(name: str) -> Callable[..., Any]:
    """Imports a user's function.

    Args:
        name: ``module:function``; modules are also looked for in the current directory.

    Raises:
        PolicyError: there is no such function, or its module cannot be imported.
    """
    module_name, _, function_name = name.partition(":")
    if not all(part.isidentifier() for part in [*module_name.split("."), function_name]):
        raise PolicyError(
            f"policy {name!r} is not module:function; "
            "for policies.py write for instance 'policies:shortest_queue'"
        )
    try:
        with _current_directory_searched():
            module = import_module(module_name)
    except ModuleNotFoundError as missing:
        raise PolicyError(
            f"policy {name!r}: no module {missing.name!r} here or on the Python path"
        ) from None
    except Exception as cause:
        raise PolicyError(
            f"policy {name!r}: its module cannot be imported: {complaint(cause)}"
        ) from cause
    function = getattr(module, function_name, None)
    if not callable(function):
        raise PolicyError(f"policy {name!r}: {module.__file__} has no function {function_name!r}")
    found: Callable[..., Any] = function
    return found


def complaint(error: Exception) -> str:
    """Returns an error of a user's code as one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


@contextmanager
def _current_directory_searched() -> Iterator[None]:
    """Searches the current directory last, so that nothing there hides an installed module."""
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)
