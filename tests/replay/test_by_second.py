"""Rough keys are as near to exact ones as is said of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.replay.engine.beginning import coalitions_in, jobs_of, members_of, record_of
from shapleyprio.replay.engine.engine import exact_moments
from shapleyprio.replay.engine.keys import Keys
from shapleyprio.replay.engine.lattice import arriving, lattice_keys, make_potentials, run_blocks
from shapleyprio.replay.engine.limits import ref_block
from shapleyprio.replay.engine.state import World
from shapleyprio.replay.workloads.workload import Workload
from tests.examples import examples
from tests.replay.test_horizon import with_horizon
from tests.replay.test_ref import QUEUES

LONG_QUEUES = st.one_of(QUEUES, with_horizon(QUEUES, longest=1_500))


@settings(max_examples=examples(30))
@given(workload=LONG_QUEUES, number=st.integers(0, 4))
def test_rough_keys_that_differ_by_more_than_the_doubt_are_in_order(
    workload: Workload, number: int
) -> None:
    keys = after_block(workload, number)
    by, begin = keys.by_second, int(keys.begin[0])
    cell, doubt = 1 << int(by.cell_bits[0]), float(by.doubt[0])
    by.made[0] = 1
    make_potentials(keys, len(by.members))
    for t in range(begin, begin + keys.rows.shape[1], 7):
        point, within = divmod(t - begin, cell)
        before, behind = by.potential[:, point], by.potential[:, point + 1]
        rough = before + (behind - before) * (within / cell)
        errors = [
            float(Fraction(found) - exact)
            for found, exact in zip(rough.tolist(), potentials(keys, t), strict=True)
        ]
        assert max(errors) - min(errors) <= doubt


def after_block(workload: Workload, number: int) -> Keys:
    """Keys after Ref has come through that block, or the last one."""
    block, k = ref_block(workload), len(workload.organizations)
    jobs, seconds = jobs_of(workload), block.seconds
    state = coalitions_in(workload, jobs, members_of(np.arange(2**k), k), block)
    record = record_of(workload, jobs, 2**k - 1, 0, wide=block.wide)
    keys = lattice_keys(k, block)
    length = workload.window.length
    blocks = -(-length // seconds)
    last = min(number, blocks - 1) + 1
    world, arrivals = World(jobs, state, keys, record), arriving(jobs, blocks, seconds)
    run_blocks(world, arrivals, 0, last, length, np.zeros(1, dtype=np.int64))
    return keys


def potentials(keys: Keys, t: int) -> list[Fraction]:
    """P(C, t) of all coalitions, by their notes."""
    entries, found = keys.notes.entries, [Fraction(0)]
    for c in range(1, len(keys.by_second.members)):
        place = int(keys.notes.first[c])
        while entries[place + 1, 0] < t:
            place += 1
        bits = [bit for bit in range(c.bit_length()) if c >> bit & 1]
        total = exact_moments(entries[place, 1:]).worth(t) + sum(
            found[c ^ (1 << bit)] for bit in bits
        )
        found.append(Fraction(total, len(bits)))
    return found
