"""Brokers that share processors: CloudShare's simulation (section 5.1) of one coalition.

All units of work last one hour. At each moment, in this order: units that end free their
processors; jobs released now arrive; an organization's background units start on its own free
processors; then units of the federation start while one waits and a processor is free. What
starts now is worth nothing yet, and parts of running units count, as everywhere in this project.

Whose processor a unit gets: if nothing waited before and all that arrives fits, its own
organization's while that has a free one, as a broker runs a task locally if it can (section 3.3,
event 1). Else a free processor is drawn, each as likely as any other (section 3.2.3), and the
algorithm picks the organization it serves.

As all units are equally long and processors are given without a look at whom they serve, how many
units start when on whose processors does not depend on the algorithm. Hence every algorithm has
the same total wait in the same coalition, which the paper asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapleyprio.common.errors import ReplayError
from shapleyprio.common.wording import HOUR
from shapleyprio.replay.native import native

ORIGINAL, RELATIVE, SIMPLIFIED, FAIR_SHARE, ROUND_ROBIN = range(5)

ALGORITHMS: Mapping[str, int] = {
    "orig-direct": ORIGINAL,
    "rel-direct": RELATIVE,
    "simpl-direct": SIMPLIFIED,
    "fairshare": FAIR_SHARE,
    "roundrobin": ROUND_ROBIN,
}
"""The algorithms of section 5.2 by their names in `shapleyprio.replay.POLICIES`.

They serve as there, but for roundrobin: section 5.2 wants whoever has never been served, else
whoever was served least recently, and the replay goes through its list in turn.
"""

Ints = NDArray[np.int64]


class Queues(NamedTuple):
    """Jobs by organization, then in the order in which they start; u has first[u] to first[u + 1].

    Attributes:
        first: int64[organizations + 1].
        release: int64[jobs], seconds, rising within an organization.
        units: int64[jobs], above 0.
    """

    first: Ints
    release: Ints
    units: Ints


class Brokers(NamedTuple):
    """State of a coalition of k organizations; others own nothing, and nothing of theirs arrives.

    Attributes:
        owned, free: [k], processors.
        arriving, background_arriving: [k], the next job of each that is not released yet.
        last, background_last: [k], the job behind the last one of each.
        head, left: [k], the first job that waits, and how many of its units do.
        waiting, background: [k], units that wait, and units of background load that do.
        utility, contribution: [k, 3], moments of units on processors, of each one's jobs and on
            each one's processors; see `shapleyprio.fairness.worth`.
        released: [2, k, 2], the same weighted by release, for ψ′: of jobs, and on processors.
        served: [k], the turn in which each was served last; −1 for never.
        end, owner, organization, release: [m], the running units in the order of their ends, in a
            ring; organization is −1 for background load.
        ring: [2], where its first one stands, and how many there are.
        waits: [k], seconds that the units started so far have waited.
        random: [1], state of the generator.
    """

    owned: Ints
    free: Ints
    arriving: Ints
    last: Ints
    background_arriving: Ints
    background_last: Ints
    head: Ints
    left: Ints
    waiting: Ints
    background: Ints
    utility: Ints
    contribution: Ints
    released: Ints
    served: Ints
    end: Ints
    owner: Ints
    organization: Ints
    release: Ints
    ring: Ints
    waits: Ints
    random: NDArray[np.uint64]


def total_waits(
    algorithm: str,
    coalition: int,
    owned: Ints,
    federated: Queues,
    background: Queues,
    *,
    seed: int = 0,
) -> tuple[int, ...]:
    """Returns the seconds that each organization's units wait in all, from release to start.

    Args:
        algorithm: one of `ALGORITHMS`.
        coalition: its members as bits; the others neither lend nor ask.
        owned: int64[organizations], processors; above 0 for every member.
        federated: jobs that go to the brokers.
        background: jobs of local users, who know only their own organization's processors.
        seed: of the draws of processors.

    Raises:
        ReplayError: the numbers may not fit into 64 bits.
    """
    member = np.array([coalition >> u & 1 for u in range(len(owned))], dtype=np.int64)
    brokers = _brokers(member, owned * member, federated, background, seed)
    units = sum(_units(queues, member) for queues in (federated, background))
    _refuse_what_would_wrap(int(brokers.owned.sum()), units, federated)
    _run(ALGORITHMS[algorithm], brokers, federated, background, _units(federated, member))
    return tuple(brokers.waits.tolist())


def _units(queues: Queues, member: Ints) -> int:
    return int(queues.units[np.repeat(member, np.diff(queues.first)) == 1].sum())


def _refuse_what_would_wrap(processors: int, units: int, federated: Queues) -> None:
    """Raises if sums may wrap: all processors work while a unit waits, which bounds the end."""
    end = int(federated.release.max(initial=0)) + HOUR * (units // processors + 2)
    if max(2 * processors * end * (end + 1), units * end * HOUR) >= 2**62:
        raise ReplayError(
            f"{units} hours of work on {processors} processors: the utility may exceed 64 bits; "
            "take more processors"
        )


def _brokers(
    member: Ints, owned: Ints, federated: Queues, background: Queues, seed: int
) -> Brokers:
    k, m = len(owned), int(owned.sum())

    def none(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    def last(queues: Queues) -> Ints:
        return np.where(member == 1, queues.first[1:], queues.first[:-1])

    return Brokers(
        owned=owned,
        free=owned.copy(),
        arriving=federated.first[:-1].copy(),
        last=last(federated),
        background_arriving=background.first[:-1].copy(),
        background_last=last(background),
        head=federated.first[:-1].copy(),
        left=none(k),
        waiting=none(k),
        background=none(k),
        utility=none(k, 3),
        contribution=none(k, 3),
        released=none(2, k, 2),
        served=np.full(k, -1, dtype=np.int64),
        end=none(m),
        owner=none(m),
        organization=none(m),
        release=none(m),
        ring=none(2),
        waits=none(k),
        random=np.array([seed % 2**64], dtype=np.uint64),
    )


@native("brokers_run")
def _run(
    algorithm: int, brokers: Brokers, federated: Queues, background: Queues, units: int
) -> None:
    """Goes from moment to moment until all units of the federation have started."""
