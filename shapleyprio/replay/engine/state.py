"""The state of the engine: the jobs, every coalition's schedule so far, and the recorded one.

Named tuples of arrays, which functions in C get as structs. The sums of part-seconds
are kept much as in `shapleyprio.fairness.worth`: three moments of the events "w processors start
(−w: stop) working at second τ", Σw, Σwτ and Σwτ(τ−1)/2, and a worth that is a polynomial in the
time. Where 64 bits are too few for the last one (`wide`), it has a second limb behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.engine.keys import Ints, Keys
from shapleyprio.replay.workloads.bays import Bays

PARTITION, FOLLOWING, ARRIVING = range(3)
FREE, WANTED, CLOSED = range(3)
SIZE, RESERVED, SPARE, OPEN, WAITING = range(5)
HEAD, REST, DEMAND, PASSED, LAST = range(5)


class BaySchedules(NamedTuple):
    """Bays, and what coalitions have in them.

    The jobs of organization u in partition p are a queue, number u · partitions + p. Columns:

    Attributes:
        reach: [p, x], whether a partition has a bay; a job takes processors of the first of them
            first.
        jobs: [jobs, 3], PARTITION, FOLLOWING: the next job of the same queue, −1 for the last one;
            ARRIVING: not of that job, but the job that comes in its place in order of release.
        bays: [c, x, 3], FREE: idle processors, fewer than none where fewer are
            left than are busy, WANTED: room for how many are asked for or missing, CLOSED: the
            moment at which the bay was last closed for a job that waits for it, −1 at first.
        partitions: [c, p, 5], SIZE: the most processors there ever are, RESERVED: until when what
            starts now has to end for a job of the partition, SPARE: processors that will then be
            left over, OPEN: those that a job of the partition could get now, WAITING: those that
            its waiting jobs need.
        queues: [c, q, 4], HEAD: the first job that has not started whole, the next one if none
            waits, REST: processors that its copies still need, all of them if it is rigid,
            DEMAND: processors that the waiting jobs need, PASSED: the moment at which the head was
            last passed over, −1 at first, LAST: the last job that waits, where some depend on
            others.
        unused: [k, x], processors of each organization in each bay, less those that work for it
            there, in the schedule that is written down.
        sharing: [p, p], whether two partitions have a bay in common.
        closes: [p], the second at which no job of a partition may run, NEVER if there is none; [0]
            if there is none for all.
        missing: [jobs], processors on which others have to end before a job is released that
            depends on them, −1 once it is; [0] if none does.
        first_behind: [jobs + 1], on job i depend behind[first_behind[i]] up to
            behind[first_behind[i + 1]].
        behind: jobs that depend on others.
        free_of: [x, k], idle processors of each owner, in the schedule that is
            written down.
        given: [k], room for how many of each a job gets in a bay.
    """

    reach: NDArray[np.bool_]
    jobs: Ints
    bays: Ints
    partitions: Ints
    queues: Ints
    unused: Ints
    sharing: NDArray[np.bool_]
    closes: Ints
    missing: Ints
    first_behind: Ints
    behind: Ints
    free_of: Ints
    given: Ints


def numbers_of(bays: Bays) -> int:
    """Returns how many numbers each coalition takes."""
    count, k = bays.owned.shape
    numbers: int = 3 * count + (5 + 5 * k) * len(bays.partitions)
    return numbers


def no_bays() -> BaySchedules:
    """Makes the state of coalitions whose jobs may get any processor."""
    none = np.zeros((0, 0), dtype=np.int64)
    return BaySchedules(
        reach=np.zeros((0, 0), dtype=np.bool_),
        jobs=none,
        bays=none,
        partitions=none,
        queues=none,
        unused=none,
        sharing=np.zeros((0, 0), dtype=np.bool_),
        closes=none.reshape(-1),
        missing=none.reshape(-1),
        first_behind=none.reshape(-1),
        behind=none.reshape(-1),
        free_of=none,
        given=none.reshape(-1),
    )


def schedules_in(
    bays: Bays, organization: Ints, release: Ints, takes_part: NDArray[np.bool_]
) -> BaySchedules:
    """Makes the state of coalitions in which nothing has happened yet.

    Args:
        bays: of processors.
        organization: [jobs], whose each one is.
        release: [jobs].
        takes_part: [c, k], whether organization u is a member.
    """
    partitions = len(bays.partitions)
    jobs = np.empty((len(bays.partition), 3), dtype=np.int64)
    jobs[:, PARTITION] = bays.partition
    queue = organization * partitions + bays.partition
    order = np.argsort(queue, kind="stable")
    jobs[:, FOLLOWING] = -1
    same = queue[order[:-1]] == queue[order[1:]]
    jobs[order[:-1][same], FOLLOWING] = order[1:][same]
    jobs[:, ARRIVING] = np.argsort(release, kind="stable")
    first = np.append(order, -1)[np.searchsorted(queue[order], np.arange(bays.queues))]
    free = takes_part @ bays.owned.T
    in_bays = np.zeros((*free.shape, 3), dtype=np.int64)
    in_bays[:, :, FREE], in_bays[:, :, CLOSED] = free, -1
    of_partitions = np.zeros((len(free), partitions, 5), dtype=np.int64)
    of_partitions[:, :, SIZE] = of_partitions[:, :, OPEN] = free @ bays.reach.T
    queues = np.zeros((len(free), bays.queues, 5), dtype=np.int64)
    queues[:, :, HEAD], queues[:, :, PASSED] = first, -1
    none = np.zeros(0, dtype=np.int64)
    return BaySchedules(
        reach=np.ascontiguousarray(bays.reach),
        jobs=jobs,
        bays=in_bays,
        partitions=of_partitions,
        queues=queues,
        unused=np.array(bays.owned.T, order="C"),
        sharing=np.ascontiguousarray(bays.sharing),
        closes=none,
        missing=none,
        first_behind=none,
        behind=none,
        free_of=np.array(bays.owned, order="C"),
        given=np.zeros(bays.owned.shape[1], dtype=np.int64),
    )


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
    `shapleyprio.fairness.worth`).

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
