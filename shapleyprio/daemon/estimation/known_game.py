"""The game of a cluster's past: whose jobs and processors there were, as far as is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shapleyprio.daemon.estimation.known_runs import KnownPast, PastRun, user_in_account
from shapleyprio.daemon.estimation.messages import WaitingJob
from shapleyprio.replay.coalitions.game import Bools, Game, Ints
from shapleyprio.replay.coalitions.survivors import Survivors
from shapleyprio.replay.workloads.bays import Bays
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.nodes import ANY
from shapleyprio.store import CapacityRow, WaitingWork

NOWHERE = -1
"""Stands for a partition in which no organization has had any processors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCapacity:
    """Processors of nodes, and the bays into which partitions cut these.

    Nodes that were in exactly the same partitions are a bay, also where this was so at different
    times. Those in the fewest partitions come first, as in a replay.

    Attributes:
        bays: names of the partitions that each has.
        since: int64[changes], seconds at which processors change, the first is the begin.
        owned: int64[changes, bays, k], processors of each organization from that second on.
    """

    bays: tuple[tuple[str, ...], ...]
    since: Ints
    owned: Ints

    @property
    def partitions(self) -> tuple[str, ...]:
        """Names of all partitions, and first the one of jobs whose partition is not known."""
        return (ANY, *sorted({name for names in self.bays for name in names}))

    def places_of(self, names: Iterable[str]) -> Ints:
        """Returns where partitions stand among those here, NOWHERE for one that is not."""
        place = {name: number for number, name in enumerate(self.partitions)}
        return np.array([place.get(name, NOWHERE) for name in names], dtype=np.int64)

    def most_in(self, place: Ints) -> Ints:
        """Returns the most processors that partitions ever have, 0 for NOWHERE."""
        of_bays = self.owned.sum(axis=2)
        most = (of_bays @ self._reach().T).max(axis=0)
        return np.where(place == NOWHERE, 0, most[place])

    def bays_for(self, partition: Ints, *, always: bool = False) -> Bays | None:
        """Returns which processors each job may have; None if all have all.

        Args:
            partition: int64[jobs], as `places_of` has it.
            always: None is not returned.
        """
        reach = self._reach()
        if reach.all() and not always:
            return None
        return Bays(
            partitions=self.partitions,
            reach=reach,
            owned=self.owned[-1],
            partition=partition.astype(np.int32),
        )

    def _reach(self) -> Bools:
        """Returns bool[partitions, bays], whether a partition has a bay."""
        partitions = self.partitions
        return np.array([[p == ANY or p in names for names in self.bays] for p in partitions])


def known_capacity(
    rows: Iterable[CapacityRow], organizations: Sequence[str], begin: int, t: int
) -> KnownCapacity:
    """Returns the capacity of organizations from a first to a last second.

    Args:
        rows: of the cluster.
        organizations: names, in the order of the game.
        begin: the first one, in seconds since the epoch.
        t: the last one.
    """
    now: dict[str, Mapping[tuple[str, ...], int]] = {}
    levels = {begin: now}
    for row in sorted(rows, key=lambda row: row.since):
        if row.organization in organizations and row.since <= t:
            now = now | {row.organization: row.processors}
            levels[max(row.since, begin)] = now
    found = {names for level in levels.values() for held in level.values() for names in held}
    bays = tuple(sorted(found, key=lambda names: (len(names), names))) or ((),)
    nothing: Mapping[tuple[str, ...], int] = {}
    owned = [
        [[level.get(name, nothing).get(names, 0) for name in organizations] for names in bays]
        for level in levels.values()
    ]
    return KnownCapacity(
        bays=bays,
        since=np.array(list(levels), dtype=np.int64),
        owned=np.array(owned, dtype=np.int64).reshape(len(levels), len(bays), -1),
    )


class KnownGame:
    """Makes the game of the past, and learns from it how long jobs last.

    It is the game that Slurm plays: jobs are kept whole and to their partitions, and its
    backfilling lets others pass. Jobs and processors of those who are not among the organizations
    take no part, nor do jobs wider than what these ever had in their partition. What ran at the
    begin is released there, with the rest of its processing time. What is known of jobs that ended
    is kept for the next game.

    Args:
        organizations: names, in the order of the game.
        unions: as in `Game`.
    """

    def __init__(
        self,
        organizations: Sequence[str],
        unions: tuple[int, ...] | None = None,
    ) -> None:
        self._unions = unions
        self._code = {name: u for u, name in enumerate(organizations)}
        self._users: dict[str, int] = {}
        self._partitions: dict[str, int] = {}
        self._expected: dict[int, int] = {}
        self._basis: tuple[int, int] | None = None
        self._restart()

    def game(self, past: KnownPast, waiting: Iterable[WaitingJob]) -> Game:
        """Returns the game from the first second whose runs are known to where the ledger stands.

        Args:
            past: of the cluster, after the first cycle; always the same one.
            waiting: jobs that have not started.

        Raises:
            GameError: numbers get too large.
        """
        assert past.watermark is not None, "there is no game before the first cycle"
        begin, t = past.begin, past.watermark.accounted_to
        if self._basis != (past.edition, begin):
            self._basis = (past.edition, begin)
            self._restart()
        self._take_ended(past.ended, begin, t)
        rows = [
            self._row_of_run(run, begin, t)
            for run in past.unfinished
            if self._plays(run, begin) and run.begin <= t
        ]
        for job in waiting:
            if self._counts(job, t):
                rows += [self._row_of_task(job, begin)] * job.tasks
        capacity = known_capacity(past.capacities, tuple(self._code), begin, t)
        table = np.concatenate((self._table, _table(rows)))
        place = capacity.places_of(self._partitions)
        most = capacity.most_in(place)
        columns = _columns(table[table[:, PROCESSORS] <= most[table[:, PARTITION]]])
        bays = capacity.bays_for(place[columns["partition"]])
        return Game(
            organization=columns["organization"],
            release=columns["release"],
            processing_time=self._processing_time(columns),
            processors=columns["processors"],
            since=capacity.since,
            owned=capacity.owned.sum(axis=1),
            until=t,
            horizon=past.watermark.horizon,
            certain=columns["executed"],
            limit=_limit_within(columns),
            wide="rigid",
            backfill="easy",
            bays=bays,
            unions=self._unions,
            owned_in=None if bays is None else capacity.owned,
        )

    def work_of(self, waiting: Iterable[WaitingJob]) -> tuple[WaitingWork, ...]:
        """Returns what pending jobs bring into the last game, by account and user, the most first.

        Args:
            waiting: jobs that have not started, as for the game.
        """
        found: dict[tuple[str, str, str], list[int]] = {}
        for job in waiting:
            if job.job_id in self._expected:
                of_user = found.setdefault((job.organization, job.account, job.user), [0, 0])
                of_user[0] += job.tasks
                of_user[1] += job.processors * self._expected[job.job_id]
        rows = (
            WaitingWork(
                organization=organization,
                account=account,
                user=user,
                jobs=tasks,
                processor_seconds=processor_seconds,
            )
            for (organization, account, user), (tasks, processor_seconds) in found.items()
        )
        return tuple(sorted(rows, key=lambda row: (-row.processor_seconds, row.account, row.user)))

    def _counts(self, job: WaitingJob, t: int) -> bool:
        """Returns whether a job that waits has a part in the game."""
        return job.organization in self._code and job.release <= t and job.processors > 0

    def _restart(self) -> None:
        self._predictor = Survivors()
        self._table = _table([])
        self._taken = 0
        self._last_lesson: tuple[int, int] = (-1, -1)

    def _take_ended(self, ended: Sequence[PastRun], begin: int, t: int) -> None:
        """Takes in the jobs whose end is news, and learns from them in the order of their ends."""
        news = sorted((_behind(run), run.job_id, run) for run in ended[self._taken :])
        if news and news[0][:2] < self._last_lesson and self._taken > 0:
            self._restart()
            self._take_ended(ended, begin, t)
            return
        for behind, job_id, run in news:
            length, user = behind - run.begin, self._user(run.user)
            self._predictor.learn(user, limit_of(run.limit), run.processors, length)
            self._last_lesson = (behind, job_id)
        rows = [self._row_of_run(run, begin, t) for _, _, run in news if self._plays(run, begin)]
        self._table = np.concatenate((self._table, _table(rows)))
        self._taken = len(ended)

    def _plays(self, run: PastRun, begin: int) -> bool:
        """Returns whether a run has a part in the game."""
        played = run.behind is None or run.behind > begin
        return played and run.organization in self._code and run.processors > 0

    def _user(self, name: str) -> int:
        return self._users.setdefault(name, len(self._users))

    def _partition(self, name: str) -> int:
        return self._partitions.setdefault(name, len(self._partitions))

    def _row_of_run(self, run: PastRun, begin: int, t: int) -> _Row:
        """Returns the part of a run that is in the game."""
        first = max(run.begin, begin)
        behind = t if run.behind is None else run.behind
        return _Row(
            release=begin if run.begin <= begin else max(run.release, begin),
            job=run.job_id,
            organization=self._code[run.organization],
            processors=run.processors,
            user=self._user(run.user),
            partition=self._partition(run.partition),
            limit=limit_of(run.limit),
            before=first - run.begin,
            executed=max(behind - first, 0),
            ended=run.ended,
        )

    def _row_of_task(self, job: WaitingJob, begin: int) -> _Row:
        return _Row(
            release=max(job.release, begin),
            job=job.job_id,
            organization=self._code[job.organization],
            processors=job.processors // job.tasks,
            user=self._user(user_in_account(job.user, job.account)),
            partition=self._partition(job.partition),
            limit=limit_of(job.limit),
            before=0,
            executed=0,
            ended=False,
        )

    def _processing_time(self, columns: dict[str, Ints]) -> Ints:
        """Returns how long jobs last within the game; for those that have not ended, a guess."""
        seconds = columns["executed"].copy()
        unfinished = np.flatnonzero(columns["ended"] == 0)
        before = columns["before"][unfinished]
        predicted = self._predictor.predict(
            columns["user"][unfinished],
            columns["limit"][unfinished],
            columns["processors"][unfinished],
            before + columns["executed"][unfinished],
        )
        seconds[unfinished] = predicted - before
        waits = unfinished[columns["executed"][unfinished] == 0]
        self._expected = dict(
            zip(columns["job"][waits].tolist(), seconds[waits].tolist(), strict=True)
        )
        return np.maximum(seconds, 1)


class _Row(NamedTuple):
    """A job, as a row of a table."""

    release: int
    job: int
    organization: int
    processors: int
    user: int
    partition: int
    limit: int
    before: int
    """Seconds executed before the game's begin."""
    executed: int
    """Seconds executed since."""
    ended: bool


PARTITION, PROCESSORS = (_Row._fields.index(name) for name in ("partition", "processors"))


def _table(rows: Sequence[_Row]) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(-1, len(_Row._fields))


def _columns(table: Ints) -> dict[str, Ints]:
    """Returns the columns of a table, in the order in which coalitions start the jobs."""
    columns = dict(zip(_Row._fields, table.T, strict=True))
    order = np.lexsort((columns["executed"], columns["job"], columns["release"]))
    return {name: column[order] for name, column in columns.items()}


def _limit_within(columns: dict[str, Ints]) -> Ints:
    """Returns the seconds that jobs may run within the game; UNKNOWN for those without a limit."""
    limit = columns["limit"]
    left = np.maximum(limit - columns["before"], 1)
    return np.where(limit == UNKNOWN, UNKNOWN, left)


def limit_of(seconds: int | None) -> int:
    """Returns a limit as workloads have it."""
    return UNKNOWN if seconds is None else seconds


def _behind(run: PastRun) -> int:
    assert run.behind is not None, "it has ended"
    return run.behind
