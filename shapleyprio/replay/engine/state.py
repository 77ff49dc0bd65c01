"""The state of the engine: the jobs, every coalition's schedule so far, and the recorded one.

Named tuples of arrays, which functions in C get as structs. The sums of part-seconds
are kept much as in `shapleyprio.fairness.utility`: three moments of the events "w processors start
(−w: stop) working at second τ", Σw, Σwτ and Σwτ(τ−1)/2, and a worth that is a polynomial in the
time. Where 64 bits are too few for the last one (`wide`), it has a second limb behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.engine.bay_state import BaySchedules, no_bays
from shapleyprio.replay.engine.keys import Ints, Keys

NEVER = 2**62
"""A time that does not come."""


NOTHING_PASSES, OTHERS_PASS, ALL_PASS = range(3)
"""Which jobs may pass a rigid one that does not fit."""


class Jobs(NamedTuple):
    """The jobs as the organizations queue them; nothing here ever changes.

    Attributes:
        first: [organizations + 1], the jobs of u are first[u] up to first[u + 1], in FIFO order.
        organization, release, processing_time, width: [jobs].
        certain: [jobs], seconds of each processing time that are known; all, but for games of which
            the future is guessed.
        estimate: [jobs], the processing time that a backfilling scheduler expects.
        position: [jobs], place in the log.
        arrival, arrival_of, arrival_width: [jobs], release, organization and width of the jobs
            in order of release.
        rigid: [1], whether a job needs all its processors at once.
        backfill: [1], which may pass a rigid job that does not fit: `NOTHING_PASSES`,
            `OTHERS_PASS` of other organizations, or `ALL_PASS`, in one schedule with bays.
        unions: [k], the number of each organization's union; [0] if all stand alone.
    """

    first: Ints
    organization: Ints
    release: Ints
    processing_time: Ints
    width: Ints
    certain: Ints
    estimate: Ints
    position: Ints
    arrival: Ints
    arrival_of: Ints
    arrival_width: Ints
    rigid: Ints
    backfill: Ints
    unions: Ints


class PastEvents(NamedTuple):
    """What coalitions did within the last horizon, and what is older; empty without a horizon.

    An event is "w processors start (−w: stop) working at second τ". Every part is worth
    min(age, H), which is its age less what it is older than H: when H seconds have passed, the
    event is subtracted from what its parts are worth, as if it happened then (see
    `shapleyprio.fairness.utility`).

    Attributes:
        horizon: [1], seconds.
        due: [c], when the oldest event is a horizon old; NEVER if there is none. [0] without a
            horizon, and that is how the engine knows.
        oldest, newest: [c], number of the oldest event, and of the one to come.
        first: [c + 1], where a coalition's events begin; those up to the next one's are its room.
        events: [., 2], event i stands at i modulo the room: its second, and whose it is and how
            many processors in one number.
        in_a_second, within: [c], events of a coalition in a second, and in a horizon, at most.
        utility: [c, k, 3 or 4], moments of each organization's older events, a horizon later.
        total: [c, 3 or 4], of all older events.
        contribution: [k, 3 or 4], of those on each organization's processors, in the schedule
            that is written down.
    """

    horizon: Ints
    due: Ints
    oldest: Ints
    newest: Ints
    first: Ints
    events: Ints
    in_a_second: Ints
    within: Ints
    utility: Ints
    total: Ints
    contribution: Ints


class Coalitions(NamedTuple):
    """Schedules of coalitions, one row each.

    Attributes:
        takes_part: [c, k], whether organization u is a member.
        processors: [c], of all members.
        widest: [c], the most that they ever have: rigid jobs wider than that are passed over.
        free: [c], the idle ones.
        now: [c], the moment it has come to.
        undecided: [c], whether starts at that moment are still to be decided.
        arrived: [c], how many of all arrivals it has passed.
        waiting: [c], how many organizations have a job that waits.
        demand: [c], processors that all waiting jobs need.
        demand_of: [c, k], those of each organization.
        head: [c, k], the first job that has not started whole; the next one if none waits.
        rest: [c, k], processors that its copies still need; all of them if it is rigid.
        passed: [c, k], the moment at which its head was last passed over, −1 at first.
        served: [c], the organization that started last, −1 at first.
        utility: [c, k, 3 or 4], moments of each organization's jobs.
        total: [c, 3 or 4], moments of all jobs.
        guessing: [c], the first moment from which a job runs of which it is unknown whether it
            still does; NEVER if there is none.
        next_end: [c], when the next running job ends.
        running: [c], how many entries its heap has.
        heap: [c + 1], where its heap begins.
        ends: [2 ·], heaps of running jobs, the earliest end first: the end, and behind it what ends
            there, job, owner and processors in one number.
        expected: [2 ·], the same by expected ends, the latest first, if jobs may be passed; else
            empty.
        past: what has to be known to apply a horizon.
    """

    takes_part: NDArray[np.bool_]
    processors: Ints
    widest: Ints
    free: Ints
    now: Ints
    undecided: Ints
    arrived: Ints
    waiting: Ints
    demand: Ints
    demand_of: Ints
    head: Ints
    rest: Ints
    passed: Ints
    served: Ints
    utility: Ints
    total: Ints
    guessing: Ints
    next_end: Ints
    running: Ints
    heap: Ints
    ends: Ints
    expected: Ints
    past: PastEvents


RANDOM, LEAST_LOADED, AS_RECORDED = range(3)

PLACING = {"random": RANDOM, "least-loaded": LEAST_LOADED, "recorded": AS_RECORDED}


class Record(NamedTuple):
    """The schedule that is written down, with the owners of the processors.

    Attributes:
        coalition: [1], to which it belongs.
        owned: [k], processors of each organization.
        free_of: [k], those that are free.
        contribution: [k, 3 or 4], moments of the work on each organization's processors.
        released: [2, k, 2 or 3], moments of releases, of jobs and of the work on processors: what a
            part gains in worth if it counts from its job's release (ψ′ of CloudShare).
        credits: [k], of Karma, in halves (`native/karma.h`).
        usage: [k], decayed processor-seconds of each organization's jobs (`native/decay.h`).
        decay: [2, steps], how usage decays (`decay.steps_of`); [2, 0] if it does not.
        fair_share: [2, k], of KAI: processors, and what was rounded down (`native/kai.h`).
        guarantee: [4], wait after which a job goes first that fits into what its organization
            lends, NEVER without one; how often it was looked who asks for it; how many that ask
            have a reservation at this moment, with partitions; and whether they ask ahead.
        asks: [jobs, 2], since which look each one asks, and at which it asked last; [0, 2] but with
            a guarantee for whole jobs (`native/asking.h`).
        asking: [room], the jobs that ask, the one that goes first at the begin.
        reserved: [room + 1, 2], of each reservation of a moment the second, and the processors
            that it leaves over then.
        lent: [p or 1], room for what an organization lends in each partition.
        random: [1], state of the generator of random numbers.
        placing: [1], RANDOM, LEAST_LOADED or AS_RECORDED: whose free processors a job gets.
        first_part: [jobs + 1], job i really got the parts first_part[i] up to first_part[i + 1].
        part_owner, part_processors: [parts], how many of whose; both empty unless AS_RECORDED.
        given: [k], room for how many of each a job gets.
        size: [1], how many entries there are.
        job, start, owner, bay, copies: [room], the entries; bays are 0 without partitions.
    """

    coalition: Ints
    owned: Ints
    free_of: Ints
    contribution: Ints
    released: Ints
    credits: Ints
    usage: NDArray[np.float64]
    decay: NDArray[np.float64]
    fair_share: Ints
    guarantee: Ints
    asks: Ints
    asking: Ints
    reserved: Ints
    lent: Ints
    random: NDArray[np.uint64]
    placing: Ints
    first_part: Ints
    part_owner: Ints
    part_processors: Ints
    given: Ints
    size: Ints
    job: NDArray[np.int32]
    start: Ints
    owner: NDArray[np.int32]
    bay: NDArray[np.int32]
    copies: NDArray[np.int32]


class World(NamedTuple):
    """All that the engine works on; without partitions `bays` is empty."""

    jobs: Jobs
    state: Coalitions
    keys: Keys
    record: Record
    bays: BaySchedules = no_bays()


PIECES = 200
"""In how many pieces a window is scheduled, for progress and for Ctrl-C."""


def pieces_of(length: int) -> Iterator[int]:
    """Returns the ends of the pieces of a length, the last one being its end."""
    pieces = min(PIECES, length)
    return (length * piece // pieces for piece in range(1, pieces + 1))
