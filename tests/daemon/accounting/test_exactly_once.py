"""However the records come, the ledger says what the final records say, to the unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from shapleyprio.daemon.accounting import accounting
from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.daemon.accounting.allocating import CorrectionError
from shapleyprio.daemon.accounting.cluster_clock import AccountingError
from shapleyprio.daemon.accounting.ownership import correct, read_ownership
from shapleyprio.fairness.tenure import Kind
from shapleyprio.store import Store
from tests.daemon.scripted_accounting import (
    NAMES,
    OVERLAP,
    Crash,
    Execution,
    ScriptedCluster,
    StoredLedger,
    correction_of,
    fed_once,
    runs_since,
)
from tests.examples import examples
from tests.fairness.examples import ledger_of, standings_by_parts
from tests.store.servers import Databases

BEGIN = 1_700_000_000
HORIZONS = [None, 10, 75, 200]

ORGANIZATIONS = st.sampled_from(NAMES)
NODES = ["p1", "b1", "c1"]
UNLISTED = [f"x{number}" for number in range(20)]
ACCOUNTS = ["phys", "bio", "unlisted"]
DELAYS = st.integers(0, 3).map(lambda number: number * OVERLAP // 3)
ORDERS = st.integers(0, 2**16).map(Random)
FINAL = st.sampled_from(["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY"])
BROKEN_OFF = st.sampled_from(["PREEMPTED", "NODE_FAIL", "REQUEUED"])
PROCESSORS = st.dictionaries(
    st.sampled_from(NODES) | st.sampled_from(UNLISTED), st.integers(1, 8), min_size=1, max_size=3
)
WAITS = st.integers(0, 20).map(lambda number: 5 * number) | st.integers(1, 4)
"""Mostly multiples of the same, so that events meet each other and the horizon's edge."""

_numbers = count()
_shared: list[Store] = []


@pytest.fixture(scope="module", autouse=True)
def _one_store_for_all(databases: Databases, database: str) -> Iterator[None]:
    with databases.store(database) as store:
        _shared[:] = [store]
        yield


class Life(RuleBasedStateMachine):
    """A cluster lives, its accounting records it somehow, and the daemon keeps the ledger."""

    @initialize(
        horizon=st.sampled_from(HORIZONS),
        opened_before=st.integers(0, 100),
        chunk=st.sampled_from([1, 2, 5000]),
        running=st.lists(
            st.tuples(st.sampled_from(ACCOUNTS), PROCESSORS, st.integers(0, 150)), max_size=4
        ),
    )
    def open_the_ledger(
        self,
        horizon: int | None,
        opened_before: int,
        chunk: int,
        running: list[tuple[str, dict[str, int], int]],
    ) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(accounting, "CHUNK", chunk)
        self.name = f"c{next(_numbers)}"
        self.rows = count(1)
        self.keys: set[tuple[int, int, int]] = set()
        self.pruned_until = 0
        self.polled = False
        self.seen: set[int] = set()
        self.cluster = ScriptedCluster(
            BEGIN,
            {
                "node": {"p1": "physics", "b1": "biology", "c1": "chemistry"},
                "account": {"phys": "physics", "bio": "biology"},
            },
        )
        self.ledger = StoredLedger(
            _shared[0], self.name, self.cluster, horizon, BEGIN - opened_before
        )
        for account, processors, ran in running:
            row = self._submit(account, processors, BEGIN - ran - 10)
            self._start(row, BEGIN - ran, delay=0)

    def teardown(self) -> None:
        if not hasattr(self, "cluster"):
            return
        try:
            self.everything_agrees_in_the_end(Random(0))
        finally:
            self.patch.undo()

    # the cluster

    @rule(seconds=WAITS)
    def time_passes(self, seconds: int) -> None:
        for _ in range(seconds):
            self.cluster.now += 1
            self.cluster.deliver()

    @rule(account=st.sampled_from(ACCOUNTS), processors=PROCESSORS, delay=DELAYS)
    def a_job_is_submitted(self, account: str, processors: dict[str, int], delay: int) -> None:
        row = self._submit(account, processors, self.cluster.now)
        self.cluster.change(row, delay)

    @rule(
        account=st.sampled_from(ACCOUNTS),
        processors=PROCESSORS,
        delay=DELAYS,
    )
    def a_job_starts_at_once(self, account: str, processors: dict[str, int], delay: int) -> None:
        row = self._submit(account, processors, self.cluster.now)
        self._start(row, self.cluster.now, delay)

    @rule(
        account=st.sampled_from(ACCOUNTS),
        processors=PROCESSORS,
        length=st.integers(0, 20),
        state=FINAL | BROKEN_OFF,
        delay=DELAYS,
    )
    def a_short_job_runs(
        self, account: str, processors: dict[str, int], length: int, state: str, delay: int
    ) -> None:
        row = self._submit(account, processors, self.cluster.now)
        self._start(row, self.cluster.now, delay)
        self.time_passes(length)
        self._end(row, self.cluster.now, state, delay)

    @precondition(lambda self: self._some("PENDING"))
    @rule(data=st.data(), cancelled=st.booleans(), delay=DELAYS)
    def a_job_starts_or_is_cancelled_before_it_does(
        self, data: st.DataObject, cancelled: bool, delay: int
    ) -> None:
        row, now = self._draw(data, "PENDING"), self.cluster.now
        if cancelled:
            self._change(row, delay, start=now, end=now, state="CANCELLED", processors={})
        else:
            self._start(row, now, delay)

    @precondition(lambda self: self._some("RUNNING", "SUSPENDED"))
    @rule(data=st.data(), state=FINAL, delay=DELAYS)
    def a_job_ends(self, data: st.DataObject, state: str, delay: int) -> None:
        self._end(self._draw(data, "RUNNING", "SUSPENDED"), self.cluster.now, state, delay)

    @precondition(lambda self: self._some("RUNNING"))
    @rule(data=st.data(), state=BROKEN_OFF, delay=DELAYS, same_submit=st.booleans())
    def a_job_is_requeued(
        self, data: st.DataObject, state: str, delay: int, same_submit: bool
    ) -> None:
        row = self._draw(data, "RUNNING")
        self._end(row, self.cluster.now, state, delay)
        self.time_passes(1)
        old = self.cluster.truth[row]
        submit = old.submit if same_submit else self.cluster.now
        again = self._submit(old.account, old.processors, submit, job_id=old.job_id)
        self.cluster.change(again, delay)

    @precondition(lambda self: self._some("RUNNING"))
    @rule(data=st.data(), delay=DELAYS)
    def a_job_is_suspended(self, data: st.DataObject, delay: int) -> None:
        row = self._draw(data, "RUNNING")
        self._change(row, delay, state="SUSPENDED", paused_at=self.cluster.now)

    @precondition(lambda self: self._some("SUSPENDED"))
    @rule(data=st.data(), delay=DELAYS)
    def a_job_is_resumed(self, data: st.DataObject, delay: int) -> None:
        row = self._draw(data, "SUSPENDED")
        self._change(row, delay, **self._resumed(row, self.cluster.now), state="RUNNING")

    # what admins do

    @precondition(lambda self: self.seen & self.unfinished)
    @rule(data=st.data(), state=FINAL, delay=DELAYS)
    def a_job_that_seemed_to_run_turns_out_to_have_ended_long_ago(
        self, data: st.DataObject, state: str, delay: int
    ) -> None:
        row = data.draw(st.sampled_from(sorted(self.seen & self.unfinished)))
        start = self.cluster.truth[row].start
        assert start is not None
        self._end(row, data.draw(st.integers(start, self.cluster.now)), state, delay)

    @precondition(lambda self: self._some("RUNNING", "SUSPENDED"))
    @rule(data=st.data(), delay=DELAYS)
    def the_start_of_an_unfinished_run_is_corrected(self, data: st.DataObject, delay: int) -> None:
        row = self._draw(data, "RUNNING", "SUSPENDED")
        run = self.cluster.truth[row]
        assert run.start is not None
        latest = self.cluster.now if run.paused_at is None else run.paused_at
        latest -= run.suspended
        earliest = min(run.submit, run.start)
        if row not in self.seen:  # unread, it would be taken for one that was pruned
            earliest = max(earliest, min(run.start, self.pruned_until))
        start = data.draw(st.integers(earliest, max(run.start, latest)))
        if (run.job_id, run.submit, start) not in self.keys:
            self.keys.add((run.job_id, run.submit, start))
            self.seen.discard(row)  # its start distinguishes a run from others: this is a new one
            self._change(row, delay, start=start)

    @precondition(lambda self: self._some("RUNNING", "SUSPENDED"))
    @rule(data=st.data())
    def a_run_that_never_was_is_taken_out_of_accounting(self, data: st.DataObject) -> None:
        self.cluster.withdraw(self._draw(data, "RUNNING", "SUSPENDED"))

    @rule(
        holding=st.sampled_from(ACCOUNTS).map(lambda name: ("account", name))
        | st.sampled_from([*NODES, *UNLISTED]).map(lambda name: ("node", name)),
        to=ORGANIZATIONS | st.none(),
    )
    def a_node_or_an_account_changes_hands(self, holding: tuple[Kind, str], to: str | None) -> None:
        kind, name = holding
        if to is None:  # it is not listed for a while
            self.cluster.holders[kind].pop(name, None)
        else:
            self.cluster.holders[kind][name] = to

    @precondition(lambda self: self.polled)
    @rule(
        holding=st.sampled_from(ACCOUNTS).map(lambda name: ("account", name))
        | st.sampled_from([*NODES, *UNLISTED]).map(lambda name: ("node", name))
        | st.none(),
        to=ORGANIZATIONS,
        ago=WAITS,
    )
    def the_past_is_corrected(self, holding: tuple[Kind, str] | None, to: str, ago: int) -> None:
        """Of one name, or of all by the layout of now; since the last poll or long before."""
        since, cluster = self.cluster.now - ago, self.ledger.store.cluster(self.name)
        wanted = dict(self.cluster.holders)
        if holding is not None:
            kind, name = holding
            wanted = {kind: {name: to}}
        before = read_ownership(cluster).tenures
        correction = correction_of(wanted, since, at=self.cluster.now)
        if since < self.pruned_until and self.pruned_until > self.ledger.opens:
            with pytest.raises(CorrectionError, match="no longer stored"):
                correct(cluster, correction)
            return
        correct(cluster, correction)
        after = read_ownership(cluster).tenures
        for kind, names in wanted.items():
            for name, organization in names.items():
                for second in range(self.ledger.opens, self.cluster.now + 2):
                    held = before.holder(kind, name, second)
                    if before.knows(kind, name) and second >= since:
                        held = organization
                    assert after.holder(kind, name, second) == held
        with cluster.reading() as view:
            for run, allocations in view.runs.all_runs():
                assert allocations == after.allocations(run)

    @rule()
    def accounting_goes_down_or_comes_back(self) -> None:
        self.cluster.down = not self.cluster.down
        self.cluster.deliver()

    # the daemon

    @rule(order=ORDERS, later=WAITS)
    def the_daemon_polls(self, order: Random, later: int = 0) -> None:
        self.time_passes(later)
        self._poll(order)

    @rule(order=ORDERS, after=st.integers(0, 8), restarted=st.booleans())
    def the_daemon_dies_while_it_polls(self, order: Random, after: int, restarted: bool) -> None:
        with pytest.raises(Crash):
            self.ledger.poll(order, crash_after=after)
        if restarted:  # else only the transaction failed
            self.ledger.restart()

    @rule()
    def the_daemon_prunes(self) -> None:
        self.ledger.prune()
        with self.ledger.store.cluster(self.name).reading() as view:
            watermark = view.ledger.watermark()
        self.pruned_until = self.ledger.opens if watermark is None else watermark.pruned_until

    @rule(horizon=st.sampled_from(HORIZONS), order=ORDERS)
    def the_horizon_is_configured_anew(self, horizon: int | None, order: Random) -> None:
        old, self.ledger.horizon = self.ledger.horizon, horizon
        beyond = horizon is not None and self.cluster.now - horizon < self.pruned_until
        if beyond and self.pruned_until > self.ledger.opens:
            with pytest.raises(AccountingError, match="horizon"):
                self.ledger.poll(order)
            self.ledger.horizon = old
        else:
            self._poll(order)

    # and what it must come to

    def everything_agrees_in_the_end(self, order: Random) -> None:
        self.cluster.down = False
        self.time_passes(2 * OVERLAP)
        self.ledger.restart()
        t, account = self._poll(order)
        assert not self.cluster.on_their_way
        for kind, holders in self.cluster.holders.items():
            for name, organization in holders.items():
                assert account.tenures.holder(kind, name, t) == organization
        final = [execution.record(t) for execution in self.cluster.truth.values()]
        heard = account.ledger.standings(t, NAMES)
        order.shuffle(final)
        assert heard == fed_once(
            self.ledger.store,
            f"{self.name} afresh {next(_numbers)}",
            final,
            tenures=account.tenures,
            horizon=self.ledger.horizon,
            opens=self.ledger.opens,
            t=t,
        )
        assert heard == standings_by_parts(
            runs_since(self.ledger.opens, final),
            account.tenures.holder,
            NAMES,
            t,
            self.ledger.horizon,
        )
        assert sum(standing.balance for standing in heard.values()) == 0

    def _poll(self, order: Random) -> tuple[int, OpenLedger]:
        """After every poll the ledger says what accounting has heard so far."""
        t, account = self.ledger.poll(order)
        self.polled = True
        assert t == self.cluster.now
        self.seen |= {
            row
            for row, run in self.cluster.heard.items()
            if run.unfinished and run.start == self.cluster.truth[row].start
        }
        records = [execution.record(t) for execution in self.cluster.heard.values()]
        allocations = [
            allocation
            for run in runs_since(self.ledger.opens, records)
            for allocation in account.tenures.allocations(run)
        ]
        expected = ledger_of(allocations, t, self.ledger.horizon).standings(t, NAMES)
        assert account.ledger.standings(t, NAMES) == expected
        return t, account

    # what the rules are made of

    def _submit(
        self, account: str, processors: Mapping[str, int], submit: int, job_id: int | None = None
    ) -> int:
        row = next(self.rows)
        self.cluster.truth[row] = Execution(job_id or row, submit, account, processors)
        return row

    def _start(self, row: int, start: int, delay: int) -> None:
        run = self.cluster.truth[row]
        self.keys.add((run.job_id, run.submit, start))
        self._change(row, delay, start=start, state="RUNNING")

    def _end(self, row: int, end: int, state: str, delay: int) -> None:
        self._change(row, delay, **self._resumed(row, end), end=end, state=state)

    def _resumed(self, row: int, second: int) -> dict[str, int | None]:
        run = self.cluster.truth[row]
        if run.paused_at is None:
            return {}
        pause = max(0, second - run.paused_at)
        return {"suspended": run.suspended + pause, "paused_at": None}

    def _change(self, row: int, delay: int, **values: object) -> None:
        for name, value in values.items():
            setattr(self.cluster.truth[row], name, value)
        self.cluster.change(row, delay)

    def _some(self, *states: str) -> bool:
        return any(run.state in states for run in self.cluster.truth.values())

    @property
    def unfinished(self) -> set[int]:
        """Rows of executions that have started and not ended."""
        return {row for row, run in self.cluster.truth.items() if run.unfinished}

    def _draw(self, data: st.DataObject, *states: str) -> int:
        rows = [row for row, run in self.cluster.truth.items() if run.state in states]
        return data.draw(st.sampled_from(rows))


pytestmark = pytest.mark.timeout(600)  # should it fail, it takes minutes to find a short example

TestExactlyOnce = Life.TestCase
TestExactlyOnce.settings = settings(
    max_examples=examples(100),
    stateful_step_count=40,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
