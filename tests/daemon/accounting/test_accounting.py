"""What becomes of each kind of record, and of the ledger when its settings change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.accounting import accounting
from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.daemon.accounting.cluster_clock import (
    CLOCK_TOLERANCE_SECONDS,
    AccountingError,
    ClockError,
    check_clock,
)
from shapleyprio.daemon.accounting.tally import Tally
from shapleyprio.daemon.steering.pruning import prune_runs
from shapleyprio.fairness.runs import RunKey
from shapleyprio.fairness.tenure import NOBODY, Move
from shapleyprio.fairness.worth import worth
from shapleyprio.slurm.port import Malformed
from shapleyprio.store import Store, Transaction
from shapleyprio.store.repositories.ledgers import Ledgers
from tests.daemon.scripted_accounting import controller_at
from tests.fairness.examples import job_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from shapleyprio.fairness.ledger import Entry, Standing
    from shapleyprio.fairness.runs import JobRecord, Run
    from shapleyprio.fairness.tenure import Kind

    Line = JobRecord | Malformed

CLUSTER = "c"
NAMES = ["physics", "biology", NOBODY]
HOLDERS: dict[Kind, dict[str, str]] = {
    "node": {"n1": "physics", "n2": "biology"},
    "account": {"phys": "physics", "bio": "biology"},
}
GARBLED = Malformed("sacct", "7|phys|?", "field 3 is no number")


class StoredLedger:
    """A ledger in a store, opened anew for each step as the service does."""

    def __init__(self, store: Store, *, horizon: int | None = None, opens: int = 0) -> None:
        self.store = store
        self.horizon = horizon
        self.opens = opens
        self.holders = {kind: dict(names) for kind, names in HOLDERS.items()}
        self.times_asked = 0
        self.tally = Tally()
        self.sizes: dict[str, int] = {}
        self.said: dict[RunKey, dict[str, int]] = {}
        self.uncounted: list[Run] = []

    def open(self, transaction: Transaction, mentioned: set[RunKey] | None = None) -> OpenLedger:
        return OpenLedger(
            transaction,
            horizon=self.horizon,
            opens=self.opens,
            ask_holders=self._ask_holders,
            sizes=lambda: self.sizes,
            mentioned=mentioned,
        )

    def cycle(
        self,
        now: int,
        records: Iterable[Line] = (),
        *,
        answer: Iterable[Line] | None = None,
        holders: Mapping[Kind, Mapping[str, str]] = HOLDERS,
    ) -> dict[str, Standing]:
        """Standings after a cycle; if there is an answer, all unfinished runs were asked about."""
        with self.store.cluster(CLUSTER).transaction() as transaction:
            account = self.open(transaction)
            account.look(controller_at(now), overlap=60)
            for kind, names in holders.items():
                account.observe_holders(kind, names, now)
            account.ingest(records, now)
            if answer is not None:
                account.settle_unfinished(account.unmentioned(), answer, now)
            self.uncounted = account.uncounted()
            account.count(self.said)
            t = account.close(now, observed_until=now)
            self.tally = account.tally
            assert t == now
            return account.ledger.standings(t, NAMES)

    def utility(self, now: int, records: Iterable[Line] = ()) -> int:
        return self.cycle(now, records)["physics"].utility

    def prune(self, *, overlap: int = 0) -> int:
        with self.store.cluster(CLUSTER).transaction() as transaction:
            return prune_runs(transaction, self.horizon, overlap=overlap)

    def stored(self) -> list[RunKey]:
        with self.store.cluster(CLUSTER).reading() as view:
            return [run.key for run, _ in view.runs.all_runs()]

    def _ask_holders(self) -> Mapping[Kind, Mapping[str, str]]:
        self.times_asked += 1
        return self.holders


@pytest.fixture
def ledger(store: Store) -> StoredLedger:
    return StoredLedger(store)


# records


def test_a_finished_run_is_accounted(ledger: StoredLedger) -> None:
    standings = ledger.cycle(200, [job_record(start=100, end=160, processors={"n1": 2, "n2": 1})])
    assert standings["physics"].utility == 3 * worth(100, 160, 200)
    assert standings["physics"].contribution == 2 * worth(100, 160, 200)
    assert standings["biology"].contribution == worth(100, 160, 200)
    assert standings["physics"].parts == 180


def test_a_run_over_unlike_nodes_is_split_in_proportion_to_their_sizes(
    ledger: StoredLedger,
) -> None:
    ledger.sizes = {"n1": 128, "n2": 4}
    record = replace(job_record(start=100, end=160), nodes=("n1", "n2"), processors=132)
    standings = ledger.cycle(200, [record])
    assert standings["physics"].contribution == 128 * worth(100, 160, 200)
    assert standings["biology"].contribution == 4 * worth(100, 160, 200)
    assert ledger.uncounted == []  # it fills both

    ledger.sizes = {"n1": 64, "n2": 64}  # the admin changes slurm.conf: what was stored stays
    assert ledger.cycle(210, [record])["biology"].contribution == 4 * worth(100, 160, 210)
    ended = replace(record, processors=66, end=150)  # corrected by hand
    assert ledger.cycle(220, [ended])["biology"].contribution == 33 * worth(100, 150, 220)


def test_a_run_is_split_as_slurm_says_while_it_knows_the_job(ledger: StoredLedger) -> None:
    ledger.sizes = {"n1": 128, "n2": 4, "n3": 128}
    running = replace(job_record(start=100, state="RUNNING"), nodes=("n1", "n2"), processors=3)
    standings = ledger.cycle(200, [running])
    assert standings["biology"].contribution == 0
    (run,) = ledger.uncounted
    ledger.said = {run.key: {"n1": 1, "n2": 2}}
    standings = ledger.cycle(210, [running])
    assert standings["biology"].contribution == 2 * worth(100, None, 210)
    assert standings["physics"].utility == 3 * worth(100, None, 210)
    ledger.said = {}
    ended = replace(running, state="COMPLETED", end=220)
    standings = ledger.cycle(230, [ended])
    assert standings["biology"].contribution == 2 * worth(100, 220, 230)
    assert ledger.uncounted == []


def test_slurm_is_asked_only_for_runs_of_which_it_matters_and_which_it_knows(
    ledger: StoredLedger,
) -> None:
    ledger.sizes = {"n1": 8, "n2": 8, "n3": 8}
    ledger.holders["node"]["n3"] = "physics"
    records = [
        replace(job_record(number, start=600, state="RUNNING"), nodes=nodes, processors=processors)
        for number, nodes, processors in (
            (1, ("n1",), 3),
            (2, ("n1", "n2"), 16),
            (3, ("n1", "n3"), 3),
            (4, ("n1", "n2"), 3),
        )
    ]
    forgotten = replace(records[-1], job_id=5, start=100, end=600, state="COMPLETED")
    just_ended = replace(records[-1], job_id=6, start=100, end=900, state="COMPLETED")
    ledger.cycle(1000, [*records, forgotten, just_ended], holders=ledger.holders)
    assert [run.key.job_id for run in ledger.uncounted] == [6, 4]


def test_what_slurm_says_of_other_nodes_or_of_more_processors_changes_no_sum(
    ledger: StoredLedger,
) -> None:
    ledger.sizes = {"n1": 8, "n2": 8}
    running = replace(job_record(start=100, state="RUNNING"), nodes=("n1", "n2"), processors=4)
    ledger.cycle(200, [running])
    (run,) = ledger.uncounted
    ledger.said = {run.key: {"n1": 4}}
    assert ledger.cycle(210, [running])["biology"].contribution == 2 * worth(100, None, 210)
    ledger.said = {run.key: {"n1": 6, "n2": 2}}
    standings = ledger.cycle(220, [running])
    assert standings["biology"].contribution == worth(100, None, 220)
    assert standings["physics"].contribution == 3 * worth(100, None, 220)


def test_a_record_read_again_changes_nothing_and_is_not_counted_as_kept(
    ledger: StoredLedger,
) -> None:
    records = [job_record(1, start=100, end=160), job_record(2, start=150, state="RUNNING")]
    once = ledger.cycle(200, records)
    assert (ledger.tally.seen, ledger.tally.kept) == (2, 2)
    assert ledger.cycle(200, [*records, *records]) == once
    assert (ledger.tally.seen, ledger.tally.kept) == (4, 0)


def test_a_run_ages_between_cycles_without_a_new_record(ledger: StoredLedger) -> None:
    assert ledger.utility(200, [job_record(start=100, end=160)]) == worth(100, 160, 200)
    assert ledger.utility(300) == worth(100, 160, 300)


def test_the_last_word_on_a_run_counts(ledger: StoredLedger) -> None:
    ledger.cycle(200, [job_record(start=100, state="RUNNING")])
    assert ledger.utility(200, [job_record(start=100, end=190)]) == worth(100, 190, 200)
    assert ledger.utility(200, [job_record(start=100, end=150)]) == worth(100, 150, 200)
    assert len(ledger.stored()) == 1


def test_a_job_that_waits_is_counted_and_nothing_else(ledger: StoredLedger) -> None:
    waiting = job_record(start=None, state="PENDING", processors={})
    cancelled = job_record(2, start=150, end=150, state="CANCELLED", processors={})
    assert ledger.utility(200, [waiting, cancelled]) == 0
    assert (ledger.tally.seen, ledger.tally.unstarted, ledger.tally.kept) == (2, 2, 0)
    assert ledger.stored() == []


def test_executions_of_a_requeued_job_count_each_for_itself(ledger: StoredLedger) -> None:
    records = [
        job_record(7, start=100, end=130, state="PREEMPTED"),
        job_record(7, start=150, end=160),
    ]
    assert ledger.utility(200, records) == worth(100, 130, 200) + worth(150, 160, 200)


def test_sums_stay_exact_in_the_store_over_ten_years_of_a_hundred_thousand_processors(
    store: Store,
) -> None:
    epoch, ten_years, processors = 1_700_000_000, 10 * 366 * 86_400, 100_000
    ledger = StoredLedger(store, opens=epoch)
    ledger.cycle(
        epoch + 1, [job_record(start=epoch, state="RUNNING", processors={"n1": processors})]
    )
    now = epoch + ten_years
    ledger.cycle(now - 1)
    part = job_record(2, start=now - 1, end=now, processors={"n2": 1})
    standings = ledger.cycle(now, [part])
    assert standings["physics"].contribution == processors * ten_years * (ten_years + 1) // 2
    assert standings["physics"].utility == standings["physics"].contribution + 1


@pytest.mark.parametrize("horizon", [1, 7, 50])
def test_a_cycle_every_second_gives_the_same_as_one_at_the_end(store: Store, horizon: int) -> None:
    ledger = StoredLedger(store, horizon=horizon)
    records = [job_record(1, start=100, end=105), job_record(2, start=103, end=120)]
    for now in range(120, 190):
        expected = sum(worth(r.start or 0, r.end, now, horizon=horizon) for r in records)
        assert ledger.utility(now, records if now == 120 else ()) == expected
    assert ledger.cycle(190)["physics"].utility == 22 * horizon


def test_the_watermark_stays_where_accounting_was_complete(ledger: StoredLedger) -> None:
    with ledger.store.cluster(CLUSTER).transaction() as transaction:
        assert ledger.open(transaction).close(200, observed_until=150) == 200
    with ledger.store.cluster(CLUSTER).transaction() as transaction:
        account = ledger.open(transaction)
        assert account.watermark.observed_until == 150
        assert account.watermark.accounted_to == 200
        account.close(200, observed_until=140)
        assert account.watermark.observed_until == 150


# lines that cannot be accounted


def test_a_line_that_cannot_be_read_is_quarantined_and_counted(ledger: StoredLedger) -> None:
    readable = job_record(start=100, end=160)
    assert ledger.utility(200, [GARBLED, readable]) == worth(100, 160, 200)
    assert (ledger.tally.seen, ledger.tally.quarantined, ledger.tally.kept) == (2, 1, 1)
    ledger.cycle(230, [GARBLED])
    assert ledger.tally.quarantined == 1
    with ledger.store.cluster(CLUSTER).reading() as view:
        (kept,) = view.observed.quarantined()
    assert kept.line == GARBLED
    assert (kept.first_seen, kept.last_seen, kept.times) == (200, 230, 2)


@pytest.mark.parametrize(
    "ahead",
    [
        job_record(start=1000, state="RUNNING"),
        job_record(start=100, end=1000),
        job_record(start=1000, end=1000 + 60),
    ],
    ids=["start", "end", "both"],
)
def test_a_record_from_the_future_is_quarantined_and_accounted_when_its_time_has_come(
    ledger: StoredLedger, ahead: JobRecord
) -> None:
    now = 1000 - CLOCK_TOLERANCE_SECONDS - 1
    assert ledger.utility(now, [ahead]) == 0
    assert ledger.tally.quarantined == 1
    with ledger.store.cluster(CLUSTER).reading() as view:
        (kept,) = view.observed.quarantined()
    assert "future" in kept.line.reason
    assert "compare the hosts' clocks" in kept.line.reason
    assert ahead.start is not None
    assert ledger.utility(2000, [ahead]) == worth(ahead.start, ahead.end, 2000)
    assert ledger.utility(2000, [ahead]) == worth(ahead.start, ahead.end, 2000)


def test_clocks_of_hosts_may_differ_a_little(ledger: StoredLedger) -> None:
    ahead = job_record(start=200 + CLOCK_TOLERANCE_SECONDS, state="RUNNING")
    with ledger.store.cluster(CLUSTER).transaction() as transaction:
        account = ledger.open(transaction)
        account.ingest([ahead], 200)
        t = account.close(200, observed_until=200)
        assert account.tally.quarantined == 0
        assert t == ahead.start
        assert account.ledger.standings(t, NAMES)["physics"].utility == 0
    now = 210 + CLOCK_TOLERANCE_SECONDS
    assert ledger.utility(now) == worth(200 + CLOCK_TOLERANCE_SECONDS, None, now)


def test_time_never_goes_back_in_the_ledger(ledger: StoredLedger) -> None:
    ledger.cycle(1000, [job_record(start=100, end=160)])
    with ledger.store.cluster(CLUSTER).transaction() as transaction:
        account = ledger.open(transaction)
        check_clock(account.watermark, 1000 - CLOCK_TOLERANCE_SECONDS)
        assert account.close(900, observed_until=900) == 1000
        assert account.watermark.observed_until == 1000
        with pytest.raises(ClockError, match="301 s behind"):
            check_clock(account.watermark, 1000 - CLOCK_TOLERANCE_SECONDS - 1)


def test_no_change_of_hands_lies_after_the_time_at_which_the_ledger_stands(
    ledger: StoredLedger,
) -> None:
    ledger.cycle(900, [job_record(start=100, state="RUNNING")])
    with ledger.store.cluster(CLUSTER).transaction() as transaction:
        account = ledger.open(transaction)
        account.observe_holders("node", {"n1": "biology"}, 1000)
        t = account.close(995, observed_until=995)  # the clock was set back by 5 s meanwhile
        standings = account.ledger.standings(t, NAMES)
    assert standings["physics"].contribution == worth(100, None, t)
    assert standings["biology"].contribution == 0


# names never heard of


def test_unknown_names_are_asked_for_once_and_then_belong_to_nobody(
    ledger: StoredLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounting, "CHUNK", 1)
    records = [
        job_record(1, start=100, end=160, processors={"x1": 1}),
        job_record(2, start=100, end=160, processors={"x2": 1}),
        job_record(3, start=100, end=160, account="guests"),
    ]
    standings = ledger.cycle(200, records)
    assert ledger.times_asked == 1
    assert standings["physics"].utility == 2 * worth(100, 160, 200)
    assert standings[NOBODY].contribution == 2 * worth(100, 160, 200)
    assert standings[NOBODY].utility == 0
    ledger.cycle(230, records)
    assert ledger.times_asked == 1  # by now they are known to be nobody's


def test_a_new_node_is_its_owners_from_the_first_run_on(ledger: StoredLedger) -> None:
    ledger.cycle(100)
    ledger.holders["node"]["n3"] = "biology"
    standings = ledger.cycle(200, [job_record(start=110, end=160, processors={"n3": 1})])
    assert ledger.times_asked == 1
    assert standings["biology"].contribution == worth(110, 160, 200)
    assert standings[NOBODY].contribution == 0


def test_nobodys_node_is_somebodys_from_when_it_is_claimed(ledger: StoredLedger) -> None:
    ledger.cycle(200, [job_record(start=100, state="RUNNING", processors={"x1": 1})])
    standings = ledger.cycle(300, holders={"node": {"x1": "biology"}})
    assert standings[NOBODY].contribution == worth(100, None, 300)
    standings = ledger.cycle(400)
    assert standings[NOBODY].contribution == worth(100, 300, 400)
    assert standings["biology"].contribution == worth(300, None, 400)


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("stranger_first", [True, False])
def test_asking_for_a_new_name_may_bring_news_of_other_nodes(
    ledger: StoredLedger, *, ended: bool, stranger_first: bool
) -> None:
    ledger.cycle(200, [job_record(1, start=100, state="RUNNING")])
    ledger.holders["node"] |= {"n1": "biology", "n3": "biology"}
    known = (
        job_record(1, start=100, end=250) if ended else job_record(1, start=100, state="RUNNING")
    )
    stranger = job_record(2, start=290, end=300, processors={"n3": 1})
    records = [stranger, known] if stranger_first else [known, stranger]
    standings = ledger.cycle(300, records)
    end = 250 if ended else None
    assert standings["physics"].utility == worth(100, end, 300) + worth(290, 300, 300)
    assert standings["physics"].contribution == worth(100, end, 300)
    assert standings["biology"].contribution == worth(290, 300, 300)
    standings = ledger.cycle(400, records, holders={})
    assert standings["physics"].contribution == worth(100, end or 300, 400)
    late_parts = 0 if ended else worth(300, None, 400)
    assert standings["biology"].contribution == worth(290, 300, 400) + late_parts


# changing hands


def test_what_a_node_earned_stays_with_its_owner_of_then(ledger: StoredLedger) -> None:
    running = job_record(1, start=100, state="RUNNING")
    finished = job_record(2, start=100, end=160)
    ledger.cycle(200, [running, finished])
    before = ledger.cycle(300)
    moved = ledger.cycle(300, holders={"node": {"n1": "biology"}})
    assert moved == before
    standings = ledger.cycle(400, [running, finished], holders={})
    assert standings["physics"].contribution == worth(100, 300, 400) + worth(100, 160, 400)
    assert standings["biology"].contribution == worth(300, None, 400)


def test_an_account_that_changes_its_organization_takes_nothing_with_it(
    ledger: StoredLedger,
) -> None:
    ledger.cycle(200, [job_record(start=100, state="RUNNING", processors={"n2": 1})])
    ledger.cycle(300, holders={"account": {"phys": "biology"}})
    standings = ledger.cycle(400, holders={})
    assert standings["physics"].utility == worth(100, 300, 400)
    assert standings["biology"].utility == worth(300, None, 400)
    assert standings["biology"].contribution == worth(100, None, 400)


def test_it_is_reported_what_changed_hands(ledger: StoredLedger) -> None:
    with ledger.store.cluster(CLUSTER).transaction() as transaction:
        account = ledger.open(transaction)
        account.observe_holders("node", {"n1": "physics", "n2": "biology"}, 100)
        assert account.moves == []
        account.observe_holders("node", {"n1": "biology", "n2": "biology"}, 200)
        account.observe_holders("node", {"n1": "biology"}, 300)
        assert account.moves == [
            Move(kind="node", name="n1", before="physics", after="biology", since=200)
        ]


def test_a_late_record_counts_for_those_who_held_the_node_when_it_ran(ledger: StoredLedger) -> None:
    ledger.cycle(100)
    ledger.cycle(300, holders={"node": {"n1": "biology"}})
    standings = ledger.cycle(400, [job_record(start=200, end=350)], holders={})
    assert standings["physics"].contribution == worth(200, 300, 400)
    assert standings["biology"].contribution == worth(300, 350, 400)


def test_a_run_that_ends_ahead_of_the_clock_is_placed_anew_too(ledger: StoredLedger) -> None:
    with ledger.store.cluster(CLUSTER).transaction() as transaction:
        account = ledger.open(transaction)
        for kind, names in HOLDERS.items():
            account.observe_holders(kind, names, 100)
        account.ingest([job_record(start=100, end=260)], 200)
        account.observe_holders("node", {"n1": "biology"}, 200)
        t = account.close(200, observed_until=200)
        standings = account.ledger.standings(t, NAMES)
    assert t == 260
    assert standings["physics"].contribution == worth(100, 200, 260)
    assert standings["biology"].contribution == worth(200, 260, 260)


# runs that are no more


def test_an_unfinished_run_that_accounting_does_not_know_any_more_is_withdrawn(
    ledger: StoredLedger,
) -> None:
    ledger.cycle(
        200, [job_record(1, start=100, state="RUNNING"), job_record(2, start=100, end=160)]
    )
    standings = ledger.cycle(300, answer=[])
    assert ledger.tally.withdrawn == 1
    assert standings["physics"].utility == worth(100, 160, 300)
    assert ledger.stored() == [RunKey(2, 0, 100)]


def test_a_suspended_run_that_accounting_does_not_know_any_more_is_withdrawn(
    ledger: StoredLedger,
) -> None:
    ledger.cycle(200, [job_record(start=100, state="SUSPENDED", elapsed=30)])
    assert ledger.cycle(300, answer=[])["physics"].utility == 0
    assert ledger.tally.withdrawn == 1


def test_an_unfinished_run_whose_start_was_corrected_is_counted_once(ledger: StoredLedger) -> None:
    ledger.cycle(200, [job_record(start=100, state="RUNNING")])
    corrected = job_record(start=120, state="RUNNING")
    standings = ledger.cycle(300, [corrected], answer=[corrected])
    assert standings["physics"].utility == worth(120, None, 300)
    assert ledger.tally.withdrawn == 1


def test_the_answer_about_an_unfinished_run_is_accounted(ledger: StoredLedger) -> None:
    ledger.cycle(200, [job_record(1, start=100, state="RUNNING")])
    standings = ledger.cycle(9000, answer=[job_record(1, start=100, end=210)])
    assert standings["physics"].utility == worth(100, 210, 9000)
    assert ledger.tally.withdrawn == 0


def test_only_what_was_not_mentioned_is_asked_for(ledger: StoredLedger) -> None:
    records = [
        job_record(1, start=100, state="RUNNING"),
        job_record(2, start=100, state="RUNNING"),
        job_record(3, start=100, state="SUSPENDED", elapsed=30),
        job_record(4, start=100, end=160),
    ]
    ledger.cycle(200, records)
    with ledger.store.cluster(CLUSTER).transaction() as transaction:
        account = ledger.open(transaction)
        assert [key.job_id for key in account.unmentioned()] == [1, 2, 3]
        account.ingest([records[0]], 300)
        assert [key.job_id for key in account.unmentioned()] == [2, 3]
        account.ingest(records, 300)
        assert account.unmentioned() == []


def test_what_an_earlier_transaction_mentioned_is_not_asked_for(ledger: StoredLedger) -> None:
    records = [job_record(number, start=100, state="RUNNING") for number in (1, 2)]
    ledger.cycle(200, records)
    mentioned: set[RunKey] = set()
    for record, left in zip(records, ([2], []), strict=True):
        with ledger.store.cluster(CLUSTER).transaction() as transaction:
            account = ledger.open(transaction, mentioned)
            account.ingest([record], 300)
            assert [key.job_id for key in account.unmentioned()] == left


@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_unreadable_answer_withdraws_nothing_however_often_it_comes(
    ledger: StoredLedger, times: int
) -> None:
    ledger.cycle(200, [job_record(1, start=100, state="RUNNING")])
    for _ in range(times):
        standings = ledger.cycle(300, [GARBLED], answer=[GARBLED])
        assert ledger.tally.withdrawn == 0
        assert standings["physics"].utility == worth(100, None, 300)


# suspension


def test_a_run_suspended_for_longer_than_the_horizon_is_not_counted_twice(store: Store) -> None:
    ledger = StoredLedger(store, horizon=50)
    suspended = job_record(start=100, state="SUSPENDED", elapsed=30)
    ledger.cycle(200, [suspended])
    assert ledger.prune() == 0
    assert ledger.utility(300, [suspended]) == 30 * 50
    resumed = job_record(start=100, state="RUNNING", elapsed=40, suspended=170)
    assert ledger.utility(310, [resumed]) == worth(270, None, 310, horizon=50)
    ended = job_record(start=100, end=320, suspended=170)
    assert ledger.utility(400, [ended]) == 50 * 50


# where the ledger opens


def test_what_was_executed_before_the_book_was_opened_does_not_count(store: Store) -> None:
    ledger = StoredLedger(store, opens=1000)
    records = [
        job_record(1, start=900, end=990),
        job_record(2, start=900, end=1000),
        job_record(3, start=900, end=1010),
        job_record(4, start=950, state="RUNNING"),
        job_record(5, start=1000, end=1020),
    ]
    expected = worth(1000, 1010, 1100) + worth(1000, None, 1100) + worth(1000, 1020, 1100)
    assert ledger.utility(1100, records) == expected
    assert ledger.tally.late == 0
    assert [key.job_id for key in ledger.stored()] == [3, 4, 5]


def test_a_run_corrected_to_have_ended_before_the_book_was_opened_counts_nothing(
    store: Store,
) -> None:
    ledger = StoredLedger(store, opens=1000)
    ledger.cycle(1100, [job_record(start=900, state="RUNNING")])
    assert ledger.utility(1200, [job_record(start=900, end=950)]) == 0


def test_the_book_stays_open_from_where_it_was_opened(store: Store) -> None:
    StoredLedger(store, opens=1000).cycle(1100, [job_record(start=900, end=1010)])
    reconfigured = StoredLedger(store, opens=0)
    assert reconfigured.utility(1200, [job_record(start=900, end=1010)]) == worth(1000, 1010, 1200)


# pruning and the horizon


def test_pruning_changes_no_value(store: Store) -> None:
    ledger = StoredLedger(store, horizon=50)
    ledger.cycle(200, [job_record(1, start=100, end=150), job_record(2, start=100, end=151)])
    assert ledger.prune() == 1
    assert ledger.stored() == [RunKey(2, 0, 100)]
    expected = [worth(100, end, 210, horizon=50) for end in (150, 151)]
    assert ledger.utility(210) == sum(expected)
    assert ledger.prune() == 1
    assert ledger.utility(1000) == 101 * 50


def test_runs_that_will_be_read_again_are_not_pruned(store: Store) -> None:
    ledger = StoredLedger(store, horizon=10)
    records = [job_record(number, start=100, end=end) for number, end in enumerate((139, 140, 190))]
    standing = ledger.utility(200, records)
    assert ledger.prune(overlap=60) == 1
    assert [key.job_id for key in ledger.stored()] == [1, 2]
    assert ledger.utility(200, records[1:]) == standing
    assert (ledger.tally.late, ledger.tally.kept) == (0, 0)


def test_without_a_horizon_nothing_is_pruned(ledger: StoredLedger) -> None:
    ledger.cycle(200, [job_record(start=100, end=150)])
    assert ledger.prune() == 0
    assert len(ledger.stored()) == 1


def test_a_pruned_run_read_again_is_counted_as_late_and_not_accounted_twice(
    store: Store,
) -> None:
    ledger = StoredLedger(store, horizon=50)
    record = job_record(start=100, end=120)
    ledger.cycle(200, [record])
    ledger.prune()
    assert ledger.utility(300, [record]) == 20 * 50
    assert (ledger.tally.late, ledger.tally.kept) == (1, 0)


def test_a_record_that_comes_only_after_its_run_would_have_been_pruned_is_counted_as_late(
    store: Store,
) -> None:
    ledger = StoredLedger(store, horizon=50)
    ledger.cycle(200, [job_record(1, start=100, end=120)])
    ledger.prune()
    late = job_record(2, start=100, end=150)
    in_time = job_record(3, start=150, end=151)
    assert ledger.utility(200, [late, in_time]) == 20 * 50 + worth(150, 151, 200, horizon=50)
    assert (ledger.tally.late, ledger.tally.kept) == (1, 1)


def test_a_pruned_run_that_is_corrected_to_a_later_end_counts_once(store: Store) -> None:
    ledger = StoredLedger(store, horizon=50)
    ledger.cycle(200, [job_record(start=100, end=120)])
    ledger.prune()
    assert ledger.stored() == []
    assert ledger.utility(200, [job_record(start=100, end=180)]) == 20 * 50
    assert (ledger.tally.late, ledger.tally.kept) == (1, 0)


def test_only_entries_that_changed_are_written(
    ledger: StoredLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[set[tuple[str, str]]] = []
    save = Ledgers.save_entries

    def note(rows: Ledgers, entries: Mapping[tuple[str, str], Entry], *, earlier: bool) -> None:
        written.append(set(entries))
        save(rows, entries, earlier=earlier)

    monkeypatch.setattr(Ledgers, "save_entries", note)
    records = [
        job_record(1, account="phys", start=100, end=160),
        job_record(2, account="bio", start=100, end=170),
    ]
    ledger.cycle(200, records)
    ledger.cycle(300, [*records, job_record(3, account="bio", start=200, end=250)])
    standings = ledger.cycle(300, records)
    assert written == [
        {("physics", "physics"), ("biology", "physics")},
        {("biology", "physics")},
        set(),
    ]
    assert standings["physics"].utility == worth(100, 160, 300)
    assert standings["biology"].utility == worth(100, 170, 300) + worth(200, 250, 300)


@pytest.mark.parametrize("shorter", [1, 10, 49])
def test_a_shorter_horizon_counts_as_if_it_had_always_been(store: Store, shorter: int) -> None:
    ledger = StoredLedger(store, horizon=50)
    ledger.cycle(
        200, [job_record(1, start=100, end=180), job_record(2, start=150, state="RUNNING")]
    )
    ledger.prune()
    ledger.horizon = shorter
    expected = worth(100, 180, 210, horizon=shorter) + worth(150, None, 210, horizon=shorter)
    assert ledger.utility(210) == expected


def test_a_longer_horizon_counts_as_if_it_had_always_been_while_nothing_is_pruned(
    store: Store,
) -> None:
    ledger = StoredLedger(store, horizon=50)
    ledger.cycle(200, [job_record(start=100, end=180)])
    ledger.horizon = 80
    assert ledger.utility(210) == worth(100, 180, 210, horizon=80)


def test_an_unlimited_horizon_counts_as_if_it_had_always_been_even_after_pruning(
    store: Store,
) -> None:
    ledger = StoredLedger(store, horizon=50)
    ledger.cycle(200, [job_record(start=100, end=120)])
    assert ledger.prune() == 1
    ledger.horizon = None
    assert ledger.utility(300) == worth(100, 120, 300)


def test_a_horizon_lengthened_beyond_pruned_runs_is_refused_and_nothing_changes(
    store: Store,
) -> None:
    ledger = StoredLedger(store, horizon=50)
    ledger.cycle(200, [job_record(start=100, end=120)])
    assert ledger.prune() == 1
    ledger.horizon = 80
    with pytest.raises(AccountingError, match=r"fairness\.horizon: runs that ended before 150"):
        ledger.cycle(210, [job_record(2, start=200, end=205)])
    ledger.horizon = 50
    assert ledger.utility(210) == 20 * 50
    ledger.horizon = 80
    assert ledger.utility(230) == 20 * 80  # by now no part younger than that is missing


def test_a_run_from_before_the_fold_is_exact_when_its_end_is_corrected(store: Store) -> None:
    ledger = StoredLedger(store, horizon=50)
    ledger.cycle(400, [job_record(start=100, state="RUNNING")])
    ledger.prune()
    corrected = job_record(start=100, end=130)
    assert ledger.utility(500, [corrected]) == 30 * 50
    ledger.prune()
    assert ledger.utility(600) == 30 * 50
