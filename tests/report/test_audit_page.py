"""The report of an audit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shapleyprio.audit.auditing import Audit, audit
from shapleyprio.audit.stability import Coalition
from shapleyprio.replay.log import Labels, RecordedProcessors
from shapleyprio.report import Page, Section, render
from shapleyprio.report.audit_page import audit_page, verdict
from tests.report.workloads import LENGTH, NAMES, log_in, workload_in

HOUR = 3600
POLICIES = ["recorded", "ref", "directcontr", "fairshare"]
CHARTS = ["fairness", "delays", "lending", "exchange", "alone", "drift"]
ENDING = ["standing", "waits", "utilization"]


def audit_in(directory: Path, *, nodes: bool, orderings: int | None = None) -> Audit:
    """Returns the audit of a small log; with nodes all jobs ran on the first organization's."""
    workload = workload_in(log_in(directory))
    count = len(workload.job)
    placed = RecordedProcessors(
        first=np.arange(count + 1),
        owners=Labels(np.zeros(count, dtype=np.int32), workload.organizations),
        processors=workload.processors,
    )
    known = replace(workload, placed=placed) if nodes else workload
    return audit(known, period=20, orderings=orderings)


def page_in(directory: Path, *, nodes: bool = True, orderings: int | None = None) -> Page:
    found = audit_in(directory, nodes=nodes, orderings=orderings)
    return audit_page(log_in(directory), found, options={"period": "20 s"})


def section(page: Page, name: str) -> Section:
    return next(one for one in page.sections if one.chart is not None and one.chart.name == name)


def test_every_question_has_its_section(tmp_path: Path) -> None:
    page = page_in(tmp_path)
    names = [one.chart.name for one in page.sections if one.chart is not None]
    assert names == [*CHARTS, *ENDING]
    (stability,) = (one for one in page.sections if one.chart is None)
    assert stability.title == "Who would have left"
    assert page.choice is not None
    assert (list(page.choice.options), page.choice.initial) == (POLICIES, "recorded")
    assert render(page).count('<div class="chart"') == len(names)


def test_delays_and_being_alone_are_what_the_audit_found(tmp_path: Path) -> None:
    found = audit_in(tmp_path, nodes=True)
    page = audit_page(log_in(tmp_path), found, options={})
    for u, row in enumerate(section(page, "delays").table.rows):
        delays = [one.delays[u] for one in found.schedules]
        assert row == (NAMES[u], *(None if d is None else float(d) / HOUR for d in delays))
    for u, row in enumerate(section(page, "alone").table.rows):
        earlier = [one.stability.organizations[u].earlier for one in found.schedules]
        assert row == (NAMES[u], *(None if e is None else float(e) / HOUR for e in earlier))


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


def test_the_verdict_is_two_sentences_on_fairness_and_on_stability(tmp_path: Path) -> None:
    found = audit_in(tmp_path, nodes=True)
    answer = verdict(found)
    assert answer.count(". ") == 1 + answer.count("0. ")
    stability = found.recorded.stability
    if stability.strongest is None:
        assert "No organization" in answer
    else:
        assert f"Of {stability.coalitions} coalitions {stability.gaining} would" in answer
        assert stability.strongest.named(NAMES) in answer
    stable = replace(
        found.recorded,
        stability=replace(stability, gaining=0, strongest=None, strongest_relative=None),
    )
    assert verdict(replace(found, schedules=(stable, *found.schedules[1:]))).endswith(
        "No organization or group of them would have had more alone."
    )


def test_a_sampled_audit_is_held_against_rand_and_says_so(tmp_path: Path) -> None:
    page = page_in(tmp_path, orderings=2)
    assert page.parameters["coalitions"] == "sampled from 2 random orderings"
    assert "fair schedule of rand" in section(page, "fairness").note
    assert section(page, "drift").chart is not None


def test_large_coalitions_are_named_by_whom_they_leave_behind() -> None:
    def named(*members: int) -> str:
        names = ["a", "b", "c", "d"]
        coalition = Coalition(members=members, alone=1, got=0, fair=0, parts=1)
        return coalition.named(names)

    assert named(0) == "a"
    assert named(1, 2) == "b + c"
    assert named(0, 1, 3) == "all but c"
