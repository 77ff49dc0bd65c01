"""What pending jobs wait for, by the reason that Slurm gives."""

from __future__ import annotations

from typing import Literal

Missing = Literal["limit", "reservation", "dependency", "hold", "time", "other"]


def missing(reason: str) -> Missing:
    """Returns what a job lacks beside its turn.

    Args:
        reason: of a job that does not wait for its turn alone.

    >>> [missing(reason) for reason in ("QOSMaxJobsPerUserLimit", "AssocGrpCpuLimit", "Dependency")]
    ['limit', 'limit', 'dependency']
    >>> missing("ReqNodeNotAvail, Reserved for maintenance"), missing("JobHeldUser")
    ('reservation', 'hold')
    """
    if "Reserv" in reason:
        return "reservation"
    if reason.startswith(("Assoc", "QOS")) or reason.endswith("Limit"):
        return "limit"
    if reason.startswith("Dependency"):
        return "dependency"
    if reason.startswith("JobHeld"):
        return "hold"
    return "time" if reason == "BeginTime" else "other"
