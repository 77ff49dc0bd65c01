"""What was found in a game and still holds in a later one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shapleyprio.replay.coalitions.game import Bools
from shapleyprio.replay.coalitions.passes import CHANGE, FIXED, NOW, Arrays
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.state import NEVER
from shapleyprio.replay.native import native


def still_true(
    states: Mapping[bytes, Ints], old: Arrays, new: Arrays, time: int
) -> dict[bytes, Ints]:
    """Returns those states of coalitions that a pass over a later game reaches as well.

    Args:
        states: members of a coalition as bytes of bool[k] -> its state as in `passes`.
        old: the game in which they were reached.
        new: the later one.
        time: nothing after that is asked of the later game.
    """
    k = new.owned.shape[1]
    changes = _common_changes(old, new) if old.owned.shape[1] == k else 0
    if not states or changes == 0:
        return {}
    common, seen = np.zeros((2, k), dtype=np.int64)
    _common_jobs(old, new, common, seen)
    heads = np.array([state[: FIXED + k] for state in states.values()])
    members = np.frombuffer(b"".join(states), dtype=np.bool_).reshape(-1, k)
    now, change, taken = heads[:, NOW], heads[:, CHANGE], heads[:, FIXED:]
    holds = (now <= time) & (change <= changes) & (taken <= common).all(axis=1)
    holds &= np.append(new.since, NEVER)[change] > now
    holds &= _in_order(new, members, np.minimum(taken, np.diff(new.first)))
    return {key: state for (key, state), good in zip(states.items(), holds, strict=True) if good}


def _common_changes(old: Arrays, new: Arrays) -> int:
    """Counts the changes of processors with which both games begin."""
    count = min(len(old.since), len(new.since))
    same = old.since[:count] == new.since[:count]
    same &= (old.owned[:count] == new.owned[:count]).all(axis=1)
    return count if same.all() else int(same.argmin())


def _in_order(new: Arrays, members: Bools, taken: Ints) -> Bools:
    """Says whether no other job of the members comes before those that were taken: bool[c]."""
    queued = np.append(new.queued, NEVER)
    first, end = new.first[:-1], new.first[1:]
    last = np.where(taken > 0, queued[first + taken - 1], -1).max(axis=1, initial=-1)
    following = np.where(members & (taken < end - first), queued[first + taken], NEVER)
    in_order: Bools = following.min(axis=1, initial=NEVER) > last
    return in_order


@native("growth_common_jobs")
def _common_jobs(old: Arrays, new: Arrays, common: Ints, seen: Ints) -> None:
    """Counts how many of each organization's first jobs are the same, in the same order of all.

    Args:
        old: a game.
        new: a later one.
        common: int64[k], the numbers, zeros at first.
        seen: int64[k], zeros to work with.
    """
