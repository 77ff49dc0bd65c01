"""The parts of a simulated cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shapleyprio.common.wording import DAY
from shapleyprio.slurm.layout import PrioritySettings
from shapleyprio.slurm.releases import TESTED_RELEASES

DEFAULT_SETTINGS = PrioritySettings(
    type="priority/multifactor",
    weights={"Age": 0, "Partition": 1_000_000, "QOS": 100_000},
    flags=frozenset(),
    calc_period_seconds=60,
    max_age_seconds=DAY,
    site_factor_plugin="",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSpec:
    """A cluster to simulate.

    Attributes:
        cluster: its name.
        nodes: node -> its processors.
        partitions: partition -> its nodes, in the order in which they fill up.
        accounts: account -> parent account or None.
        qos: QOS -> priority; only ``normal`` with 0 if None.
        settings: how priorities are computed.
        version: the release of Slurm that it reports.
        enforces_accounts: whether it reports that it refuses jobs of unknown accounts; it does.
    """

    cluster: str
    nodes: Mapping[str, int]
    partitions: Mapping[str, Sequence[str]]
    accounts: Mapping[str, str | None]
    qos: Mapping[str, int] | None = None
    settings: PrioritySettings = DEFAULT_SETTINGS
    version: str = f"{TESTED_RELEASES[-1]}.0"
    enforces_accounts: bool = True
