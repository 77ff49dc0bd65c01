"""The arms of a trial: how Slurm is set up, and whether the daemon steers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from shapleyprio.fairness.rules import RULES, ByShapley, DirectContr
from shapleyprio.slurm.channels import CHANNELS

MULTIFACTOR = MappingProxyType(
    {
        "PriorityType": "priority/multifactor",
        "PriorityCalcPeriod": "00:05:00",
        "PriorityWeightAge": "1000",
        "PriorityMaxAge": "7-00:00:00",
        "PriorityWeightFairshare": "0",
        "PriorityWeightQOS": "0",
        "PriorityWeightAssoc": "0",
        "PriorityWeightJobSize": "0",
        "PriorityWeightPartition": "0",
    }
)
"""Slurm's defaults for the times; age orders the jobs of one organization, and no more."""

FAIR_SHARE = MappingProxyType(
    {
        **MULTIFACTOR,
        "PriorityWeightFairshare": "1000000",
        "PriorityDecayHalfLife": "7-00:00:00",
    }
)
"""Fair Tree, the algorithm that Slurm uses by default."""

QOS = MappingProxyType(
    {
        **MULTIFACTOR,
        "PriorityCalcPeriod": "00:01:00",
        "PriorityFlags": "NO_NORMAL_QOS",
        "PriorityWeightQOS": "1",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way to run the workload.

    Attributes:
        name: on the command line.
        settings: of slurm.conf.
        model: the policy that decides alike in a simulation.
        channel: through which the daemon steers; None where it does not run.
        rule: by which it ranks. One that estimates needs to know whose jobs are whose.
        guarantee: of every organization, as in the configuration.
    """

    name: str
    settings: Mapping[str, str]
    model: str = "directcontr"
    channel: str | None = None
    rule: str = DirectContr.name
    guarantee: str = "off"

    @property
    def needs_qos(self) -> bool:
        """Whether every organization needs a QOS of its own."""
        return self.channel is not None and CHANNELS[self.channel].carrier == "QOS"

    @property
    def knows_users(self) -> bool:
        """Whether every user of the log has an account, below that of the organization."""
        return RULES[self.rule].estimates


ARMS: Mapping[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm(name="slurm-fairshare", settings=FAIR_SHARE, model="fairshare"),
        Arm(
            name="fifo",
            settings={"PriorityType": "priority/basic"},
            model="fcfs",
        ),
        Arm(
            name="shapleyprio-site-factor",
            settings=MULTIFACTOR,
            channel="site_factor",
        ),
        Arm(
            name="shapleyprio-guarantee-site-factor",
            settings=MULTIFACTOR,
            model="directcontr@4h",
            channel="site_factor",
            guarantee="4h",
        ),
        Arm(
            name="shapleyprio-live-site-factor",
            settings=MULTIFACTOR,
            model="live",
            channel="site_factor",
            rule=ByShapley.name,
        ),
        Arm(name="shapleyprio-nice", settings=MULTIFACTOR, channel="nice"),
        Arm(name="shapleyprio-qos", settings=QOS, channel="qos"),
    )
}
"""By name."""

USUAL_ARMS = ("slurm-fairshare", "shapleyprio-site-factor")
