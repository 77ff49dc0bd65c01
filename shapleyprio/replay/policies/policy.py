"""The definition of a policy of the replay, and how users' functions are found that may be one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.progress import ProgressCallback
from shapleyprio.replay.workloads.choices import (
    DEFAULT_ESTIMATION,
    DEFAULT_SEED,
    Estimation,
    Guarantee,
)

if TYPE_CHECKING:
    from shapleyprio.replay.coalitions.estimate import Estimate
    from shapleyprio.replay.engine.schedule import Schedule
    from shapleyprio.replay.workloads.workload import Workload


ORDERINGS = 15
"""Random orderings that rand samples by default, as in the papers' experiments."""


def no_progress(_second: int) -> None:
    """Shows no progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a policy is run with.

    Attributes:
        seed: of all random draws.
        orderings: random orderings that rand samples.
        cores: processors that ref, shapley and live may compute on.
        estimation: of contributions by shapley and live.
        guarantee: when a job goes first that fits into what its organization lends in its
            partition; None for never. Those that say what is fair or was, have none.
        progress: called with the second of the window that was reached.
        estimated: called by shapley and live with each estimate, and the second that it is of;
            those that cannot change a decision are computed for it alone.
    """

    seed: int = DEFAULT_SEED
    orderings: int = ORDERINGS
    cores: int = 1
    estimation: Estimation = DEFAULT_ESTIMATION
    guarantee: Guarantee | None = None
    progress: ProgressCallback = no_progress
    estimated: Callable[[int, Estimate], None] | None = None


Scheduler = Callable[["Workload", RunOptions], "Schedule"]
"""Makes the schedule of a workload; raises PolicyError where it cannot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A way to decide which organization is served next.

    Attributes:
        name: as on the command line and in the results.
        decision: which organization is served next, for the help text and the documentation.
        source: the paper, and where in it; empty if it comes from none.
        schedule: makes a schedule; imports what it needs when it is called.
        heeds: the attributes of `Estimation` that it heeds.
        code: of its decision in C (`engine.codes`), if it looks at one schedule alone and, but for
            sums of what was executed, not at how that came about.
    """

    name: str
    decision: str
    source: str = ""
    schedule: Scheduler
    heeds: tuple[str, ...] = ()
    code: int | None = None

    @property
    def uses_history(self) -> bool:
        """Whether it makes use of a workload's history: it does if it predicts."""
        return "predictor" in self.heeds


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
