"""Jobs that need several processors at once: what does not fit, and what may pass it (EASY).

The first job that does not fit gets a reservation for the moment at which enough processors will
be free if running jobs last as long as expected. Another organization's first job may start
before it if that does not delay it, as far as one can expect.
"""

from __future__ import annotations

from shapleyprio.replay.compiled import inlined
from shapleyprio.replay.kernel.running import COUNT_BITS, LARGEST_COUNT, OWNER_BITS, pop, push
from shapleyprio.replay.kernel.state import NEVER, Coalitions, Jobs


@inlined
def consider(
    jobs: Jobs, state: Coalitions, c: int, t: int, job: int, reserved_until: int, spare: int
) -> tuple[bool, int, int]:
    """Returns whether a job may start now, and what becomes of the reservation.

    Args:
        jobs: what is scheduled.
        state: of the coalitions.
        c: the coalition.
        t: the moment.
        job: the one that may start or not.
        reserved_until: the moment reserved for the first job that does not fit, NEVER for none.
        spare: processors that will then be left over.
    """
    width = jobs.width[job]
    if width > state.free[c]:
        if jobs.backfill[0] != 0 and reserved_until == NEVER:
            reserved_until, spare = _reservation(jobs, state, c, t, width)
        return False, reserved_until, spare
    if reserved_until == NEVER or t + jobs.estimate[job] <= reserved_until:
        return True, reserved_until, spare
    if width <= spare:
        return True, reserved_until, spare - width
    return False, reserved_until, spare


@inlined
def _reservation(jobs: Jobs, state: Coalitions, c: int, t: int, width: int) -> tuple[int, int]:
    """Returns when a job that does not fit could start, and what would be left over then.

    Running jobs are expected to end when their estimates say, overdue ones in the next second.
    """
    first, running = state.heap[c], state.running[c]
    for place in range(running):
        what = state.ends[2 * (first + place) + 1]
        job = what >> (OWNER_BITS + COUNT_BITS)
        start = state.ends[2 * (first + place)] - jobs.processing_time[job]
        end = max(start + jobs.estimate[job], t + 1)
        push(state.expected, first, place, end, what)
    free, at = state.free[c], t
    while running > 0 and (free < width or state.expected[2 * first] == at):
        at = state.expected[2 * first]
        free += state.expected[2 * first + 1] & LARGEST_COUNT
        pop(state.expected, first, running)
        running -= 1
    return at, free - width
