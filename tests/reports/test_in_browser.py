"""Reports as a real Chromium shows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from shapleyprio.reports import Page, write_page
from shapleyprio.reports.replay_page import replay_page
from tests.reports.browsing import DESKTOP, PHONE, browser, opened
from tests.reports.test_audit_page import page_in as audit_page_in
from tests.reports.test_experiment_page import page_of as experiment_page_of
from tests.reports.workloads import NAMES, log_in, results_in, workload_in

CHARTS = ["fairness", "drift", "owed", "lending", "waits", "utilization"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    log = log_in(folder)
    workload = workload_in(log)
    results = results_in(workload, "ref", "directcontr", "fcfs", "recorded")
    page: Page = replay_page(log, workload, results, options={})
    write_page(page, folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="module", params=[DESKTOP, PHONE], ids=["desktop", "phone"])
def driver(request: pytest.FixtureRequest, file: Path) -> Iterator[Chrome]:
    with browser(request.param) as one:
        yield one


@pytest.fixture
def shown(driver: Chrome, file: Path) -> Chrome:
    opened(driver, file)
    return driver


def marks(shown: Chrome, chart: str, kind: str) -> int:
    """How many marks of a kind stand in a chart's drawing area."""
    return len(shown.find_elements(By.CSS_SELECTOR, f"#{chart} .role-mark.mark-{kind} path"))


def until(shown: Chrome, script: str) -> Any:
    return WebDriverWait(shown, 10).until(lambda one: one.execute_script(f"return {script}"))


def test_every_chart_is_drawn_without_a_word_on_the_console(shown: Chrome) -> None:
    drawn = [one.get_attribute("id") for one in shown.find_elements(By.CSS_SELECTOR, ".chart")]
    assert drawn == CHARTS
    for chart, kind, fewest in [
        ("fairness", "rect", 6),
        ("drift", "line", 3),
        ("lending", "rect", 3),
        ("waits", "rect", 3),
        ("utilization", "rect", 60),
    ]:
        assert marks(shown, chart, kind) >= fewest, chart
    assert shown.get_log("browser") == []  # type: ignore[no-untyped-call]


def test_nothing_is_asked_of_any_network(shown: Chrome) -> None:
    assert shown.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_the_page_is_no_wider_than_its_window(shown: Chrome) -> None:
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert shown.execute_script(f"return {wide}") == 0
    for chart in shown.find_elements(By.CSS_SELECTOR, ".chart svg"):
        assert chart.size["width"] <= shown.execute_script("return innerWidth")


def test_another_policy_is_shown_in_all_charts(shown: Chrome) -> None:
    Select(shown.find_element(By.ID, "choice")).select_by_visible_text("fair (ref)")
    # what is shown first is recorded, whose φ nobody can know
    until(shown, "document.querySelectorAll('#owed .mark-line path').length >= 3")
    assert shown.find_element(By.CSS_SELECTOR, ".chosen").text == "(fair (ref))"
    lending = shown.find_element(By.ID, "lending").text
    assert "(not known)" not in lending
    assert all(name in lending for name in NAMES[:2])


def test_an_organization_switched_off_leaves_all_charts_and_comes_back(shown: Chrome) -> None:
    before = marks(shown, "drift", "line")
    lines = "document.querySelectorAll('#drift .role-mark.mark-line path').length"
    chip = shown.find_element(By.CSS_SELECTOR, f'[data-organization="{NAMES[1]}"]')
    chip.click()
    until(shown, f"{lines} === {before - 1}")
    assert chip.get_attribute("aria-pressed") == "false"
    chip.click()
    until(shown, f"{lines} === {before}")


def test_dragging_over_time_zooms_all_charts_and_the_button_ends_it(shown: Chrome) -> None:
    labels = "[...document.querySelectorAll('#utilization .role-axis-label text')]"
    before = shown.execute_script(f"return {labels}.map((one) => one.textContent).sort()")
    chart = shown.find_element(By.ID, "drift")
    shown.execute_script("arguments[0].scrollIntoView({block: 'center'})", chart)
    ActionChains(shown).move_to_element(chart).click_and_hold().move_by_offset(60, 0).pause(
        0.1
    ).release().perform()
    whole = shown.find_element(By.ID, "whole")
    WebDriverWait(shown, 10).until(lambda _: whole.is_displayed())
    after = shown.execute_script(f"return {labels}.map((one) => one.textContent).sort()")
    assert after != before
    whole.click()
    WebDriverWait(shown, 10).until(
        lambda one: (
            one.execute_script(f"return {labels}.map((one) => one.textContent).sort()") == before
        )
    )
    assert not whole.is_displayed()


def test_pointing_at_a_bar_shows_the_organization(shown: Chrome) -> None:
    bars = shown.find_elements(By.CSS_SELECTOR, "#fairness .role-mark.mark-rect path")
    bar = max(bars, key=lambda one: one.size["width"])
    shown.execute_script("arguments[0].scrollIntoView({block: 'center'})", bar)
    ActionChains(shown).move_to_element(bar).click().perform()
    answer = until(shown, "document.querySelector('#vg-tooltip-element')?.textContent")
    assert any(name in answer for name in NAMES)


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_pages_of_audits_and_experiments_are_drawn_as_well(
    size: tuple[int, int], tmp_path: Path
) -> None:
    pages = {
        "audit": audit_page_in(tmp_path),
        "experiment": experiment_page_of("one", "two"),
        "group": experiment_page_of("one"),
    }
    with browser(size) as shown:
        for name, page in pages.items():
            write_page(page, tmp_path / f"{name}.html")
            opened(shown, tmp_path / f"{name}.html")
            charts = [one.chart.name for one in page.sections if one.chart is not None]
            assert all(marks(shown, chart, "rect") or lines(shown, chart) for chart in charts)
            wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert shown.execute_script(f"return {wide}") == 0
            assert shown.get_log("browser") == []  # type: ignore[no-untyped-call]
        assert marks(shown, "wins", "rect") == 6  # alone and with others, if never with no width
        assert marks(shown, "means", "symbol") == 3


def lines(shown: Chrome, chart: str) -> int:
    """How many lines and points stand in a chart's drawing area."""
    return marks(shown, chart, "line") + marks(shown, chart, "symbol")


def test_a_table_stands_behind_every_chart(shown: Chrome) -> None:
    for chart in CHARTS:
        rows = f"#{chart} + details tbody tr"
        assert len(shown.find_elements(By.CSS_SELECTOR, rows)) >= 3, chart
