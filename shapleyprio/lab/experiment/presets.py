"""The papers' experiments by name; their package is imported only when one is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name

from shapleyprio.lab.experiment.cells import Experiment, PresetParameters

PRESETS: Mapping[str, str] = {
    "skowron-2013": "shapleyprio.lab.papers.skowron:skowron_2013",
    "cloudshare-2019": "shapleyprio.lab.papers.cloudshare:cloudshare_2019",
    "mosp-2007": "shapleyprio.lab.papers.mosp:mosp_2007",
}
"""Name on the command line -> module:function of the preset."""


def preset_experiment(name: str, parameters: PresetParameters) -> Experiment:
    """Makes a paper's experiment; nothing is computed yet.

    Args:
        name: one of `PRESETS`.
        parameters: logs and choices.

    Raises:
        ExperimentError: none of the logs is one of the paper's, or an exhibit is unknown.
    """
    experiment: Experiment = resolve_name(PRESETS[name])(parameters)
    return experiment
