"""The Python packages that estimates and forecasts need and the daemon does not."""

from __future__ import annotations

from importlib.util import find_spec

PACKAGES = ("numpy", "pandas")

INSTALL = "install the package shapleyprio-replay, or pip install 'shapleyprio[replay]'"

INSTEAD = ', or set fairness.rule to "directcontr"'

REMEDY = INSTALL + INSTEAD


def missing_packages() -> list[str]:
    """Returns the names of those that are not installed."""
    return [name for name in PACKAGES if find_spec(name) is None]
