"""The report of an audit."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest

from shapleyprio.common.wording import delay, local_minute, zone_name
from shapleyprio.replay.audit.auditing import Audit, audit
from shapleyprio.replay.audit.findings import stability
from shapleyprio.replay.audit.stability import Coalition
from shapleyprio.replay.policies.registry import title_of
from shapleyprio.replay.workloads.log import Labels, RecordedProcessors
from shapleyprio.reports import Page, Section, render
from shapleyprio.reports.audit_page import audit_page
from tests.reports.workloads import LENGTH, NAMES, log_in, workload_in

HOUR = 3600
POLICIES = ["recorded", "ref", "directcontr", "fairshare"]
CHARTS = ["outcome", "fairness", "lending", "exchange", "alone", "drift"]
ENDING = ["owed", "waits", "utilization"]


def audit_in(
    directory: Path, *, nodes: bool, orderings: int | None = None, guarantee: str | None = None
) -> Audit:
    """Returns the audit of a small log; with nodes all jobs ran on the first organization's."""
    workload = workload_in(log_in(directory))
    count = len(workload.job)
    placed = RecordedProcessors(
        first=np.arange(count + 1),
        owners=Labels(np.zeros(count, dtype=np.int32), workload.organizations),
        processors=workload.processors,
    )
    known = replace(workload, placed=placed) if nodes else workload
    return audit(known, period=20, orderings=orderings, guarantee=guarantee)


def page_in(directory: Path, *, nodes: bool = True, orderings: int | None = None) -> Page:
    found = audit_in(directory, nodes=nodes, orderings=orderings)
    return audit_page(log_in(directory), found, options={"period": "20 s"})


def section(page: Page, name: str) -> Section:
    return next(one for one in page.sections if one.chart is not None and one.chart.name == name)


def test_every_question_has_its_section(tmp_path: Path) -> None:
    page = page_in(tmp_path)
    names = [one.chart.name for one in page.sections if one.chart is not None]
    assert names == [*CHARTS, *ENDING]
    (without_chart,) = (one for one in page.sections if one.chart is None)
    assert without_chart.title == "Would anybody have had more alone?"
    assert page.choice is not None
    assert ([*page.choice.options], page.choice.initial) == (POLICIES, "recorded")
    assert render(page).count('<div class="chart"') == len(names)


def test_the_outcome_and_being_alone_are_what_the_audit_found(tmp_path: Path) -> None:
    found = audit_in(tmp_path, nodes=True)
    page = audit_page(log_in(tmp_path), found, options={})
    for u, row in enumerate(section(page, "outcome").table.rows):
        assert found.recorded.result.drifts is not None
        assert row == (NAMES[u], float(-found.recorded.result.drifts[u]) / HOUR)
    for u, row in enumerate(section(page, "alone").table.rows):
        earlier = [one.stability.organizations[u].earlier for one in found.schedules]
        assert row == (NAMES[u], *(None if e is None else float(e) / HOUR for e in earlier))


def test_a_union_got_what_its_members_did_now_and_before(tmp_path: Path) -> None:
    workload = replace(workload_in(log_in(tmp_path)), parents={NAMES[1]: NAMES[0]})
    found = audit(workload)
    page = audit_page(log_in(tmp_path), found, options={}, earlier=found)
    got = delay(sum(found.recorded.delays[:2]))
    assert section(page, "outcome").note.endswith(f"on average. All of physics: {got}.")
    assert page.front is not None
    assert page.front.before is not None
    assert ("all of physics", got, got) in page.front.before.table.rows


def test_what_became_of_guarantees_is_reported_where_they_are_judged(tmp_path: Path) -> None:
    found = audit_in(tmp_path, nodes=True, guarantee="1s")
    page = audit_page(log_in(tmp_path), found, options={})
    (rows,) = (one.table.rows for one in page.sections if one.title == "Guarantees")
    shown = {(row[0], row[1]): row[2:5] for row in rows}
    assert sum(asked for asked, _, _ in map(tuple, shown.values()) if isinstance(asked, int)) > 0
    for policy, of in found.guarantees.items():
        for name, one in zip(NAMES, of, strict=True):
            assert shown[name, title_of(policy)] == (one.asked, one.kept, one.broken)


def test_what_was_given_less_what_was_taken_adds_up(tmp_path: Path) -> None:
    found = audit_in(tmp_path, nodes=True)
    assert found.carried is not None
    rows = section(audit_page(log_in(tmp_path), found, options={}), "exchange").table.rows
    assert [row[0] for row in rows] == [0, 20, 40, LENGTH]
    for u in range(len(NAMES)):
        given = sum(row[u] for row in found.carried)
        assert rows[-1][1 + u] == pytest.approx((given - sum(found.carried[u])) / HOUR)
    for row in rows:
        assert sum(float(one or 0) for one in row[1:]) == pytest.approx(0)


def test_without_nodes_use_alone_is_reported(tmp_path: Path) -> None:
    exchange = section(page_in(tmp_path, nodes=False), "exchange")
    assert exchange.title == "Used"
    assert "does not say on whose processors" in exchange.note
    assert all(float(one or 0) > 0 for one in exchange.table.rows[-1][1:])


def test_the_first_page_says_whose_when_what_and_with_what_care(tmp_path: Path) -> None:
    page = page_in(tmp_path)
    front = page.front
    assert front is not None
    assert all(f"{name} (" in front.about[0] for name in NAMES)
    assert front.about[1].startswith("Period: ")
    assert page.verdict.count(".") == 1 + len(re.findall(r"\d\.\d", page.verdict))
    first = page.sections[0]
    assert first.chart is not None
    assert not first.chart.has("choice")
    assert any("shapleyprio (directcontr)" in line for line in front.advice)
    assert any("being alone looks better" in line for line in front.caveats)
    assert all(word in front.reading for word in ("one part", "(ref)", "Shapley value"))
    markup = render(page).split('<div class="controls">', maxsplit=1)[0]
    assert not set("φψ") & set(markup.split("<body", 1)[1])
    for text in (page.verdict, *front.about, *front.advice, *front.caveats, front.reading):
        assert escape(text, quote=False) in markup.replace("&#39;", "'").replace("&#34;", '"')


def test_dates_stand_on_the_first_page_where_the_log_has_them(tmp_path: Path) -> None:
    found = audit_in(tmp_path, nodes=True)
    dated = replace(log_in(tmp_path), epoch=1_775_000_000)
    front = audit_page(dated, found, options={}).front
    assert front is not None
    zone = zone_name(1_775_000_000)
    begin, end = (local_minute(1_775_000_000 + t) for t in (0, LENGTH))
    assert f"released from {begin} to {end} {zone}" in front.about[1]


def test_the_period_before_stands_beside_the_figures(tmp_path: Path) -> None:
    found = audit_in(tmp_path, nodes=True)
    front = audit_page(log_in(tmp_path), found, options={}).front
    assert front is not None
    assert front.before is None
    front = audit_page(log_in(tmp_path), found, options={}, earlier=found).front
    assert front is not None
    assert front.before is not None
    rows = front.before.table.rows
    assert [row[1] for row in rows] == [row[2] for row in rows]
    assert NAMES[0] in [row[0] for row in rows]


def test_who_would_have_left_never_stands_without_its_caveat(tmp_path: Path) -> None:
    page = page_in(tmp_path)
    (section,) = (one for one in page.sections if one.chart is None)
    if "would have had more alone" in section.note and not section.note.startswith("Stable"):
        assert "looks better here than it would" in section.note
    found = audit_in(tmp_path, nodes=True)
    stable = replace(
        found.recorded,
        stability=replace(
            found.recorded.stability, gaining=0, strongest=None, strongest_relative=None
        ),
    )
    calm = replace(found, schedules=(stable, *found.schedules[1:]))
    assert stability(calm).startswith("Stable: no organization")


def test_a_sampled_audit_is_held_against_rand_and_says_so(tmp_path: Path) -> None:
    page = page_in(tmp_path, orderings=2)
    assert page.parameters["coalitions"] == "sampled from 2 random orderings"
    assert page.front is not None
    assert "fair schedule (rand)" in page.front.reading
    assert any("2 random orderings" in line for line in page.front.caveats)
    assert section(page, "drift").chart is not None


def test_large_coalitions_are_named_by_whom_they_leave_behind() -> None:
    def named(*members: int) -> str:
        names = ["a", "b", "c", "d"]
        coalition = Coalition(members=members, alone=1, got=0, fair=0, parts=1)
        return coalition.named(names)

    assert named(0) == "a"
    assert named(1, 2) == "b + c"
    assert named(0, 1, 3) == "all but c"
