"""The Python package that estimates and forecasts need and the daemon does not."""

from __future__ import annotations

from importlib.util import find_spec

INSTALL = "install the package shapleyprio-replay, or pip install 'shapleyprio[replay]'"

INSTEAD = ', or set fairness.rule to "directcontr"'

REMEDY = INSTALL + INSTEAD


def numpy_is_missing() -> bool:
    """Returns whether it is not installed."""
    return find_spec("numpy") is None
