"""The arms of a rehearsal: the site's configuration as it is, changed, or with the daemon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from shapleyprio.fairness.rules import ByShapley
from shapleyprio.lab.rehearsal.site_files import SiteError
from shapleyprio.lab.rehearsal.taken_over import SETTINGS
from shapleyprio.lab.trial.arms import Arm

MULTIFACTOR = MappingProxyType({"PriorityType": "priority/multifactor"})

FAIR_SHARE_ALONE = MappingProxyType(
    {
        **MULTIFACTOR,
        "PriorityFlags": "",
        "PriorityWeightFairshare": "1000000",
        "PriorityWeightAge": "1000",
        "PriorityWeightAssoc": "0",
        "PriorityWeightJobSize": "0",
        "PriorityWeightPartition": "0",
        "PriorityWeightQOS": "0",
        "PriorityWeightTRES": "",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteArm(Arm):
    """One way to run a site's jobs; its settings replace the site's.

    Attributes:
        by_organization: whether accounts are below their organizations, which have shares by their
            processors; else as at the site.
    """

    by_organization: bool = False


TODAY = "today"

ARMS: Mapping[str, SiteArm] = {
    arm.name: arm
    for arm in (
        SiteArm(name=TODAY, settings={}),
        SiteArm(name="fairshare", settings=FAIR_SHARE_ALONE, by_organization=True),
        SiteArm(name="directcontr", settings=MULTIFACTOR, channel="site_factor"),
        SiteArm(
            name="guarantee",
            settings=MULTIFACTOR,
            channel="site_factor",
            guarantee="4h",
        ),
        SiteArm(name="shapley", settings=MULTIFACTOR, channel="site_factor", rule=ByShapley.name),
    )
}
"""By name."""

USUAL_ARMS = (TODAY, "fairshare", "directcontr")


def changed(number: int, text: str) -> SiteArm:
    """Returns the arm of today's configuration with some settings changed.

    Args:
        number: counts such arms up from 1.
        text: KEY=VALUE of slurm.conf, several with blanks between them.

    Raises:
        SiteError: a key is none that a rehearsal takes over.
    """
    settings = {}
    for word in text.split():
        key, separator, value = word.partition("=")
        if key.lower() not in SETTINGS or not separator:
            raise SiteError(
                f"--set: {word[:80]!r} is not one of {', '.join(SETTINGS.values())} with a value"
            )
        settings[SETTINGS[key.lower()]] = value
    return SiteArm(name=f"{TODAY}-{number}", settings=settings)
