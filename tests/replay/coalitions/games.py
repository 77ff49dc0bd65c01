"""Small games, drawn at random, and a literal account of what coalitions do in them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from hypothesis import strategies as st

from shapleyprio.fairness.shapley import members
from shapleyprio.fairness.worth import worth
from shapleyprio.replay.coalitions.game import Game
from shapleyprio.replay.coalitions.ways import DecidingCoalitions, can_decide
from shapleyprio.replay.workloads.bays import Bays
from shapleyprio.replay.workloads.choices import Backfill, Wide
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Window, Workload
from tests.replay import literal, literal_unions
from tests.replay.literal_bays import ConfinedSchedule, Processor


@st.composite
def games(draw: st.DrawFn, *, organizations: int = 4, jobs: int = 10) -> Game:
    """Games in which processors come and go and parts may saturate."""
    k = draw(st.integers(1, organizations))
    begin = draw(st.integers(-3, 3))
    until = begin + draw(st.integers(0, 25))
    drawn = draw(
        st.lists(
            st.tuples(
                st.integers(begin, begin + 25),
                st.integers(0, k - 1),
                st.integers(1, 8),
                st.integers(1, 4),
            ),
            max_size=jobs,
        )
    )
    later = draw(st.sets(st.integers(begin + 1, begin + 25), max_size=3))
    since = [begin, *sorted(later)]
    owned = draw(
        st.lists(
            st.lists(st.integers(0, 4), min_size=k, max_size=k),
            min_size=len(since),
            max_size=len(since),
        )
    )
    columns = np.array(sorted(drawn, key=lambda job: job[0]), dtype=np.int64).reshape(-1, 4)
    return Game(
        release=columns[:, 0],
        organization=columns[:, 1],
        processing_time=columns[:, 2],
        processors=columns[:, 3],
        since=np.array(since, dtype=np.int64),
        owned=np.array(owned, dtype=np.int64),
        until=until,
        horizon=draw(st.none() | st.integers(1, 20)),
    )


@st.composite
def growing_games(draw: st.DrawFn, *, organizations: int = 4, jobs: int = 12) -> list[Game]:
    """What is known of one game at rising moments; now and then what was certain was wrong.

    Jobs run as they happen to: some begin long after their release, some never. A guess of a
    processing time is longer than what has elapsed. Some jobs become known late or vanish, and
    some were other ones than was believed.
    """
    k = draw(st.integers(1, organizations))
    row = st.tuples(
        st.integers(0, 30),  # release
        st.integers(0, k - 1),
        st.integers(1, 9),  # processing time
        st.integers(1, 3),  # processors
        st.sampled_from([0, 0, 1, 3, 10, 100]),  # seconds it waited
        st.sampled_from([0, 0, 0, 0, 5, 12]),  # seconds by which its record is late
    )
    drawn = sorted(draw(st.lists(row, max_size=jobs)), key=lambda job: job[0])
    begin = draw(st.integers(-3, 0))
    since = [begin, *sorted(draw(st.sets(st.integers(1, 30), max_size=3)))]
    row_of_owned = st.lists(st.integers(0, 3), min_size=k, max_size=k)
    owned = draw(st.lists(row_of_owned, min_size=len(since), max_size=len(since)))
    horizon = draw(st.none() | st.integers(1, 40))
    rows, found = list(drawn), []
    for until in sorted(draw(st.lists(st.integers(0, 40), min_size=2, max_size=6))):
        if rows and draw(st.integers(0, 4)) == 0:
            place = draw(st.integers(0, len(rows) - 1))
            again = draw(st.none() | row)
            rows[place : place + 1] = [] if again is None else [again]
            rows.sort(key=lambda job: job[0])
        if draw(st.integers(0, 9)) == 0:
            owned = [*owned[:-1], draw(row_of_owned)]
        if draw(st.integers(0, 9)) == 0:
            horizon = draw(st.none() | st.integers(1, 40))
        known = [job for job in rows if job[0] + job[5] <= until]
        columns = np.array(known, dtype=np.int64).reshape(-1, 6).T
        release, organization, seconds, processors, waited, _ = columns
        certain = np.clip(until - release - waited, 0, seconds)
        guesses = st.lists(st.integers(1, 20), min_size=len(known), max_size=len(known))
        guess = certain + np.array(draw(guesses), dtype=np.int64)
        changes = sum(second <= until for second in since)
        found.append(
            Game(
                organization=organization,
                release=release,
                processing_time=np.where(certain == seconds, seconds, guess),
                processors=processors,
                since=np.array(since[:changes], dtype=np.int64),
                owned=np.array(owned[:changes], dtype=np.int64),
                until=until,
                horizon=horizon,
                certain=certain,
            )
        )
    return found


WIDE: st.SearchStrategy[Wide] = st.sampled_from(["rigid", "expand"])
BACKFILLS: st.SearchStrategy[Backfill] = st.sampled_from(["none", "easy"])


@st.composite
def kept_whole(draw: st.DrawFn, drawn: st.SearchStrategy[list[Game]]) -> list[Game]:
    """The same games with jobs that need all their processors at once, or some of them, or both.

    Without bays processors stay as they are at first. Partitions and time limits follow from when a
    job was released, and bays from when processors came, so that they are the same in all games.
    """
    games = draw(drawn)
    wide = draw(WIDE)
    backfill = draw(BACKFILLS) if wide == "rigid" else "none"
    bays = draw(st.none() | _bays()) if wide == "rigid" else draw(_bays())
    changing = bays is not None and draw(st.booleans())
    limits = draw(st.lists(st.sampled_from([UNKNOWN, 4, 9, 30]), min_size=5, max_size=5))
    found = []
    for game in games:
        of_job = in_bays = None
        since = game.since if changing else game.since[:1]
        owned = game.owned[: len(since)]
        if bays is not None:
            first = np.minimum(owned, (since[:, None] + np.arange(game.organizations)) % 4)
            in_bays = np.stack((first, owned - first), axis=1)
            partition = np.array(game.release % len(bays.partitions), dtype=np.int32)
            of_job = replace(bays, owned=in_bays[0], partition=partition)
        found.append(
            replace(
                game,
                since=since,
                owned=owned,
                limit=np.array(limits, dtype=np.int64)[game.release % 5],
                wide=wide,
                backfill=backfill,
                bays=of_job,
                owned_in=in_bays if changing else None,
            )
        )
    return found


@st.composite
def _bays(draw: st.DrawFn) -> Bays:
    """Up to three partitions of two bays, without processors yet."""
    partitions = draw(st.integers(1, 3))
    reach = draw(st.lists(st.sampled_from([(1, 0), (0, 1), (1, 1)]), min_size=3, max_size=3))
    return Bays(
        partitions=tuple("abc"[:partitions]),
        reach=np.array(reach[:partitions], dtype=np.bool_),
        owned=np.zeros((2, 0), dtype=np.int64),
        partition=np.zeros(0, dtype=np.int32),
    )


def literal_value(game: Game, members: Collection[int]) -> list[int]:
    """v(C), parts and processors, second by second: what ends leaves, then first copies start."""
    copies = [
        (int(game.release[job]), int(game.processing_time[job]))
        for job in range(len(game.release))
        if int(game.organization[job]) in members
        for _ in range(int(game.processors[job]))
    ]
    running: list[int] = []
    worths = np.zeros(3, dtype=np.int64)
    for second in range(int(game.since[0]), game.until + 1):
        running = [end for end in running if end > second]
        row = int(np.searchsorted(game.since, second, side="right")) - 1
        owned = sum(int(game.owned[row, u]) for u in members)
        while copies and copies[0][0] <= second and len(running) < owned:
            _, processing_time = copies.pop(0)
            end = second + processing_time
            running.append(end)
            value = worth(second, end, game.until, horizon=game.horizon)
            worths += (value, *_growth(second, end, game))
    return [int(number) for number in worths]


class ChangingSchedule(literal.CoalitionSchedule):
    """A coalition whose processors come and go; what they work on when they go is finished."""

    def __init__(self, game: Game, workload: Workload, coalition: literal.Coalition) -> None:
        super().__init__(workload, coalition)
        self.changes = (game.since - game.since[0]).tolist()
        self.brought = game.owned[:, sorted(coalition)].sum(axis=1).tolist()

    def events(self) -> Iterator[int]:
        yield from super().events()
        yield from self.changes

    def free(self, t: int) -> int:
        brought: int = self.brought[bisect_right(self.changes, t) - 1]
        return max(brought - sum(start.task.processors for start in self.running(t)), 0)


class ChangingConfinedSchedule(ConfinedSchedule):
    """The same where jobs are kept to bays, whose processors come and go each for itself."""

    def __init__(self, game: Game, workload: Workload, coalition: literal.Coalition) -> None:
        super().__init__(workload, coalition)
        self.changes = (game.since - game.since[0]).tolist()
        self.brought = game.by_bay[:, :, sorted(coalition)].sum(axis=2).tolist()

    def events(self) -> Iterator[int]:
        yield from super().events()
        yield from self.changes

    def free_in(self, bay: int, later: int, t: int) -> int:
        """Processors of a bay that will be free later, as far as it is known at t."""
        brought: int = self.brought[bisect_right(self.changes, t) - 1][bay]
        held = sum(
            [x for x, _ in processors].count(bay)
            for start, processors in zip(self.starts, self.held, strict=True)
            if start.end > t and start.estimated_end(t) > later
        )
        return max(brought - held, 0)

    def free_now(self, t: int, without: Iterable[int] = ()) -> list[Processor]:
        bays = [bay for bay in range(len(self.brought[0])) if bay not in without]
        return [(bay, 0) for bay in bays for _ in range(self.free_in(bay, t, t))]

    def free_later(self, later: int, bays: list[int], t: int) -> int:
        return sum(self.free_in(bay, later, t) for bay in bays)


def literal_decided_values(game: Game) -> list[list[int]]:
    """The same of all coalitions by bit mask, when each decides as under Ref (Fig. 1 and 3)."""
    ref_schedules = literal.ref_schedules if game.unions is None else literal_unions.ref_schedules
    schedules = ref_schedules(_workload(game), make=partial(_schedule, game))
    coalitions = (frozenset(members(mask)) for mask in range(2**game.organizations))
    return [_worths(game, schedules[coalition]) for coalition in coalitions]


def literal_first_come_value(game: Game, coalition: Collection[int]) -> list[int]:
    """v(C), parts and processors, if it serves by release whatever the rules of the game are."""
    workload = _workload(game)
    schedule = _schedule(game, workload, frozenset(coalition))
    for t in literal.moments(workload, [schedule]):
        schedule.decide(t, literal.first_come(schedule))
    return _worths(game, schedule)


def _schedule(
    game: Game, workload: Workload, coalition: literal.Coalition
) -> literal.CoalitionSchedule:
    if game.bays is not None:
        return ChangingConfinedSchedule(game, workload, coalition)
    return ChangingSchedule(game, workload, coalition)


def _workload(game: Game) -> Workload:
    begin = int(game.since[0])
    order = np.argsort(game.organization, kind="stable")
    unknown, most = np.full(len(order), UNKNOWN), game.by_bay.max(axis=0)
    return Workload(
        organizations=tuple("abcdefgh"[: game.organizations]),
        owned=most.sum(axis=0),
        window=Window(start=0, length=game.until - begin + 1),
        job=order,
        organization=game.organization[order].astype(np.int32),
        release=game.release[order] - begin,
        processing_time=game.processing_time[order],
        processors=game.processors[order],
        limit=unknown if game.limit is None else game.limit[order],
        start=unknown,
        position=order,
        unions=game.unions,
        wide=game.wide,
        backfill=game.backfill,
        bays=None if game.bays is None else replace(game.bays.of_jobs(order), owned=most),
    )


def _worths(game: Game, schedule: literal.CoalitionSchedule) -> list[int]:
    begin, worths = int(game.since[0]), np.zeros(3, dtype=np.int64)
    for start in schedule.starts:
        first, end = start.start + begin, start.end + begin
        value = worth(first, end, game.until, horizon=game.horizon)
        worths += np.multiply(start.task.processors, (value, *_growth(first, end, game)))
    return [int(number) for number in worths]


def _growth(begin: int, end: int, game: Game) -> tuple[int, int]:
    """Parts of one copy that gain worth, and processors at work less those whose parts saturate."""
    gaining = [
        part
        for part in range(begin, min(end, game.until))
        if game.horizon is None or game.until - part <= game.horizon
    ]
    working = int(begin <= game.until < end)
    if game.horizon is not None:
        working -= int(begin <= game.until - game.horizon < end)
    return len(gaining), working


def check_growing(grown: Iterable[Game], block: int) -> None:
    """Asserts that values of a game that grows are those of each game from scratch."""
    coalitions = DecidingCoalitions(longest_block=block)
    for game in grown:
        if can_decide(game):
            expected = DecidingCoalitions().values(game)
            for _ in range(2):
                assert (coalitions.values(game) == expected).all()
