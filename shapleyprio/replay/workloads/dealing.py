"""Organizations made up as in the papers' experiments: users and processors dealt out."""

from __future__ import annotations

from math import lcm
from random import Random

import numpy as np

from shapleyprio.common.errors import Remedy
from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.workloads.choices import Shares
from shapleyprio.replay.workloads.log import UNKNOWN, Log
from shapleyprio.replay.workloads.workload import Consortium, whole_log

MOST_ORGANIZATIONS = 256
"""Whose processors a running job has takes 8 bits."""


def deal(
    log: Log, organizations: int, *, shares: Shares, processors: int | None, seed: int
) -> Consortium:
    """Deals a log's users and some processors out to organization1, organization2 and so on.

    Each user goes to one of them at random, all equally likely and each user on its own, as in
    the experiments of Skowron & Rzadca (SPAA 2013, section 7); jobs without a user
    belong to no organization.
    Same log and seed: same deal, whatever the versions of Python and numpy.

    Args:
        log: all jobs.
        organizations: how many, from 1 to 256.
        shares: "zipf": the i-th has processors in proportion to 1/i; "uniform": as equal as can
            be; `processor_shares` says how they are rounded.
        processors: of the whole system, at least one for each organization; None for as many as
            the log says.
        seed: of the random draws.

    Raises:
        WorkloadError: the log names no users or processors, or the numbers do not fit.
    """
    whole_log(log)  # refuses one without jobs, which names no users either
    if processors is None:
        processors = log.system_processors
    if processors is None:
        raise WorkloadError(
            f"{log.source}: does not say how many processors the system had",
            Remedy.NAME_PROCESSORS,
        )
    owned = processor_shares(organizations, shares=shares, processors=processors)
    user = log.labels.get("user")
    if user is None or not (user.codes != UNKNOWN).any():
        raise WorkloadError(
            f"{log.source}: does not name users, so there are none to deal out",
            Remedy.NAME_ORGANIZATIONS,
        )
    present, first = np.unique(user.codes[user.codes != UNKNOWN], return_index=True)
    random = Random(seed)  # noqa: S311  # an experiment, no secret
    dealt = np.full(len(user.names) + 1, UNKNOWN, dtype=np.int32)  # the last one is for UNKNOWN
    for code in present[np.argsort(first)]:
        # random() is the one draw that Python promises never to change
        dealt[code] = int(random.random() * organizations)
    return Consortium(
        organizations=tuple(f"organization{number + 1}" for number in range(organizations)),
        owned=np.array(owned, dtype=np.int64),
        organization=dealt[user.codes],
    )


def processor_shares(organizations: int, *, shares: Shares, processors: int) -> list[int]:
    """Deals processors out, at least one to each and never more to a later organization.

    By Zipf's law, everyone first gets its share rounded down; what is left goes to the largest
    remainders. Who has none then gets one from the organization with the most.

    >>> processor_shares(5, shares="zipf", processors=70)
    [31, 15, 10, 8, 6]
    >>> processor_shares(4, shares="uniform", processors=70)
    [18, 18, 17, 17]

    Raises:
        WorkloadError: fewer processors than organizations, or not from 1 to 256 organizations.
    """
    if not 1 <= organizations <= MOST_ORGANIZATIONS:
        raise WorkloadError(
            f"cannot deal out to {organizations} organizations; "
            f"choose from 1 to {MOST_ORGANIZATIONS}"
        )
    if processors < organizations:
        raise WorkloadError(
            f"cannot deal {processors} processors out to {organizations} organizations; "
            f"give at least {organizations} processors, or choose fewer organizations"
        )
    if shares == "uniform":
        each, more = divmod(processors, organizations)
        return [each + (index < more) for index in range(organizations)]
    return _by_zipf(organizations, processors)


def _by_zipf(organizations: int, processors: int) -> list[int]:
    unit = lcm(*range(1, organizations + 1))
    weights = [unit // rank for rank in range(1, organizations + 1)]
    quotas = [divmod(processors * weight, sum(weights)) for weight in weights]
    dealt = [whole for whole, _ in quotas]
    by_remainder = sorted(range(organizations), key=lambda index: (-quotas[index][1], index))
    for index in by_remainder[: processors - sum(dealt)]:
        dealt[index] += 1
    while 0 in dealt:
        # the last of the largest gives to the first of those without, which keeps them in order
        dealt[max(range(organizations), key=lambda index: (dealt[index], index))] -= 1
        dealt[dealt.index(0)] += 1
    return dealt
