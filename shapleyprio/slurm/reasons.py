"""What pending jobs wait for, by the reason that Slurm gives."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import Literal, NamedTuple

Missing = Literal["limit", "reservation", "dependency", "hold", "time", "other"]


class SharedBy(StrEnum):
    """Whose jobs use up what a limit allows."""

    USER = "user"
    """The user, in the same account."""
    ACCOUNT = "account"
    ARRAY = "array"


class Lack(NamedTuple):
    """What a job lacks beside its turn.

    Attributes:
        missing: in a word.
        in_words: for its user.
        of_jobs: whether it lacks that others end of which only so many may run.
        shared_by: whose jobs use up what a limit allows; None where it meets none, or where the
            reason does not say it.
    """

    missing: Missing
    in_words: str
    of_jobs: bool = False
    shared_by: SharedBy | None = None


_SO_MANY_JOBS = "as many jobs run as a limit allows, so one of them has to end first"
_SO_MUCH = "running jobs have as much as a limit allows, so some of them have to end first"

_LACKS = {
    r"BeginTime": Lack("time", "it waits for its begin time"),
    r"Dependency": Lack("dependency", "it waits for another job"),
    r"DependencyNeverSatisfied": Lack(
        "other", "its dependency can never be satisfied, so it never starts"
    ),
    r"JobHeld\w*": Lack("hold", "it is held"),
    r".*Reserved for maintenance": Lack(
        "reservation", "a maintenance begins within its time limit, or has begun"
    ),
    r"ReservationDeleted": Lack(
        "reservation", "its reservation was deleted, so it starts only without one or in another"
    ),
    r"Nodes required for job are DOWN.*": Lack(
        "other", "its nodes are down, drained, or reserved for jobs in higher priority partitions"
    ),
    r".*[Rr]eserv.*": Lack("reservation", "it waits for a reservation"),
    r"(Assoc|QOS)Max\w+Per(Job|Node)(Limit)?|QOSMin\w+|Partition\w+Limit|MaxMemPerLimit": Lack(
        "limit", "it asks for what a limit forbids, so it starts only if either is changed"
    ),
    r"(Assoc|QOS)Grp(\w*(?<!Run)Minutes(Limit)?|WallLimit)|QOSUsageThreshold": Lack(
        "limit", "what its account or QOS may use is used up"
    ),
    r"AssocMaxJobsLimit|QOSMaxJobsPerUserLimit": Lack("limit", _SO_MANY_JOBS, True, SharedBy.USER),
    r"AssocGrpJobsLimit|MaxJobsPerAccount": Lack("limit", _SO_MANY_JOBS, True, SharedBy.ACCOUNT),
    r"(Assoc|QOS)(Grp|Max)Jobs\w*Limit": Lack("limit", _SO_MANY_JOBS, True),
    r"JobArrayTaskLimit": Lack(
        "limit", "as many tasks of its array run as its limit allows", shared_by=SharedBy.ARRAY
    ),
    r"QOSMax\w+PerUser(Limit)?": Lack("limit", _SO_MUCH, shared_by=SharedBy.USER),
    r"AssocGrp\w+|Max\w+PerAccount": Lack("limit", _SO_MUCH, shared_by=SharedBy.ACCOUNT),
    r"(Assoc|QOS)(?!NotAllowed)\w+|\w+Limit": Lack("limit", _SO_MUCH),
}
"""Reason, as a pattern -> what it means; the first counts that matches."""


@lru_cache(1000)
def lack_of(reason: str) -> Lack:
    """Returns what a job lacks beside its turn.

    Args:
        reason: of a job that does not wait for its turn alone.

    >>> [lack_of(reason).missing for reason in ("QOSMaxGRESPerUser", "Dependency", "JobHeldUser")]
    ['limit', 'dependency', 'hold']
    >>> lack_of("ReqNodeNotAvail, May be reserved for other job")[:2]
    ('reservation', 'it waits for a reservation')
    """
    found = (lack for pattern, lack in _LACKS.items() if re.fullmatch(pattern, reason))
    return next(found, Lack("other", "it waits for more than its turn"))
