"""Why jobs wait where they wait: the facts."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from rich.console import Console

from shapleyprio.cli.shown.explanations import sentences_on_job
from shapleyprio.cli.shown.standings import standings_table
from shapleyprio.daemon.answering.explain import (
    NothingToExplainError,
    explain_account,
    explain_job,
    explain_user,
)
from shapleyprio.daemon.answering.explain_facts import (
    JobExplanation,
    JobsExplanation,
)
from shapleyprio.daemon.answering.explain_ranks import UnionRank
from shapleyprio.daemon.answering.inquiries import Asker
from shapleyprio.daemon.answering.status import read_status
from shapleyprio.daemon.forecasting.messages import FRESH_SECONDS
from shapleyprio.slurm.access import Rights
from shapleyprio.slurm.port import Malformed, PendingQueue, SlurmUnavailableError
from shapleyprio.store import LATER, ForecastRow, Store
from tests.daemon.consortium import FIRST, LAST, NAME, NOW, Cluster, Service, config
from tests.daemon.forecasting.examples import forecast


@pytest.fixture
def steered(slurm: Cluster, store: Store) -> Service:
    """Biology uses the whole cluster; jobs 2 to 6 wait, 5 is an array, 6 belongs to ann."""
    slurm.fill("biology")
    for account in ("physics", "biology", "guest"):
        slurm.submit(account, nice=3, processing_time=9)
    slurm.submit("biology", array=2, processing_time=9)
    slurm.wait(5)
    slurm.submit("physics", user="ann", processing_time=9)
    slurm.wait(5)
    service = Service(slurm, store)
    service.run()
    return service


def job(service: Service, label: str) -> JobExplanation:
    return explain_job(service.store.cluster(NAME), service.slurm, label)


def user(service: Service, name: str) -> JobsExplanation:
    return explain_user(service.store.cluster(NAME), service.slurm, name)


def account(service: Service, name: str) -> JobsExplanation:
    return explain_account(service.store.cluster(NAME), service.slurm, name)


# -- a job


def test_the_first_organizations_job(steered: Service) -> None:
    output = job(steered, "2")
    assert output.ranked is not None
    assert (output.ranked.organization, output.ranked.rank, output.ranked.organizations) == (
        "physics",
        1,
        2,
    )
    assert (output.ranked.contribution, output.ranked.utility, output.ranked.balance) == (
        440,
        0,
        440,
    )
    assert (output.ranked.points, output.ranked.before) == (FIRST, {})
    assert (output.ahead, output.own_ahead) == (1, 1)
    assert [(push.old, push.new) for push in output.pushes] == [(0, FIRST)]


def test_a_department_stands_with_its_faculty(slurm: Cluster, store: Store) -> None:
    """Chemistry owes most, and comes before biology: science, with it, is owed."""
    organizations = (
        {"name": "biology", "accounts": ["biology"], "partitions": ["pb"]},
        {"name": "science", "partitions": ["pa"]},
        {"name": "physics", "accounts": ["physics"], "parent": "science"},
        {"name": "chemistry", "accounts": ["guest"], "parent": "science"},
    )
    slurm.submit("guest", processors=4, processing_time=10**6, partition="pa")
    slurm.submit("biology", processors=1, processing_time=10**6, partition="pa")
    slurm.wait(0)
    waiting = slurm.submit("guest", processors=12, processing_time=9)
    slurm.wait(10)
    service = Service(slurm, store, config(*organizations))
    service.run()
    order = sorted(service.points(), key=service.points().__getitem__, reverse=True)
    assert order == ["science", "physics", "chemistry", "biology"]
    scores = {name: row.score for name, row in service.standings().items()}
    assert scores["chemistry"] < scores["biology"] < 0 < scores["science"]
    explained = job(service, str(waiting))
    assert explained.ranked is not None
    assert explained.ranked.union == UnionRank(
        parent="science", rank=1, unions=2, balance_per_part=1.1, place=3, members=3
    )
    said = sentences_on_job(explained, None, "site_factor")
    assert (
        "First, all of science ranks as one, and is owed 1.1 s: 1 of 2. "
        "Within it chemistry is 3 of 3."
    ) in said
    rows = read_status(store.cluster(NAME)).rows
    assert [row.parent for row in rows] == [None, "science", "science", None]
    for some, headed in ((rows, True), (rows[:1], False)):
        with (console := Console(width=100)).capture() as shown:
            console.print(standings_table(some, ()))
        assert ("part of" in shown.get()) == headed
    of_biology = explain_account(store.cluster(NAME), slurm, "biology").organizations
    assert all(one.ranked is None or one.ranked.union is None for one in of_biology)
    service.restart(config(*({**one, "parent": None} for one in organizations)))
    service.run()
    order = sorted(service.points(), key=service.points().__getitem__, reverse=True)
    assert order == ["science", "physics", "biology", "chemistry"]


def test_a_balance_per_part_is_the_worth_lent_by_all_work_done(steered: Service) -> None:
    """One job ran on 12 processors for 10 s, on 8 of physics: parts of 1 to 10 s of age."""
    physics, biology = job(steered, "2").ranked, job(steered, "3").ranked
    assert physics is not None
    assert biology is not None
    lent = Fraction(8 * 55, 12 * 10)
    assert (physics.balance_per_part, biology.balance_per_part) == (lent, -lent)
    assert (physics.used_each, biology.used_each) == (Fraction(0), Fraction(120, 4))


def test_the_last_organizations_array_counts_once(steered: Service) -> None:
    output = job(steered, "5_[0-1]")
    assert output.ranked == job(steered, "5").ranked
    assert output.ranked is not None
    assert (output.ranked.organization, output.ranked.rank, output.ranked.points) == (
        "biology",
        2,
        LAST,
    )
    assert output.ranked.before == {"physics": 2}
    assert (output.ahead, output.own_ahead) == (2, 0)
    assert job(steered, "3").own_ahead == 1


def test_fair_share_would_serve_first_who_used_little_though_it_owes(
    slurm: Cluster, store: Store
) -> None:
    """Physics uses 7 of its 8 processors and biology the eighth, while its own 4 stand idle."""
    slurm.submit("physics", processors=7, processing_time=10**6, partition="pa")
    slurm.submit("biology", processors=1, processing_time=10**6, partition="pa")
    slurm.wait(0)
    for name in ("physics", "biology"):
        slurm.submit(name, processors=12, processing_time=9)
    slurm.wait(3600)
    service = Service(slurm, store)
    service.run()
    physics, biology = job(service, "3").ranked, job(service, "4").ranked
    assert physics is not None
    assert biology is not None
    late = Fraction(3601, 2 * 8)  # the mean age, for one of eight processors
    assert (physics.rank, physics.balance_per_part, physics.before) == (1, late, {})
    assert (physics.used_each, physics.before_by_fair_share) == (
        Fraction(7 * 3600, 8),
        {"biology": 1},
    )
    assert (biology.rank, biology.balance_per_part, biology.before) == (2, -late, {"physics": 1})
    assert (biology.used_each, biology.before_by_fair_share) == (Fraction(3600, 4), {})


def test_a_held_job_is_ahead_of_nobody_and_behind_all(steered: Service) -> None:
    steered.slurm.hold(2)
    assert job(steered, "2").ahead == 4
    ranked = job(steered, "3").ranked
    assert ranked is not None
    assert ranked.before == {"physics": 1}


def test_nobodys_job(steered: Service) -> None:
    output = job(steered, "4")
    assert (output.ranked, output.pushes, output.ahead, output.own_ahead) == (None, [], 4, 0)


@pytest.mark.parametrize("label", ["1", "99", "5_3", "99_0", "nonsense"])
def test_a_job_that_does_not_wait(steered: Service, label: str) -> None:
    with pytest.raises(NothingToExplainError, match=f"no job {label} is pending; see `squeue -j"):
        job(steered, label)


@pytest.mark.parametrize("label", ["5", "5_0", "5_1", "5_[1-1]", "5_[0-1%1]"])
def test_a_task_of_an_array_is_in_the_part_that_waits(steered: Service, label: str) -> None:
    found = job(steered, label).job
    assert found is not None
    assert found.label == "5_[0-1]"


def test_a_job_whose_line_cannot_be_read(steered: Service) -> None:
    steered.slurm.unreadable.add(3)
    with pytest.raises(NothingToExplainError, match="no job 3 is pending, or its line could not"):
        job(steered, "3")


def test_a_job_before_the_first_cycle(service: Service) -> None:
    service.slurm.fill("guest")
    service.slurm.submit("physics", processing_time=9)
    output = job(service, "2")
    assert (output.ranked, output.basis.t) == (None, None)


def test_an_account_that_changed_hands(steered: Service) -> None:
    physics = {"name": "physics", "accounts": ["biology"], "partitions": ["pa"]}
    biology = {"name": "biology", "accounts": ["physics"], "partitions": ["pb"]}
    steered.restart(config(physics, biology))
    steered.run()
    ranked = job(steered, "2").ranked
    assert ranked is not None
    assert ranked.organization == "biology"


def test_a_line_of_the_queue_that_cannot_be_read_does_not_matter(steered: Service) -> None:
    before = job(steered, "3")
    steered.slurm.malformed.append(Malformed("squeue", "?", "nonsense"))
    assert job(steered, "3") == before


def test_a_job_as_json(steered: Service) -> None:
    output = json.loads(json.dumps(job(steered, "2").as_json()))
    assert output.keys() == {
        *("job", "organization", "rank", "organizations", "contribution", "utility", "balance"),
        *(
            "balance_per_part",
            "reason",
            "points",
            "before",
            "fair_share",
            "ahead",
            "tied_ahead",
            "own_ahead",
        ),
        *("score", "value", "t", "rule", "estimated_at", "horizon", "slurm_away", "pushes"),
        *("steering", "drift", "drift_seconds", "outside"),
        *("at_submission", "cluster", "pool", "waiting_work", "by_hand", "exception", "put_ahead"),
        *("start", "union"),
    }
    assert (output["job"]["job_id"], output["t"], output["slurm_away"]) == (2, NOW + 10, None)
    assert output["balance_per_part"] == pytest.approx(440 / 120)
    assert output["pushes"] == [
        {
            "cycle": 1,
            "at": NOW + 10,
            "channel": "site_factor",
            "target": "2",
            "old": 0,
            "new": FIRST,
            "state": "applied",
        }
    ]
    nobodys = json.loads(json.dumps(job(steered, "4").as_json()))
    assert nobodys.keys() == output.keys()
    assert nobodys["organization"] is None


class Federated:
    """What a member of a federation lists: all that waits here counts at c2."""

    def __init__(self, slurm: Cluster) -> None:
        self._slurm = slurm

    def pending(self) -> PendingQueue:
        return PendingQueue(elsewhere=[(job, "c2") for job in self._slurm.pending().jobs])


def test_of_a_federated_job_it_says_where_it_counts(steered: Service) -> None:
    place, listed = steered.store.cluster(NAME), Federated(steered.slurm)
    with pytest.raises(NothingToExplainError, match=r"job 6 is federated: .* counts at c2"):
        explain_job(place, listed, "6")
    ann, eve = (Asker(name, Rights) for name in ("ann", "eve"))
    with pytest.raises(NothingToExplainError, match="counts at c2"):
        explain_job(place, listed, "6", ann)
    with pytest.raises(NothingToExplainError, match="user eve has no pending job 6"):
        explain_job(place, listed, "6", eve)
    with pytest.raises(NothingToExplainError, match=r"or running here, and .* count at c2: ask"):
        explain_user(place, listed, "ann")


# -- all jobs of a user or an account


def test_an_accounts_jobs_are_counted_and_the_oldest_and_the_next_are_reported(
    steered: Service,
) -> None:
    steered.slurm.submit("physics", processing_time=9)
    steered.slurm.hold(2)
    output = account(steered, "physics")
    (jobs,) = output.organizations
    assert (output.whose, output.name, jobs.accounts) == ("account", "physics", ("physics",))
    assert (jobs.waiting, jobs.held, jobs.running) == (3, 1, 0)
    assert jobs.oldest is not None
    assert jobs.oldest.job_id == 2
    assert jobs.next_job is not None
    assert (jobs.next_job.job_id, jobs.ahead, jobs.own_ahead) == (6, 0, 0)
    assert jobs.ranked == job(steered, "6").ranked


def test_of_jobs_with_equal_priority_the_one_submitted_first_is_next(steered: Service) -> None:
    steered.slurm.submit("physics", user="ann", processing_time=9)
    steered.slurm.wait(5)
    steered.run()
    next_job = user(steered, "ann").organizations[0].next_job
    assert next_job is not None
    assert next_job.job_id == 6


def test_a_user_of_several_organizations_gets_an_answer_for_each_in_order(
    steered: Service,
) -> None:
    output = user(steered, "user").organizations
    assert [jobs.accounts for jobs in output] == [("physics",), ("biology",), ("guest",)]
    assert [(jobs.waiting, jobs.running) for jobs in output] == [(1, 0), (2, 1), (1, 0)]
    assert [jobs.ahead for jobs in output] == [1, 2, 4]
    assert [jobs.own_ahead for jobs in output] == [1, 0, 0]
    assert output[2].ranked is None


def test_one_user_does_not_see_anothers_jobs(steered: Service) -> None:
    (jobs,) = user(steered, "ann").organizations
    assert (jobs.accounts, jobs.waiting) == (("physics",), 1)


def test_a_user_whose_jobs_all_run(steered: Service) -> None:
    for job_id in (3, 5):
        steered.slurm.cancel(job_id)
    jobs = user(steered, "user").organizations[1]
    assert (jobs.waiting, jobs.running, jobs.oldest, jobs.next_job) == (0, 1, None, None)
    assert (jobs.ahead, jobs.own_ahead) == (None, None)


def test_a_user_without_jobs(steered: Service) -> None:
    with pytest.raises(
        NothingToExplainError, match="no job of user eve is pending or running; see"
    ):
        user(steered, "eve")


def test_an_account_without_jobs_still_has_its_rank(steered: Service) -> None:
    for job_id in (2, 6):
        steered.slurm.cancel(job_id)
    (jobs,) = account(steered, "physics").organizations
    assert jobs.ranked is not None
    assert (jobs.waiting, jobs.running, jobs.ranked.rank) == (0, 0, 1)


@pytest.mark.parametrize(
    ("name", "hint"), [("phisics", "did you mean physics"), ("zz", "see `sacctmgr show account`")]
)
def test_an_unknown_account(steered: Service, name: str, hint: str) -> None:
    with pytest.raises(NothingToExplainError, match=f"no account {name} is known here; {hint}"):
        account(steered, name)


def test_jobs_as_json(steered: Service) -> None:
    output = json.loads(json.dumps(account(steered, "physics").as_json()))
    assert output.keys() == {
        *(
            "account",
            "cluster",
            "pool",
            "t",
            "rule",
            "estimated_at",
            "horizon",
            "steering",
            "drift",
            "slurm_away",
            "organizations",
        )
    }
    (jobs,) = output["organizations"]
    assert (jobs["organization"], jobs["oldest"]["job_id"]) == ("physics", 2)
    assert (jobs["waiting"], jobs["held"], jobs["next"]["job_id"]) == (2, 0, 6)


# -- without Slurm


@pytest.fixture
def alone(steered: Service) -> Service:
    steered.slurm.take_down("slurmctld")
    return steered


@pytest.mark.parametrize("label", ["5", "5_[0-1]"])
def test_a_job_that_was_written_to_is_explained_without_slurm(alone: Service, label: str) -> None:
    output = job(alone, label)
    assert output.basis.away == "slurmctld does not answer"
    assert output.ranked is not None
    assert (output.ranked.organization, output.ranked.before) == ("biology", {"physics": 2})
    assert (output.job, output.ahead, output.own_ahead) == (None, None, None)
    assert [push.new for push in output.pushes] == [LAST]


@pytest.mark.parametrize("label", ["99", "4", "phys"])
def test_a_job_that_was_never_written_to_needs_slurm(alone: Service, label: str) -> None:
    with pytest.raises(SlurmUnavailableError, match="slurmctld does not answer"):
        job(alone, label)


def test_without_slurm_a_users_running_jobs_show_its_organization(alone: Service) -> None:
    (jobs,) = user(alone, "user").organizations
    assert (jobs.accounts, jobs.waiting, jobs.held, jobs.running) == (("biology",), None, None, 1)
    with pytest.raises(SlurmUnavailableError):
        user(alone, "ann")


def test_without_slurm_an_account_has_its_rank(alone: Service) -> None:
    (jobs,) = account(alone, "biology").organizations
    assert jobs.ranked is not None
    assert jobs.ranked.before == {"physics": 2}
    with pytest.raises(NothingToExplainError):
        account(alone, "zz")


# -- equal priorities


def test_jobs_of_the_same_priority_are_ahead_in_slurms_order(slurm: Cluster, store: Store) -> None:
    """2 and 3 come in the same second, 4 later; then an array, of which one task is split off."""
    slurm.fill("biology")
    for _ in range(2):
        slurm.submit("physics", processing_time=9)
    slurm.wait(5)
    slurm.submit("physics", processing_time=9)
    service = Service(slurm, store)
    service.run()
    assert len({one.priority for one in slurm.jobs()}) == 1
    found = [job(service, label) for label in ("2", "3", "4")]
    assert [(one.ahead, one.tied_ahead, one.own_ahead) for one in found] == [
        *((0, 0, 0), (1, 1, 1), (2, 2, 2)),
    ]
    (jobs,) = account(service, "physics").organizations
    assert jobs.next_job is not None
    assert (jobs.next_job.job_id, jobs.ahead, jobs.tied_ahead) == (2, 0, 0)


def test_held_jobs_are_in_no_order_among_each_other(steered: Service) -> None:
    steered.slurm.hold(2)
    steered.slurm.hold(3)
    assert (job(steered, "2").tied_ahead, job(steered, "3").tied_ahead) == (0, 0)


# -- when it will start


def foresee(service: Service, *rows: ForecastRow) -> None:
    with service.store.cluster(NAME).transaction() as transaction:
        transaction.forecasts.save(rows, [])


def test_a_forecast_is_shown_while_it_is_fresh(steered: Service) -> None:
    row = forecast(2, NOW)
    foresee(steered, row)
    prospect = job(steered, "2").prospect
    assert prospect is not None
    assert prospect.forecast == row
    assert prospect.as_json() == {
        "t": NOW,
        "median": NOW + 600,
        "early": NOW + 300,
        "late": NOW + 1200,
        "within_hour": 0.5,
        "waits_for": "turn",
        "shorter_limit": None,
    }
    foresee(steered, replace(row, early=NOW - 9, median=NOW - 5))
    prospect = job(steered, "2").prospect
    assert prospect is not None
    assert prospect.forecast == replace(row, early=NOW + 10, median=NOW + 10)
    foresee(steered, replace(row, t=NOW + 10 - FRESH_SECONDS - 1))
    prospect = job(steered, "2").prospect
    assert prospect is not None
    assert (prospect.forecast, prospect.waits_for) == (None, "turn")


def test_while_no_cycle_succeeds_a_forecast_grows_old(steered: Service) -> None:
    foresee(steered, forecast(2, NOW), forecast(6, NOW))
    store = steered.store.cluster(NAME)
    for age, found in ((400, NOW + 10 + 400), (FRESH_SECONDS, None)):
        prospect = explain_job(store, steered.slurm, "2", age=age).prospect
        assert prospect is not None
        assert (prospect.forecast and prospect.forecast.early) == found
        of_user = explain_user(store, steered.slurm, "user", age=age).organizations
        of_account = explain_account(store, steered.slurm, "physics", age=age).organizations
        for shown in (of_user[0].prospect, of_account[0].prospect):
            assert shown is not None
            assert (shown.forecast and shown.forecast.early) == found


def test_what_lies_beyond_all_futures_is_null(steered: Service) -> None:
    foresee(steered, replace(forecast(2, NOW), late=LATER, waits_for="processors"))
    found = job(steered, "2").as_json()["start"]
    assert (found["early"], found["late"], found["waits_for"]) == (NOW + 300, None, "processors")


def test_of_a_user_the_next_job_is_foreseen(steered: Service) -> None:
    foresee(steered, forecast(2, NOW), forecast(6, NOW))
    physics = user(steered, "ann").organizations[0]
    assert physics.as_json()["start"]["median"] == NOW + 600
    assert physics.next_job is not None
    assert physics.next_job.job_id == 6


def test_what_a_job_lacks_beside_its_turn_is_said_instead(steered: Service) -> None:
    foresee(steered, forecast(2, NOW))
    steered.slurm.hold(2)
    start = job(steered, "2").as_json()["start"]
    assert start == {
        **dict.fromkeys(("t", "median", "early", "late", "within_hour", "shorter_limit")),
        "waits_for": "hold",
    }


def test_the_start_of_a_job_that_is_to_begin_later_is_foreseen(steered: Service) -> None:
    number = steered.slurm.submit("physics", processing_time=10, begin=NOW + 500)
    assert job(steered, str(number)).as_json()["start"]["waits_for"] == "time"
    foresee(steered, forecast(number, NOW))
    start = job(steered, str(number)).as_json()["start"]
    assert (start["median"], start["waits_for"]) == (NOW + 600, "time")
