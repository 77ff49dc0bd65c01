"""What is known of a site's Slurm, from all its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shapleyprio.lab.rehearsal.associations import SiteAssociations, read_associations
from shapleyprio.lab.rehearsal.qos import SiteQos, read_qos
from shapleyprio.lab.rehearsal.slurm_conf import SiteConf, read_slurm_conf
from shapleyprio.lab.rehearsal.taken_over import scheduler_parameters

NO_SHARES = "without `sacctmgr dump` all accounts have one share and no limits"
NO_QOS = "without `sacctmgr show qos` all QOS have priority 0 and no limits"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSlurm:
    """A site's configuration, as far as it is taken over.

    Attributes:
        conf: of slurm.conf.
        associations: accounts, shares and limits.
        qos: the QOS.
    """

    conf: SiteConf
    associations: SiteAssociations
    qos: SiteQos

    @property
    def left_out(self) -> Mapping[str, str]:
        """What is left out -> what might differ because of it."""
        parameters = self.conf.settings.get("SchedulerParameters", "")
        _, keys = scheduler_parameters(parameters, speed=1)
        return {
            **self.conf.left_out,
            **{f"SchedulerParameters={key}": effect for key, effect in keys},
            **self.associations.left_out,
            **self.qos.left_out,
            **({} if self.associations.parents else {"associations": NO_SHARES}),
            **({} if self.qos.options else {"QOS": NO_QOS}),
        }


def read_site(slurm_conf: Path, associations: Path | None, qos: Path | None) -> SiteSlurm:
    """Reads the files of a site.

    Args:
        slurm_conf: the file of that name.
        associations: what ``sacctmgr dump`` wrote; None to do without.
        qos: what ``sacctmgr -P show qos`` printed; None likewise.

    Raises:
        SiteError: a file cannot be read; the message says where, and why.
    """
    return SiteSlurm(
        conf=read_slurm_conf(slurm_conf),
        associations=SiteAssociations()
        if associations is None
        else read_associations(associations),
        qos=SiteQos() if qos is None else read_qos(qos),
    )
