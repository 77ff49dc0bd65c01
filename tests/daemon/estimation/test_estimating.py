"""Estimates depend on the store alone, and are the Shapley values of what coalitions would do."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.daemon.estimation.estimating import StoreEstimator
from shapleyprio.daemon.estimation.messages import (
    EstimateAnswer,
    EstimateRequest,
    WaitingJob,
    WorkResult,
)
from shapleyprio.fairness.shapley import owen
from shapleyprio.fairness.worth import Trajectory
from tests.daemon.consortium import NAME, Cluster, Service, config
from tests.daemon.drift.conftest import FLOOD, run
from tests.examples import examples
from tests.store.examples import BEGIN, watermark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapleyprio.store import AllocatedRun, EstimateRow, Store
    from tests.store.servers import Databases

NAMES = ("biology", "physics")
OVERLAP = 3600


@pytest.fixture
def store(databases: Databases) -> Iterator[Store]:
    with databases.store("sqlite") as store:
        yield store


def remember(store: Store, *runs: AllocatedRun, t: int = 300, opened: int = 0) -> None:
    """Puts runs of organizations with a processor each into the store; its ledger stands at t."""
    with store.cluster(NAME).transaction() as rows:
        seconds = {"observed_until": BEGIN + t, "accounted_to": BEGIN + t}
        first = BEGIN + opened
        rows.ledger.save_watermark(watermark(opened=first, pruned_until=first, **seconds))
        rows.runs.put(runs)
        rows.observed.observe_capacities({name: {("all",): 1} for name in NAMES}, first)


def request(
    *waiting: WaitingJob, names: tuple[str, ...] = NAMES, coalitions: int = 500, seed: int = 0
) -> EstimateRequest:
    return EstimateRequest(
        organizations=names, waiting=waiting, overlap=OVERLAP, coalitions=coalitions, seed=seed
    )


def estimated(store: Store, *waiting: WaitingJob) -> dict[str, EstimateRow]:
    answer = StoreEstimator(store.cluster(NAME)).answer(request(*waiting))
    assert answer.result is WorkResult.OK, answer.why
    return {row.organization: row for row in answer.rows}


def worth(begin: int, end: int, t: int = 300) -> int:
    """What a processor's work in [begin, end) is worth at t."""
    return sum(t - second for second in range(begin, min(end, t)))


def test_a_contribution_is_what_an_organization_adds_to_others_on_average(store: Store) -> None:
    remember(store, *FLOOD)
    found = estimated(store)
    # first come, first served: biology's four jobs alone, physics' one alone, and all together
    biology, physics = worth(0, 300), worth(10, 110)
    everybody = 2 * worth(0, 100) + 2 * worth(100, 200) + worth(200, 300)
    assert found["biology"].contribution.after(0) == (biology + everybody - physics) // 2
    assert found["physics"].contribution.after(0) == (physics + everybody - biology) // 2
    assert [found[name].alone for name in NAMES] == [biology, physics]
    assert [found[name].without for name in NAMES] == [physics, biology]
    assert (found["biology"].error, found["biology"].coalitions) == (0, 4)
    assert {(row.t, row.begin) for row in found.values()} == {(BEGIN + 300, BEGIN)}


def test_within_a_union_contributions_are_owen_values(store: Store) -> None:
    names = (*NAMES, "chemistry")
    remember(store, *FLOOD, run(9, "chemistry", 20, 90, owner="biology"))
    with store.cluster(NAME).transaction() as rows:
        rows.observed.observe_capacities({name: {("all",): 1} for name in names}, BEGIN)
    estimator = StoreEstimator(store.cluster(NAME))
    asked = replace(request(names=names), parents={"chemistry": "physics"})
    found = estimator.answer(EstimateRequest.from_json(asked.as_json())).rows
    shares = [Fraction(row.value, row.denominator) for row in found]
    b, p, c = (row.alone for row in found)
    p_c, b_c, b_p = (row.without for row in found)
    values = [0, b, p, b_p, c, b_c, p_c, int(sum(shares))]
    assert shares == list(owen(values, (0, 1, 1)))
    assert shares != list(owen(values, None))
    flat = estimator.answer(request(names=names)).rows
    assert [row.denominator for row in flat] == [6] * 3


def test_a_job_that_waits_would_run_where_its_own_coalition_is_free(store: Store) -> None:
    remember(store, run(1, "biology", 0, 300), run(2, "biology", 0, 300, owner="physics"))
    waiting = WaitingJob(9, "physics", "physics", "ann", BEGIN + 100, 50, 1, 1, "all")
    assert estimated(store)["physics"].alone == 0
    assert estimated(store, waiting)["physics"].alone == worth(100, 150)
    assert estimated(store, waiting)["biology"].without == worth(100, 150)


def test_how_long_a_job_lasts_that_runs_is_guessed_from_its_users_past(store: Store) -> None:
    past = run(1, "physics", 0, 40, owner="physics")
    # biology's job waited for its processor until 200 and is at work; physics' past is known
    late = run(2, "physics", 280, None, submit=100, owner="physics")
    remember(store, past, late)
    # alone it would have started at 100 and, being its user's second, lasted 40 s
    assert estimated(store)["physics"].alone == worth(0, 40) + worth(100, 140)


def test_what_ran_at_the_begin_is_there_from_the_begin_on(store: Store) -> None:
    remember(store, run(1, "physics", 0, 150, submit=-50), opened=100)
    found = estimated(store)["physics"]
    assert found.alone == worth(100, 150)
    assert found.begin == BEGIN + 100


def test_processors_count_from_when_they_came(store: Store) -> None:
    remember(store, run(1, "physics", 0, 100), run(2, "physics", 0, 100, owner="physics"))
    with store.cluster(NAME).transaction() as rows:
        rows.observed.observe_capacities(
            {"physics": {("all",): 2}, "biology": {("all",): 1}}, BEGIN + 50
        )
    # the second job starts alone when the second processor comes
    assert estimated(store)["physics"].alone == worth(0, 100) + worth(50, 150)


def test_work_goes_on_while_a_node_drains_and_nothing_else_starts_there(store: Store) -> None:
    runs = (run(1, "physics", 0, 100), run(2, "physics", 200, 250, submit=20, owner="physics"))
    remember(store, *runs)
    assert estimated(store)["physics"].alone == worth(0, 150)
    with store.cluster(NAME).transaction() as rows:
        for second, processors in ((50, 0), (200, 1)):
            rows.observed.observe_capacities(
                {"physics": {("all",): processors}, "biology": {("all",): 1}}, BEGIN + second
            )
    assert estimated(store)["physics"].alone == worth(0, 100) + worth(200, 250)


def test_a_node_is_missing_in_the_estimate_of_the_cycle_that_sees_it_closed(store: Store) -> None:
    slurm = Cluster()
    service = Service(slurm, store)
    service.run()
    slurm.wait(10)
    slurm.submit("biology", processing_time=1000)
    slurm.wait(20)
    service.run()
    assert estimated(store)["biology"].alone == worth(0, 20, t=20)
    slurm.submit("biology", processors=3, processing_time=1000)
    slurm.drain("b1")
    slurm.wait(1)
    service.run()
    # alone it had b1 until this cycle saw it closed, and what runs there then goes on
    assert estimated(store)["biology"].alone == worth(0, 21, t=21) + 3 * worth(20, 21, t=21)
    slurm.submit("biology", processors=3, processing_time=1000)
    slurm.wait(10)
    service.run()
    assert estimated(store)["biology"].alone == worth(0, 31, t=31) + 3 * worth(20, 31, t=31)
    assert estimated(store)["physics"].alone == 0


def test_between_estimates_a_contribution_follows_its_polynomial(store: Store) -> None:
    unfinished = run(1, "biology", 0, None, owner="physics")
    remember(store, unfinished)
    at_300 = estimated(store)
    remember(store, unfinished, t=340)
    at_340 = estimated(store)
    for name in NAMES:
        assert at_300[name].contribution.after(40) == at_340[name].contribution.after(0)


def test_older_work_whose_records_are_gone_counts_by_whose_processors_did_it(store: Store) -> None:
    slurm = Cluster()
    service = Service(slurm, store, config(fairness={"horizon": "1d"}))
    service.run()
    slurm.submit("physics", partition="pb", processors=4, processing_time=3600)
    slurm.wait(3 * 86_400)
    service.run()
    before = estimated(store)
    assert service.cycle.prune() == 1
    after = estimated(store)
    with store.cluster(NAME).reading() as view:
        standings = {row.organization: row for row in view.history.latest_standings()}
    assert {name: row.contribution.after(0) for name, row in after.items()} == {
        name: row.contribution for name, row in standings.items()
    }
    assert after["biology"].begin > before["biology"].begin
    assert after["biology"].contribution.after(0) == 4 * 3600 * 86_400


def test_a_cluster_without_processors_or_cycles_gets_a_reason(store: Store) -> None:
    estimator = StoreEstimator(store.cluster(NAME))
    assert estimator.answer(request()).result is WorkResult.FAILED
    remember(store, *FLOOD)
    answer = estimator.answer(request(names=("chemistry",)))
    assert answer.result is WorkResult.NO_PROCESSORS
    assert "shapleyprio check" in answer.why


EVENTS = st.one_of(
    st.tuples(
        st.just("submit"),
        st.sampled_from(["physics", "biology", "guest"]),
        st.integers(1, 12),
        st.integers(1, 900),
    ),
    st.tuples(st.just("wait"), st.integers(1, 1200)),
    st.tuples(st.sampled_from(["cycle", "prune"])),
    st.tuples(st.sampled_from(["drain", "undrain"]), st.sampled_from(["a1", "b1"])),
)


@settings(max_examples=examples(25), deadline=None)
@given(events=st.lists(EVENTS, max_size=25), delay=st.sampled_from([0, 400]))
def test_who_estimates_often_finds_what_one_finds_who_never_did_before(
    databases: Databases, events: list[tuple[str, ...]], delay: int
) -> None:
    slurm = Cluster(accounting_delay=delay)
    with databases.store("sqlite") as store:
        service = Service(slurm, store, config(fairness={"horizon": "3000s"}))
        service.run()
        often = StoreEstimator(store.cluster(NAME))
        for event, *values in [*events, ("cycle",)]:
            if event == "submit":
                account, processors, seconds = values
                slurm.submit(str(account), processors=int(processors), processing_time=int(seconds))
            elif event == "wait":
                slurm.wait(int(values[0]))
            elif event == "drain":
                slurm.drain(str(values[0]))
            elif event == "undrain":
                slurm.undrain(str(values[0]))
            elif event == "prune":
                service.cycle.prune()
            else:
                service.run()
                asked = request(
                    WaitingJob(
                        10**6, "physics", "physics", "ann", slurm.now - 60, None, 1, 3, "all"
                    )
                )
                fresh = StoreEstimator(store.cluster(NAME)).answer(asked)
                assert often.answer(asked) == fresh
                assert fresh.result is WorkResult.OK


def test_messages_come_through_whole() -> None:
    asked = request(WaitingJob(9, "physics", "physics", "ann", BEGIN, None, 1, 3, "pa"))
    assert EstimateRequest.from_json(asked.as_json()) == asked
    answer = EstimateAnswer(result=WorkResult.FAILED, why="it broke")
    assert EstimateAnswer.from_json(answer.as_json()) == answer


def test_a_row_has_the_trajectory_of_its_contribution(store: Store) -> None:
    remember(store, *FLOOD)
    row = estimated(store)["biology"]
    assert row.contribution == Trajectory(row.value, row.rate, row.acceleration, row.denominator)
