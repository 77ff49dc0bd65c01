"""The papers' experiments by name, each imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast

from shapleyprio.experiment.cells import Experiment, Preset


@dataclass(frozen=True, slots=True)
class LazyPreset:
    """A preset that is imported when it is first called.

    Attributes:
        module, function: where it is.
    """

    module: str
    function: str

    def __call__(
        self,
        logs: Mapping[str, Path],
        *,
        windows: int | None = None,
        seed: int = 0,
        exhibits: Sequence[str] = (),
    ) -> Experiment:
        """Makes the experiment, as `Preset` says."""
        preset = cast("Preset", getattr(import_module(self.module), self.function))
        return preset(logs, windows=windows, seed=seed, exhibits=exhibits)


PRESETS: Mapping[str, Preset] = {
    "skowron-2013": LazyPreset("shapleyprio.experiment.skowron", "skowron_2013"),
    "cloudshare-2019": LazyPreset("shapleyprio.experiment.cloudshare", "cloudshare_2019"),
    "mosp-2007": LazyPreset("shapleyprio.experiment.mosp", "mosp_2007"),
}
"""Name on the command line -> what makes the experiment."""
