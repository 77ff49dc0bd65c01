"""The page as a real Chromium shows it, on a desk and on a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.store import CycleRow, DriftRow, PendingJobs, StandingRow, Store
from tests.daemon.consortium import NAME, NOW
from tests.daemon.serving.sites import HOST, Served, free_port
from tests.reports.browsing import DESKTOP, PHONE, browser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome

BALANCES = {
    "physics": 4_200_000_000_000,
    "institute-of-theoretical-and-computational-chemistry": 1_000_000,
    "biology & <medicine>": 0,
    "x" * 60: -4_200_001_000_000,
}
FINDINGS = [
    Finding(Severity.ERROR, "privileges", f"may not write through {'c' * 90}", "grant it"),
    Finding(Severity.WARNING, "accounts guest", "belong to no organization", "add them"),
    Finding(Severity.NOTICE, "priority weights", "other factors can add 1000", "nothing"),
]


TOO_WIDE = """
    const wide = document.documentElement.clientWidth;
    return [...document.querySelectorAll("body *")]
        .filter((one) => one.getClientRects().length)
        .filter((one) => one.getBoundingClientRect().right > wide + 0.5
            || one.getBoundingClientRect().left < -0.5
            || one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0)
        .map((one) => one.outerHTML.slice(0, 80));
"""
"""What reaches beyond the window or its own box."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A failed cycle after a good one, a day of drift, names that are long, findings."""
    file = tmp_path_factory.mktemp("serving") / "store.db"
    with Store.open(f"sqlite:///{file}", create=True) as store:
        fill(store)
        served = Served(Metrics(NAME), store, free_port(), list(FINDINGS))
        served.open()
        yield served
        served.site.close()


def fill(store: Store) -> None:
    with store.cluster(NAME).transaction() as transaction:
        transaction.history.save_cycle(
            CycleRow(
                number=7, started=NOW, finished=NOW + 1, outcome="ok", t=NOW, seen=42, kept=9,
                written=3, seconds={"push": 0.5},
            )
        )  # fmt: skip
        transaction.history.save_cycle(
            CycleRow(
                number=8, started=NOW + 30, finished=NOW + 31, outcome="slurm_unavailable",
                message="slurmctld does not answer",
            )
        )  # fmt: skip
        transaction.history.save_standings(
            StandingRow(
                cycle=7, organization=name, t=NOW, contribution=max(balance, 0),
                utility=max(-balance, 0), score=balance, parts=100, all_parts=10**8,
                priority=10 - place,
                pending=place * 1000, running=7, processors=64,
            )
            for place, (name, balance) in enumerate(BALANCES.items())
        )  # fmt: skip
        transaction.observed.save_pending_jobs(
            PendingJobs(organization=name, partition="gpu_long", jobs=17, since=NOW - 90_000)
            for name in BALANCES
        )
        transaction.history.save_drifts(
            DriftRow(
                t=NOW - 3600 * age, organization=name, schedule="recorded",
                begin=NOW - 3600 * age - 604_800, reference="ref",
                utility=(place - 1) * (1000 - 37 * age) + (age % 5) * 40, fair=0, parts=10,
            )
            for age in range(24)
            for place, name in enumerate(BALANCES)
        )  # fmt: skip


@pytest.fixture(scope="module", params=[DESKTOP, PHONE], ids=["desktop", "phone"])
def shown(request: pytest.FixtureRequest, served: Served) -> Iterator[Chrome]:
    with browser(request.param) as driver:
        driver.get(f"http://{HOST}:{served.port}/")
        yield driver


def test_the_console_stays_silent(shown: Chrome) -> None:
    assert shown.get_log("browser") == []  # type: ignore[no-untyped-call]


def test_nothing_else_is_loaded(shown: Chrome) -> None:
    assert shown.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_nothing_is_wider_than_the_window(shown: Chrome) -> None:
    assert shown.execute_script(TOO_WIDE) == []


def test_rows_end_at_the_same_place_on_every_screen(shown: Chrome) -> None:
    ends = shown.execute_script("""
        document.querySelectorAll(".drift span").forEach((one) => one.innerText = "22.2 min ahead");
        return [...document.querySelectorAll(".balances, .jobs")].map(
            (one) => Math.round(one.getBoundingClientRect().right));
    """)
    shown.refresh()
    assert len(set(ends)) == 1


def test_a_dark_screen_has_a_dark_page(shown: Chrome) -> None:
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    of_page = "return getComputedStyle(document.body).backgroundColor"
    assert shown.execute_script(of_page) == "rgb(255, 255, 255)"
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": dark})
    assert shown.execute_script(of_page) == "rgb(22, 24, 28)"
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_every_organization_is_shown_the_first_to_be_served_first(shown: Chrome) -> None:
    rows = shown.find_elements(By.CSS_SELECTOR, ".balances tbody tr")
    names = [row.find_element(By.TAG_NAME, "th").text.splitlines()[0] for row in rows]
    assert names == list(BALANCES)
    balances = [row.find_element(By.CSS_SELECTOR, ".balance").text for row in rows]
    assert balances == ["+12 h", "+0.01 s", "0 s", "−12 h"]


def test_bars_go_right_for_whom_is_owed_and_left_for_who_owes(shown: Chrome) -> None:
    boxes = shown.execute_script("""
        return [...document.querySelectorAll(".bar svg")].map((svg) => {
            const all = svg.getBoundingClientRect();
            const bar = svg.querySelector("rect").getBoundingClientRect();
            return [(bar.left - all.left) / all.width, bar.width / all.width];
        });
    """)
    begins, widths = zip(*boxes, strict=True)
    assert begins == pytest.approx((0.5, 0.5, 0.5, 0.0), abs=0.01)
    assert widths == pytest.approx((0.5, 0.0, 0.0, 0.5), abs=0.01)


def test_a_sparkline_runs_through_the_day(shown: Chrome) -> None:
    lines = shown.find_elements(By.CSS_SELECTOR, ".drift .line")
    assert len(lines) == len(BALANCES)
    for line in lines:
        box = shown.execute_script(
            "const line = arguments[0].getBoundingClientRect(),"
            " all = arguments[0].ownerSVGElement.getBoundingClientRect();"
            " return [line.width / all.width, line.top - all.top, all.bottom - line.bottom]",
            line,
        )
        assert box[0] == pytest.approx(23 / 24, abs=0.05)
        assert min(box[1:]) > -1


def test_the_failure_and_the_findings_stand_there_in_words(shown: Chrome) -> None:
    text = shown.find_element(By.TAG_NAME, "main").text
    assert "Cycle 8 failed (slurm_unavailable): slurmctld does not answer." in text
    for finding in FINDINGS:
        assert f"{finding.severity} {finding.subject}: {finding.message}" in text.replace(
            "\xa0", " "
        )


def test_the_page_fits_on_paper(shown: Chrome) -> None:
    size = {"width": 720, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)  # A4 within its margins
    WebDriverWait(shown, 10).until(lambda one: one.execute_script("return innerWidth") == 720)
    assert shown.execute_script(TOO_WIDE) == []
