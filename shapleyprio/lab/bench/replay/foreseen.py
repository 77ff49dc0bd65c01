"""Forecasts of the starts of a long queue, also of jobs that depend on others.

``python -m shapleyprio.lab.bench.replay.foreseen DEPENDENT URL`` makes them for `WAITING` jobs, of
which so many depend on others, after four weeks that an empty database is given, and prints the
seconds of one core that they took, from the daemon's request to the answer. It has a process of its
own, so that its memory can be measured.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import process_time

import numpy as np

from shapleyprio.common.wording import DAY, HOUR
from shapleyprio.common.workers import PYTHON
from shapleyprio.daemon.estimation.messages import WaitingJob, WorkResult
from shapleyprio.daemon.forecasting.forecasting import StoreForecaster
from shapleyprio.daemon.forecasting.messages import Competitor, ForecastRequest, KnownNode
from shapleyprio.fairness.by_shapley import ByShapley
from shapleyprio.fairness.runs import Run, RunKey
from shapleyprio.fairness.tenure import NOBODY, Allocation
from shapleyprio.fairness.trajectory import Trajectory
from shapleyprio.lab.bench.cycle.workloads import CLUSTER, NOW
from shapleyprio.lab.bench.measure import MakeBar, Measurement, of_runs, run_apart
from shapleyprio.lab.bench.replay.recompute import ONE_CORE
from shapleyprio.store import AllocatedRun, Store, Watermark

ORGANIZATIONS = tuple(f"organization{number}" for number in range(1, 21))
NODES_EACH, NODE_PROCESSORS = 6, 8
WAITING, ENDED, RUNNING = 10_000, 20_000, 200
DAYS = 28
"""In which so many jobs have ended."""

DEPENDENT = (0, 1_000, 5_000)
BATCH = 10
"""Jobs alike that a user submits together."""

IN_A_ROW = 4
"""So many depend one after the other on one that depends on none."""

RUNS = 3
SECONDS_BELOW = 10.0
PARTITION = "all"


def measure_forecasts(folder: Path, bar: MakeBar) -> Iterator[Measurement]:
    """Measures how long forecasts take on one core.

    Args:
        folder: for stores.
        bar: makes a progress bar.
    """
    for dependent in DEPENDENT:
        what = f"{WAITING:,} waiting jobs of {len(ORGANIZATIONS)} organizations"
        what += f", of which {dependent:,} depend on others" if dependent else ""
        show, ran = bar(what, RUNS), []
        for run in range(RUNS):
            url = f"sqlite:///{folder / f'{dependent}-{run}.db'}"
            program = [*ONE_CORE, *PYTHON, "-m", "shapleyprio.lab.bench.replay.foreseen"]
            ran.append(run_apart([*program, str(dependent), url]))
            show(run + 1)
        seconds = [float(one.last_line) for one in ran]
        yield of_runs("forecasts", what, seconds, unit="s", below=SECONDS_BELOW)
        yield of_runs("forecasts", "peak memory of that", [one.megabytes for one in ran], unit="MB")


def main(dependent: int, url: str) -> None:
    """Makes forecasts, and prints how many seconds of one core that took."""
    random = np.random.default_rng(dependent)
    request = _request(dependent, random)
    with Store.open(url, create=True) as store:
        cluster = store.cluster(CLUSTER)
        with cluster.transaction() as rows:
            rows.ledger.save_watermark(_watermark())
            rows.runs.put(_runs(random))
        forecaster = StoreForecaster(cluster)
        # reads the past once, as the daemon's worker does
        forecaster.answer(replace(request, waiting=(), after={}))
        began = process_time()
        answer = forecaster.answer(ForecastRequest.from_json(request.as_json()))
        print(process_time() - began)
    if answer.result is not WorkResult.OK or len(answer.rows) != WAITING:
        raise RuntimeError(f"{len(answer.rows)} forecasts, {answer.result}: {answer.why}")


def _watermark() -> Watermark:
    opened = NOW - DAYS * DAY
    return Watermark(
        opened=opened,
        observed_until=NOW,
        sure_until=NOW,
        accounted_to=NOW,
        horizon=None,
        folded_to=0,
        pruned_until=opened,
    )


def _runs(random: np.random.Generator) -> Iterator[AllocatedRun]:
    """Yields what has ended, and what holds the processors of the first nodes."""
    for number in range(ENDED + RUNNING):
        job, seconds = _job(number), int(random.lognormal(7.5, 1.0)) + 1
        runs = number >= ENDED
        begin = NOW - seconds - (0 if runs else int(random.integers(DAYS * DAY - 20 * HOUR)))
        end = None if runs else min(begin + seconds, NOW)
        nodes = {f"node{(number - ENDED) // 2 if runs else 0}": 4 if runs else job.processors}
        run = Run(
            key=RunKey(number + 1, begin - 60, begin),
            label=str(number + 1),
            account=job.account,
            user=job.user,
            partition=PARTITION,
            state="RUNNING" if runs else "COMPLETED",
            release=begin - 60,
            limit=job.limit,
            begin=begin,
            end=end,
            processors=nodes,
        )
        (processors,) = nodes.values()
        place = Allocation(job.organization, job.organization, processors, begin, end)
        yield run, (place,)


def _job(number: int) -> WaitingJob:
    """Returns a job, of an organization in turn."""
    turn, organization = divmod(number, len(ORGANIZATIONS))
    random = np.random.default_rng((organization, turn // BATCH))
    name = ORGANIZATIONS[organization]
    return WaitingJob(
        job_id=10**6 + number,
        organization=name,
        account=name,
        user=f"user{random.integers(9)}",
        release=NOW - WAITING + number,
        limit=HOUR * int(random.integers(1, 9)),
        tasks=1,
        processors=2 ** int(random.integers(5)),
        partition=PARTITION,
    )


def _request(dependent: int, random: np.random.Generator) -> ForecastRequest:
    """Returns what is asked: the last ones of those that wait depend on others."""
    waiting = tuple(_job(number) for number in range(WAITING))
    first = WAITING - dependent
    roots = random.choice(first, -(-dependent // IN_A_ROW), replace=False).tolist()
    before = [
        number - 1 if (number - first) % IN_A_ROW else roots.pop()
        for number in range(first, WAITING)
    ]
    return ForecastRequest(
        t=NOW,
        rule=ByShapley.name,
        competitors=(
            *(Competitor(name, Trajectory(0, 0, 0)) for name in ORGANIZATIONS),
            Competitor(NOBODY, None),
        ),
        bays=((PARTITION,),),
        nodes={
            f"node{number}": KnownNode(
                number % len(ORGANIZATIONS), 0, NODE_PROCESSORS, 8 * (2 * number < RUNNING)
            )
            for number in range(NODES_EACH * len(ORGANIZATIONS))
        },
        waiting=waiting,
        overlap=HOUR,
        after={
            10**6 + number: (10**6 + other,)
            for number, other in zip(range(first, WAITING), before, strict=True)
        },
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
