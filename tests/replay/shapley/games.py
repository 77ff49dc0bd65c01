"""Small games, drawn at random, and a literal account of what coalitions do in them."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from hypothesis import strategies as st

from shapleyprio.fairness.utility import worth
from shapleyprio.replay.shapley.game import Game


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
