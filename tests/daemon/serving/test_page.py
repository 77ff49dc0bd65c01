"""What the page says in words, and what it must never say."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from shapleyprio.common.wording import DAY, MISSING, signed_duration
from shapleyprio.daemon.answering.changes import Change
from shapleyprio.daemon.answering.estimated import Estimated, MutualGain
from shapleyprio.daemon.answering.pool_status import PoolStatus
from shapleyprio.daemon.answering.status import read_status
from shapleyprio.daemon.answering.waits import WaitsInPartition
from shapleyprio.daemon.drift.figures import last_window
from shapleyprio.daemon.serving import page
from shapleyprio.daemon.serving.checks import Checked
from shapleyprio.daemon.serving.overview import Drift, Overview, drift_of_last_day
from shapleyprio.fairness.pool import PartState, PoolPart, Stay
from shapleyprio.store import GUARANTEE, DriftRow, PauseRow, SteeringRow, Store
from tests.daemon.consortium import NAME, NOW, Service
from tests.store.examples import exception


@pytest.fixture
def overview(steered: Service) -> Overview:
    """Just after a good cycle."""
    return Overview(
        cluster=NAME,
        others=[],
        at=NOW + 11,
        poll_seconds=30,
        status=read_status(steered.store.cluster(NAME)),
        why="",
        drift=None,
        drift_trouble="",
        checked=Checked(NOW, ()),
    )


def row(end: int, utility: int, *, organization: str = "physics", parts: int = 10) -> DriftRow:
    return DriftRow(
        t=end, organization=organization, schedule="recorded", begin=end - 100, reference="ref",
        utility=utility, fair=0, parts=parts,
    )  # fmt: skip


def drift_in(store: Store, *rows: DriftRow) -> Drift | None:
    with store.cluster(NAME).transaction() as transaction:
        transaction.history.save_drifts(rows)
    with store.cluster(NAME).reading() as view:
        return drift_of_last_day(view.history, NOW)


def test_all_is_well(overview: Overview) -> None:
    text = page.render(overview)
    assert "alarm" not in text.split("</style>")[1]
    assert "Nothing found." in text
    assert "no window has been replayed yet" in text


def test_a_department_is_shown_as_a_part_of_its_faculty(overview: Overview) -> None:
    assert overview.status is not None
    first, *others = overview.status.rows
    rows = (replace(first, parent="<science>"), *others)
    text = page.render(replace(overview, status=replace(overview.status, rows=rows)))
    assert text.count("of processors, part of &lt;science&gt;</small>") == 1


def test_a_pause_is_an_alarm(overview: Overview) -> None:
    pause = PauseRow(since=NOW, user="ann", reason="an <odd> queue", keep=False)
    text = page.render(replace(overview, pause=pause))
    assert "<b>Steering is paused</b> since <time>2027-01-15 08:00:00" in text
    assert "by ann: an &lt;odd&gt; queue. Jobs have the priorities that" in text
    assert "Jobs keep the points" in page.render(replace(overview, pause=replace(pause, keep=True)))


def test_everybody_sees_which_jobs_go_first_and_why(overview: Overview) -> None:
    row = exception(7, NOW, reason="a <big> deadline", until=NOW + 60)
    text = page.render(replace(overview, exceptions=[row]))
    assert "<b>Job 7 goes before all others of physics</b> since <time>2027-01-15 08:00:00" in text
    assert "until <time>2027-01-15 08:01:00" in text
    assert "ordered by ann: a &lt;big&gt; deadline." in text
    all_others = page.render(replace(overview, exceptions=[replace(row, before_all=True)]))
    assert "goes before all others</b>" in all_others
    pause = PauseRow(since=NOW + 9, user="ann", reason="x", keep=False)
    paused = replace(overview, exceptions=[row, replace(row, user=GUARANTEE)], pause=pause)
    text = page.render(paused)
    assert "<b>Once steering is resumed job 7 goes before all others of physics</b> until" in text
    assert "ordered by ann at <time>2027-01-15 08:00:00" in text
    assert "The first would be served next" in text
    assert GUARANTEE not in text
    assert replace(overview, exceptions=[row]).as_json()["exceptions"] == [
        {
            "job": "7",
            "since": NOW,
            "user": "ann",
            "reason": "a <big> deadline",
            "organization": "physics",
            "before_all": False,
            "until": NOW + 60,
        }
    ]


def test_a_pool_and_what_is_stale_in_it_is_shown(overview: Overview) -> None:
    part = PoolPart(cluster="c<2>", since=NOW, t=NOW, state=PartState.STALE, balances={})
    stay = Stay(pool="all", since=NOW, clusters=(NAME, "c<2>"), stale_after=60, consortium="North")
    assert overview.status is not None
    pool = PoolStatus(
        stay=stay,
        t=NOW + 61,
        parts=(part,),
        scores={row.organization: 7200 for row in overview.status.rows},
        all_parts=2,
        strangers=(),
    )
    text = page.render(replace(overview, status=replace(overview.status, pool=pool)))
    assert "<h3>Pool</h3>" in text
    assert "in the pool" in text
    assert text.count(signed_duration(3600)) == len(overview.status.rows)
    assert "Pool all of North: ranks are by the sum of balances here since" in text
    assert "c&lt;2&gt; is stale: its last cycle was at" in text
    assert "<h3>Pool</h3>" not in page.render(overview)


def test_what_changed_is_shown_the_newest_first(overview: Overview) -> None:
    assert "<h2>Changes</h2>" not in page.render(replace(overview, changes=()))
    changes = [
        Change(at=NOW, kind="ownership", what="node <a>: physics \u2192 biology"),
        Change(at=NOW + 60, until=NOW + 3660, kind="outage", what="no cycle for 60 min"),
    ]
    shown = page.render(replace(overview, changes=changes)).split("<h2>Changes</h2>")[1]
    assert shown.index("no cycle for") < shown.index("node &lt;a&gt;: physics \u2192 biology")
    assert '<span class="quiet">for 60 min</span>' in shown


def test_how_long_jobs_wait_is_shown(overview: Overview) -> None:
    assert overview.status is not None
    row = WaitsInPartition(
        organization="a<b>", partition="gpu", started=5, median=90, ninth_decile=7200,
        longest=9000, pending=1, oldest=None,
    )  # fmt: skip
    text = page.render(replace(overview, status=replace(overview.status, waits=(row,))))
    shown = text.split("<h2>Waits</h2>")[1]
    for cell in (
        "a&lt;b&gt;<small>gpu</small>",
        ">5<",
        ">1.5 min<",
        ">2 h<",
        ">1<",
        f">{MISSING}<",
    ):
        assert cell in shown
    assert "<h2>Waits</h2>" not in page.render(
        replace(overview, status=replace(overview.status, waits=()))
    )


def test_without_an_estimate_balances_are_left_open_until_there_is_one(overview: Overview) -> None:
    assert overview.status is not None
    steering = SteeringRow(since=NOW, rule="directcontr", chosen="shapley", channel="nice")
    waiting = replace(overview.status, steering=steering, had_estimate=False)
    text = page.render(replace(overview, status=waiting))
    assert "The rule shapley has no estimate yet. Until it has one, directcontr ranks" in text
    assert "The rule directcontr instead of shapley has steered since" in text
    assert text.count(f'<td role="cell" class="n balance">{MISSING}</td>') == len(waiting.rows)
    assert text.count('width="0.0"') == len(waiting.rows)
    text = page.render(replace(overview, status=replace(waiting, had_estimate=True)))
    assert "The rule shapley has no estimate to rely on; see the daemon&#39;s log." in text
    ranked = replace(waiting.cycle, rule="shapley")
    text = page.render(replace(overview, status=replace(waiting, cycle=ranked)))
    assert f">{signed_duration(waiting.rows[0].balance_per_part)}<" in text
    assert "Balance: earned (φ, by the rule shapley) minus got (ψ) since" in text


def test_why_nothing_was_replayed_is_said(overview: Overview) -> None:
    text = page.render(replace(overview, drift_trouble="no folder <for> a store"))
    assert "The last window failed: no folder &lt;for&gt; a store." in text


def test_what_each_is_worth_to_the_others_is_said_in_words(overview: Overview) -> None:
    assert overview.status is not None
    assert "What each is worth to the others" not in page.render(overview)
    gain = MutualGain(
        organization="physics",
        begin=NOW - 3600,
        others_sooner=Fraction(1800),
        own_sooner=None,
        error=40_000,
    )
    estimated = Estimated(t=NOW, coalitions=4, gains={"physics": gain}, waiting_work={})
    text = page.render(replace(overview, status=replace(overview.status, estimated=estimated)))
    assert "What each is worth to the others" in text
    assert "the others&#39; work since" in text
    assert "would have been done 30 min later on average." in text
    assert "from 4 coalitions, with a standard error of 5.6 min at most." in text
    status = replace(overview.status, estimated=estimated, all_parts=0)
    assert "from 4 coalitions." in page.render(replace(overview, status=status))


@pytest.mark.parametrize(("silent", "alarm"), [(90, False), (91, True)])
def test_a_daemon_whose_cycles_hang_is_noticed(
    overview: Overview, silent: int, alarm: bool
) -> None:
    assert overview.status is not None
    late = replace(overview, at=overview.status.cycle.finished + silent)
    assert ("No cycle for" in page.render(late)) == alarm
    assert late.as_json()["silent_seconds"] == (silent if alarm else 0)


def test_before_the_first_check_nothing_is_claimed(overview: Overview) -> None:
    text = page.render(replace(overview, checked=None))
    assert "Not checked yet." in text
    assert "Nothing found." not in text


def test_a_dry_run_says_that_it_writes_nothing(overview: Overview) -> None:
    assert overview.status is not None
    status = replace(overview.status, cycle=replace(overview.status.cycle, outcome="dry_run"))
    assert "the daemon runs with --dry-run" in page.render(replace(overview, status=status))


def test_names_are_escaped(overview: Overview) -> None:
    assert overview.status is not None
    rows = (replace(overview.status.rows[0], organization="<script>alert(1)</script>"),)
    text = page.render(replace(overview, status=replace(overview.status, rows=rows)))
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_a_consortium_where_all_are_even_has_no_bars(overview: Overview) -> None:
    assert overview.status is not None
    rows = tuple(replace(one, balance=0) for one in overview.status.rows)
    text = page.render(replace(overview, status=replace(overview.status, rows=rows)))
    assert text.count('width="0.0"') == len(rows)


# -- the drift of the last day


def test_only_the_last_day_counts(store: Store) -> None:
    drift = drift_in(store, row(NOW - DAY - 1, 1), row(NOW - DAY, 2), row(NOW + 1, 3))
    assert drift is not None
    assert drift.lines == {"physics": ((NOW - DAY, 0.2),)}


def test_windows_in_which_nothing_was_done_have_no_drift(store: Store) -> None:
    assert drift_in(store, row(NOW, 0, parts=0)) is None


def test_the_drift_of_who_left_is_not_shown_as_of_today(store: Store) -> None:
    drift = drift_in(store, row(NOW - 60, 7), row(NOW, -30, organization="biology"))
    assert drift is not None
    assert drift.largest_seconds == 3.0
    with store.cluster(NAME).reading() as view:
        window = last_window(view.history)
    assert window is not None
    assert window.delay("physics") is None
    assert window.delay("biology") == window.unfairness == 3


def test_a_sparkline_stays_within_its_drawing_and_a_single_point_is_a_dot(store: Store) -> None:
    drift = drift_in(store, row(NOW - DAY, -50), row(NOW, 50))
    assert drift is not None
    assert page.sparkline(drift.lines["physics"], drift) == "M0.00 19.00 L96.00 1.00 L96.00 1.00"
    assert page.sparkline([(NOW, 0.0)], drift) == "M96.00 10.00 L96.00 10.00"


def test_without_any_drift_the_line_is_zero(store: Store) -> None:
    drift = drift_in(store, row(NOW, 0))
    assert drift is not None
    assert page.sparkline(drift.lines["physics"], drift) == "M96.00 10.00 L96.00 10.00"
