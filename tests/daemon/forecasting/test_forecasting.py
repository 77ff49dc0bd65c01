"""Forecasts go by who is ahead, how long jobs last, and what else comes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shapleyprio.daemon.estimation.messages import WaitingJob, WorkResult
from shapleyprio.daemon.forecasting import forecasting
from shapleyprio.daemon.forecasting.lessons import Lessons
from shapleyprio.daemon.forecasting.live import LONGEST_SECONDS
from shapleyprio.daemon.forecasting.messages import (
    Closing,
    Competitor,
    ForecastAnswer,
    ForecastRequest,
    KnownNode,
)
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.fairness.worth import Trajectory
from shapleyprio.slurm.layout import Reservation
from shapleyprio.slurm.port import PendingQueue
from shapleyprio.store import ForecastRow, ToldForecast
from tests.daemon.consortium import NAME, config
from tests.daemon.drift.conftest import run
from tests.daemon.forecasting.conftest import learn
from tests.examples import examples
from tests.store.examples import BEGIN, watermark

if TYPE_CHECKING:
    from shapleyprio.store import AllocatedRun
    from tests.daemon.forecasting.conftest import Foreseeing

ALL = ("all",)


def test_jobs_start_when_those_before_them_end(daemon: Foreseeing) -> None:
    learn(daemon, 100)
    slurm = daemon.slurm
    begin = slurm.now
    for _ in range(4):
        slurm.submit("physics", processors=12, processing_time=100, limit=1000)
    slurm.wait(40)
    report = daemon.run()
    rows = sorted(daemon.known().values(), key=lambda row: row.job_id)
    assert [row.median - begin for row in rows] == [100, 200, 300]
    assert [(row.early, row.late) for row in rows] == [(row.median, row.median) for row in rows]
    assert {(row.t, row.organization, row.within_hour) for row in rows} == {
        (report.t, "physics", 100)
    }
    assert [row.waits_for for row in rows] == ["processors", "turn", "turn"]


@pytest.mark.parametrize("rule", ["directcontr", "shapley"])
def test_what_is_told_happens_where_lengths_are_known(daemon: Foreseeing, rule: str) -> None:
    """The order turns again and again as organizations are served; so it is foreseen."""
    daemon.stop()
    daemon.config = config(fairness={"rule": rule})
    daemon.start()
    for _ in range(6):  # of each, so that all are expected to last as long as they do
        for account, seconds in (("physics", 300), ("biology", 200)):
            daemon.slurm.submit(
                account, user=account, processors=12, processing_time=seconds, limit=3000
            )
            daemon.slurm.wait(seconds + 1)
            daemon.cycle.run()
    for account, seconds in (("physics", 300), ("biology", 200)):
        for _ in range(6):
            daemon.slurm.submit(
                account, user=account, processors=12, processing_time=seconds, limit=3000
            )
    daemon.slurm.wait(10)
    daemon.run()
    told = daemon.known()
    assert len(told) == 11
    for _ in range(80):
        daemon.slurm.wait(50)
        daemon.cycle.run()
    with daemon.store.cluster(NAME).reading() as view:
        starts = {placed.key.job_id: placed.begin for placed, _ in view.runs.all_runs()}
    assert {job: starts[job] - row.median for job, row in told.items()} == dict.fromkeys(told, 0)


def test_of_an_array_the_first_task_counts(daemon: Foreseeing) -> None:
    learn(daemon, 100)
    slurm = daemon.slurm
    begin = slurm.now
    slurm.submit("physics", processors=12, processing_time=100, limit=1000)
    array = slurm.submit("physics", processors=6, processing_time=100, limit=1000, array=4)
    last = slurm.submit("physics", processors=12, processing_time=100, limit=1000)
    slurm.wait(1)
    daemon.run()
    known = daemon.known()
    assert known[array].median == begin + 100
    assert known[last].median == begin + 300


def test_jobs_that_lack_more_than_their_turn_are_not_foreseen(daemon: Foreseeing) -> None:
    slurm = daemon.slurm
    slurm.fill("biology", 1000)
    held = slurm.submit("physics", processing_time=10)
    slurm.hold(held)
    free = slurm.submit("physics", processing_time=10)
    slurm.wait(1)
    daemon.run()
    assert set(daemon.known()) == {free}


def test_a_job_starts_when_it_is_to_begin_if_its_turn_has_come(daemon: Foreseeing) -> None:
    learn(daemon, 100)
    slurm = daemon.slurm
    begin = slurm.now
    for _ in range(3):
        slurm.submit("physics", processors=12, processing_time=100, limit=1000)
    soon, late, far = (
        slurm.submit(
            "physics", processors=12, processing_time=100, limit=1000, begin=begin + seconds
        )
        for seconds in (150, 777, 86_400 + 777)
    )
    slurm.wait(40)
    daemon.run()
    known = daemon.known()
    assert far not in known
    assert {known[soon].median - begin, known[soon].late - begin} == {300}
    assert {known[late].median - begin, known[late].late - begin} == {777}
    assert (known[soon].waits_for, known[late].waits_for) == ("time", "time")
    for _ in range(100):
        slurm.wait(10)
        daemon.cycle.run()
    with daemon.store.cluster(NAME).reading() as view:
        starts = {placed.key.job_id: placed.begin - begin for placed, _ in view.runs.all_runs()}
    assert (starts[soon], starts[late]) == (300, 777)


def test_a_job_starts_when_those_have_ended_on_which_it_depends(daemon: Foreseeing) -> None:
    learn(daemon, 100)
    slurm = daemon.slurm
    begin = slurm.now
    first, second = (
        slurm.submit("physics", processors=12, processing_time=100, limit=1000) for _ in range(2)
    )
    array = slurm.submit("physics", processors=6, processing_time=100, limit=1000, array=2)
    third, fourth, fifth = (
        slurm.submit("physics", processors=12, processing_time=100, limit=1000, after=after)
        for after in ((first, second), (second + 2, first), (array,))
    )
    bounded = slurm.submit("physics", processing_time=100, limit=1000, array=2, at_once=1)
    slurm.submit("physics", processing_time=100, limit=1000, after=(bounded,))
    slurm.wait(40)
    daemon.run()
    known = daemon.known()
    assert fourth == third + 1
    assert known.keys() == {second, array, third, fourth, fifth, bounded}
    medians = {job: row.median - begin for job, row in known.items()}
    begins = zip((second, array, third, fourth, fifth, bounded), range(100, 601, 100), strict=True)
    assert medians == dict(begins)
    waits_for = {job: row.waits_for for job, row in known.items()}
    assert {waits_for[job] for job in (third, fourth, fifth)} == {"dependency"}
    assert waits_for[array] == "turn"
    del medians[bounded]  # its last task will have that number
    for _ in range(70):
        slurm.wait(10)
        daemon.cycle.run()
    with daemon.store.cluster(NAME).reading() as view:
        starts = {placed.key.job_id: placed.begin - begin for placed, _ in view.runs.all_runs()}
    assert {job: starts[job] for job in medians} == medians


def test_no_start_is_told_for_a_time_at_which_all_nodes_are_reserved(daemon: Foreseeing) -> None:
    """Jobs that by their limits may still run then wait for its end, and what follows them, too."""
    learn(daemon, 100)
    slurm = daemon.slurm
    begin = slurm.now
    nodes = tuple(slurm.nodes())
    slurm.reserved = [
        Reservation(name="a", begin=begin + 900, end=begin + 2900, nodes=nodes[:1]),
        Reservation(name="b", begin=begin + 800, end=begin + 5900, nodes=nodes[1:]),
    ]
    slurm.submit("physics", processors=12, processing_time=100, limit=200)
    long, *short = (
        slurm.submit("physics", processors=12, processing_time=100, limit=limit)
        for limit in (1000, 200, 200, 200, *[700] * 3)
    )
    slurm.wait(40)
    daemon.run()
    known = daemon.known()
    assert [known[job].median - begin for job in short[:3]] == [100, 200, 300]
    assert [known[job].median - begin for job in (*short[3:], long)] == [2900, 3000, 3100, 3200]
    waits_for = [known[job].waits_for for job in (*short, long)]
    assert waits_for == [*["turn"] * 3, *["reservation"] * 4]
    slurm.reserved = [Reservation(name="a", begin=begin, end=begin + 2900, nodes=nodes)]
    slurm.wait(LONGEST_SECONDS + 1000)
    daemon.run()
    assert daemon.known() == {}


def test_a_job_starts_when_a_limit_lets_it(
    daemon: Foreseeing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm has not looked at the last one."""
    learn(daemon, 100)
    slurm = daemon.slurm
    slurm.set_most_jobs("physics", 2)
    begin = slurm.now
    for length in (100, 60):
        slurm.submit("physics", processing_time=length, limit=1000)
    beyond, *behind = (slurm.submit("physics", processing_time=100, limit=1000) for _ in range(3))
    slurm.wait(10)
    pending = slurm.pending

    def looked_at() -> PendingQueue:
        queue = pending()
        jobs = [
            replace(job, reason="Priority") if job.job_id == behind[-1] else job
            for job in queue.jobs
        ]
        return replace(queue, jobs=jobs)

    monkeypatch.setattr(slurm, "pending", looked_at)
    daemon.run()
    assert [slurm.job(job).reason for job in (beyond, *behind)] == ["AssocGrpJobsLimit"] * 3
    known = daemon.known()
    medians = {job: row.median - begin for job, row in known.items()}
    assert medians == {beyond: 100, behind[0]: 100, behind[1]: 200}
    assert {row.waits_for for row in known.values()} == {"limit"}


def test_nothing_is_told_where_nobody_knows_who_uses_a_limit_up(
    daemon: Foreseeing, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm = daemon.slurm
    slurm.fill("biology", 1000)
    kept, behind = (slurm.submit("physics", processing_time=100) for _ in range(2))
    free = slurm.submit("biology", processing_time=100)
    slurm.wait(10)
    pending = slurm.pending
    for reason in ("QOSGrpJobsLimit", "AssocMaxJobsLimit"):  # nothing runs in the account

        def looked_at(reason: str = reason) -> PendingQueue:
            jobs = [
                replace(job, reason=reason) if job.job_id == kept else job for job in pending().jobs
            ]
            return replace(pending(), jobs=jobs)

        monkeypatch.setattr(slurm, "pending", looked_at)
        daemon.run()
        assert set(daemon.known()) == {free}, behind


# requests to the worker's own functions


def remember(daemon: Foreseeing, *runs: AllocatedRun, t: int = 300) -> None:
    with daemon.store.cluster(NAME).transaction() as rows:
        seconds = {"observed_until": BEGIN + t, "accounted_to": BEGIN + t}
        rows.ledger.save_watermark(watermark(opened=BEGIN, pruned_until=BEGIN, **seconds))
        rows.runs.put(runs)


def asked(
    *waiting: WaitingJob,
    t: int = 300,
    rule: str = "directcontr",
    scores: tuple[int, int] = (0, 0),
    processors: int = 2,
    busy: tuple[int, int] = (1, 1),
) -> ForecastRequest:
    competitors = [
        Competitor(name, Trajectory(score, 0, 0))
        for name, score in zip(("biology", "physics"), scores, strict=True)
    ]
    return ForecastRequest(
        t=BEGIN + t,
        rule=rule,
        competitors=(*competitors, Competitor(NOBODY, None)),
        bays=(ALL,),
        nodes={
            "biology1": KnownNode(0, 0, processors // 2, busy[0]),
            "physics1": KnownNode(1, 0, processors // 2, busy[1]),
        },
        waiting=waiting,
        overlap=3600,
    )


def job(
    job_id: int, organization: str, *, processors: int = 2, tasks: int = 1, partition: str = "all"
) -> WaitingJob:
    return WaitingJob(
        job_id,
        organization,
        organization,
        "ann",
        BEGIN + 200,
        1000,
        tasks,
        processors * tasks,
        partition,
    )


def medians(daemon: Foreseeing, request: ForecastRequest) -> dict[int, int]:
    answer = daemon.answer(request)
    assert answer.result is WorkResult.OK, answer.why
    return {row.job_id: row.median - BEGIN for row in answer.rows}


PAST = [run(n, who, 0, 100, limit=1000) for n, who in enumerate(["biology", "physics"] * 3)]
PAST += [run(n, "unowned", 0, 100, limit=1000) for n in range(10, 13)]
BUSY = [
    run(98, "biology", 250, None, limit=1000),
    run(99, "biology", 250, None, limit=1000, owner="physics"),
]


@pytest.mark.parametrize("rule", ["directcontr", "shapley"])
def test_who_is_ranked_first_starts_first_and_nobody_last(daemon: Foreseeing, rule: str) -> None:
    remember(daemon, *PAST, *BUSY)
    waiting = (job(1, NOBODY), job(2, "biology"), job(3, "physics"))
    assert medians(daemon, asked(*waiting, rule=rule, scores=(0, 10**6))) == {
        3: 350,
        2: 450,
        1: 550,
    }
    assert medians(daemon, asked(*waiting, rule=rule, scores=(10**6, 0))) == {
        2: 350,
        3: 450,
        1: 550,
    }


@pytest.mark.parametrize("rule", ["directcontr", "shapley"])
def test_what_could_start_now_starts_now(daemon: Foreseeing, rule: str) -> None:
    """A cycle may come before Slurm's scheduler has looked at what is free."""
    remember(daemon, *PAST)
    request = asked(job(1, "physics"), job(2, "physics"), rule=rule, busy=(0, 0))
    assert medians(daemon, request) == {1: 300, 2: 400}


def test_what_accounting_has_not_heard_of_yet_is_seen_on_the_nodes(daemon: Foreseeing) -> None:
    waiting = (job(1, "physics"), job(2, "physics"))
    remember(daemon, *PAST)  # and a job of nobody knows whom on both
    assert medians(daemon, asked(*waiting)) == {1: 399, 2: 499}
    remember(daemon, *PAST, *BUSY)  # have just ended
    assert medians(daemon, asked(*waiting, busy=(0, 0))) == {1: 300, 2: 400}


def test_on_which_nodes_of_an_owner_a_job_holds_more_frees_none_and_takes_none(
    daemon: Foreseeing,
) -> None:
    """The store knows how many it holds of an owner's; they are split by the nodes' sizes."""
    held, places = run(99, "physics", 250, None, owner="physics", processors=4, limit=1000)
    remember(daemon, *PAST, (replace(held, processors={"a1": 2, "a2": 2}), places))
    nodes = {"a1": KnownNode(1, 0, 4, 1), "a2": KnownNode(1, 0, 4, 3), "b1": KnownNode(0, 0, 1, 0)}
    for reach in ((ALL,), (ALL, ("all", "other"))):
        for each in (5, 6):
            request = replace(asked(job(1, "physics", processors=each)), nodes=nodes, bays=reach)
            assert medians(daemon, request) == {1: 300 if each == 5 else 350}


def test_an_array_without_a_task_that_may_start_is_no_job_to_come(daemon: Foreseeing) -> None:
    remember(daemon)
    lessons = Lessons()
    with daemon.store.cluster(NAME).reading() as view:
        lessons.update(view, 3600, BEGIN + 300)
    none_now = replace(job(1, "physics", tasks=0), processors=0)
    found = lessons.released(lambda _: 0, [none_now, job(2, "physics")], {"physics": 0}, BEGIN)
    assert found.jobs.processors.tolist() == [2]


@pytest.mark.parametrize("rule", ["directcontr", "shapley"])
def test_a_job_that_is_to_begin_a_day_later_begins_then(daemon: Foreseeing, rule: str) -> None:
    """It is none of the past's, from which arrivals are drawn, nor in the way of others now."""
    remember(daemon, *PAST, *BUSY)
    later = replace(job(1, "physics"), release=BEGIN + 300 + 86_400)
    waiting = (later, job(2, "physics"), job(3, "biology"))
    found = medians(daemon, asked(*waiting, rule=rule, scores=(0, 10**6)))
    assert found == {1: 300 + 86_400, 2: 350, 3: 450}


@pytest.mark.parametrize("rule", ["directcontr", "shapley"])
def test_dependent_jobs_are_released_when_the_others_have_ended(
    daemon: Foreseeing, rule: str
) -> None:
    """98 and 99 run until 350; 1 waits for its turn."""
    remember(daemon, *PAST, *BUSY)
    waiting = [job(n, "physics", processors=1) for n in range(2, 9)]
    waiting[-1] = replace(waiting[-1], tasks=2, processors=2)
    after = {2: (98,), 3: (1, 99), 4: (3,), 5: (77,), 6: (7,), 7: (6,), 8: (4, 98)}
    request = replace(asked(job(1, "physics"), *waiting, rule=rule), after=after)
    found = medians(daemon, request)
    assert found == {1: 350, 2: 450, 3: 450, 4: 550, 8: 650}
    assert ForecastRequest.from_json(request.as_json()) == request


def test_the_order_of_the_request_is_that_within_an_organization(daemon: Foreseeing) -> None:
    remember(daemon, *PAST, *BUSY)
    waiting = (job(7, "physics"), job(3, "physics"), job(5, "physics"))
    assert medians(daemon, asked(*waiting)) == {7: 350, 3: 450, 5: 550}


def test_a_job_that_no_processors_suffice_for_is_left_out(daemon: Foreseeing) -> None:
    remember(daemon, *PAST, *BUSY)
    waiting = (job(1, "physics", processors=3), job(2, "physics"))
    assert medians(daemon, asked(*waiting)) == {2: 350}


@pytest.mark.parametrize("rule", ["directcontr", "shapley"])
def test_a_job_waits_for_the_nodes_of_its_partition_alone(daemon: Foreseeing, rule: str) -> None:
    """Biology's node is in the partitions all and bio, physics' in all and phys."""
    busy = run(99, "biology", 250, None, limit=1000)
    remember(daemon, *PAST, busy)
    request = replace(
        asked(
            job(1, "physics", processors=1, partition="bio"),
            job(2, "physics", processors=1, partition="phys"),
            job(3, "biology", processors=2, partition="all"),
            job(4, "biology", processors=1, partition="gone"),
            job(5, "biology", processors=2, partition="phys"),
            rule=rule,
            scores=(0, 10**6),
            busy=(1, 0),
        ),
        bays=(("all", "bio"), ("all", "phys")),
    )
    nodes = {**request.nodes, "physics1": request.nodes["physics1"]._replace(bay=1)}
    found = medians(daemon, replace(request, nodes=nodes))
    assert found == {1: 350, 2: 300, 3: 450}


def test_a_faculty_far_behind_holds_its_department_back(daemon: Foreseeing) -> None:
    remember(daemon, *PAST, *BUSY)
    request = asked(job(1, "biology"), job(2, "physics"), rule="shapley", scores=(0, 10**6))
    behind = Competitor("science", Trajectory(-(10**7), 0, 0))
    request = replace(
        request, competitors=(*request.competitors[:2], behind, Competitor(NOBODY, None))
    )
    assert medians(daemon, request) == {2: 350, 1: 450}
    nested = replace(request, parents={"physics": "science"})
    assert ForecastRequest.from_json(nested.as_json()) == nested
    assert medians(daemon, nested) == {1: 350, 2: 450}


def test_where_very_many_wait_the_first_of_each_organization_are_foreseen(
    daemon: Foreseeing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecasting, "MANY_WAITING", 9)
    monkeypatch.setattr(forecasting, "MOST_OF_ONE", 3)
    remember(daemon, *PAST, *BUSY)
    waiting = [job(n, "physics") for n in range(1, 8)]
    waiting += [job(11, "biology", tasks=2), job(12, "biology", tasks=5)]
    assert set(medians(daemon, asked(*waiting))) == {1, 2, 3, 11, 12}


def test_jobs_that_come_every_hour_are_expected_to_come(daemon: Foreseeing) -> None:
    """Of the organization that is ranked first: whoever is second waits for them, too."""
    day = 86_400
    past = [
        run(n, "physics", n * 600, n * 600 + 600, submit=n * 600, limit=1000, processors=2)
        for n in range(3 * day // 600)
    ]
    now = run(9999, "physics", 3 * day, None, submit=3 * day, limit=1000, processors=2)
    remember(daemon, *past, now, t=3 * day)
    waiting = job(1, "biology")
    behind = medians(daemon, asked(waiting, t=3 * day, scores=(-(10**13), 0)))
    ahead = medians(daemon, asked(waiting, t=3 * day, scores=(10**13, 0)))
    assert ahead[1] - 3 * day <= 600
    assert behind[1] - 3 * day > day


def test_intervals_are_widened_by_what_was_missed(daemon: Foreseeing) -> None:
    remember(daemon, *PAST, *BUSY)
    told = [
        ToldForecast(
            job_id=1000 + n,
            t=BEGIN,
            organization="physics",
            median=BEGIN + 60,
            early=BEGIN + 60,
            late=BEGIN + 60,
            drawn_early=BEGIN + 60,
            drawn_late=BEGIN + 60,
            within_hour=100,
            waits_for="turn",
            start=None,
        )
        for n in range(20)
    ]
    names = ForecastRow.__dataclass_fields__
    rows = [ForecastRow(**{name: getattr(row, name) for name in names}) for row in told]
    with daemon.store.cluster(NAME).transaction() as transaction:
        transaction.forecasts.save([], rows)
        transaction.forecasts.note_starts(
            {row.job_id: BEGIN + 180 for row in rows}
        )  # (180+60)/(60+60) = 2
    answer = daemon.answer(asked(job(2, "physics")))
    (row,) = answer.rows
    t = BEGIN + 300
    assert (row.drawn_early, row.median, row.drawn_late) == (t + 50, t + 50, t + 50)
    assert (row.early, row.late) == (t, t + 160)  # 110/2 − 60 < 0, 110·2 − 60


@pytest.mark.parametrize(
    ("processors", "wait"),
    [(1, 50 + 100), (2, 50)],  # behind its organization's others; beside physics' before wide ones
)
def test_a_small_job_submitted_now_passes_its_organizations_wide_ones_alone(
    daemon: Foreseeing, processors: int, wait: int
) -> None:
    remember(daemon, *PAST, *BUSY)
    waiting = (job(n, "biology", processors=processors) for n in (1, 2))
    answer = daemon.answer(asked(*waiting, scores=(0, 10**6)))
    assert answer.small_waits == {"physics": 50, "biology": wait}
    assert ForecastAnswer.from_json(answer.as_json()) == answer


def one_more(daemon: Foreseeing, request: ForecastRequest, job: WaitingJob) -> ForecastRow:
    answer = daemon.answer(replace(request, asked=job))
    assert (answer.result, answer.small_waits) == (WorkResult.OK, {})
    (row,) = answer.rows
    return row


def test_a_job_that_is_asked_for_would_wait_behind_its_organizations_others(
    daemon: Foreseeing,
) -> None:
    remember(daemon, *PAST, *BUSY)
    request = asked(job(1, "biology"), job(2, "physics"), scores=(0, 10**6))
    found = one_more(daemon, request, job(0, "biology"))
    assert found.median - BEGIN == 350 + 2 * 100
    assert (found.job_id, found.organization, found.waits_for) == (0, "biology", "turn")
    assert one_more(daemon, request, job(0, "physics")).median - BEGIN == 350 + 1 * 100
    nothing = asked(busy=(0, 0))
    remember(daemon, *PAST)
    assert one_more(daemon, nothing, job(0, "physics")).median - BEGIN == 300


WAITING = st.builds(
    job,
    st.integers(1, 99),
    st.sampled_from(["biology", "physics", NOBODY]),
    processors=st.integers(1, 2),
    tasks=st.integers(1, 2),
)


@settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(waiting=st.lists(WAITING, min_size=1, max_size=5, unique_by=lambda job: job.job_id))
def test_one_more_job_like_the_one_that_waits_last_has_its_forecast(
    daemon: Foreseeing, waiting: list[WaitingJob]
) -> None:
    remember(daemon, *PAST, *BUSY)
    *before, last = waiting
    answer = daemon.answer(asked(*waiting))
    told = next(row for row in answer.rows if row.job_id == last.job_id)
    assert one_more(daemon, asked(*before), last) == told


def test_one_more_job_far_behind_very_many_is_not_foreseen(
    daemon: Foreseeing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecasting, "MANY_WAITING", 4)
    monkeypatch.setattr(forecasting, "MOST_OF_ONE", 3)
    remember(daemon, *PAST, *BUSY)
    waiting = [job(n, "physics") for n in range(1, 5)]
    request = replace(asked(*waiting), asked=job(0, "physics"))
    answer = daemon.answer(request)
    assert (answer.result, answer.rows) == (WorkResult.OK, ())
    assert one_more(daemon, asked(*waiting), job(0, "biology")).median - BEGIN == 350


def test_what_is_asked_for_is_put_off_until_its_partition_opens_again(daemon: Foreseeing) -> None:
    remember(daemon, *PAST, *BUSY)
    t = BEGIN + 300
    for begin, told in ((1050, 350), (1049, 2000)):  # it may run for 1,000 s
        closings = {"all": (Closing(BEGIN + begin + 300, BEGIN + 2000),)}
        request = replace(asked(), closings=closings)
        found = one_more(daemon, request, replace(job(0, "physics"), release=t))
        assert found.median - BEGIN == told


def test_messages_come_back_as_they_were() -> None:
    request = asked(job(1, "physics"), scores=(-5, 2**70))
    assert ForecastRequest.from_json(request.as_json()) == request
    closings = {"all": (Closing(1, 2), Closing(3, 4))}
    request = replace(request, asked=job(0, "biology"), closings=closings)
    assert ForecastRequest.from_json(request.as_json()) == request
    answer = ForecastAnswer(result=WorkResult.FAILED, why="x")
    assert ForecastAnswer.from_json(answer.as_json()) == answer
