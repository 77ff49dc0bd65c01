"""Pages laid out for print, and the names of their files."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from shapleyprio.cli import main
from shapleyprio.reports import write_page
from tests.reports.browsing import DESKTOP, browser, opened
from tests.reports.test_audit_page import page_in as audit_page_in
from tests.reports.test_experiment_page import page_of as experiment_page_of
from tests.reports.workloads import log_in

WIDE = round(180 / 25.4 * 96)
"""Pixels between the margins of a sheet."""

OVERFLOWING = """
    return [...document.querySelectorAll('main *')].filter((one) =>
      one.getClientRects().length && !one.closest('.chart') &&
      (one.getBoundingClientRect().right > innerWidth + 1 || one.scrollWidth > one.clientWidth + 1
        && getComputedStyle(one).display !== 'inline')
    ).map((one) => one.outerHTML.slice(0, 80));
"""

ARGUMENTS = ["replay", "small.swf", "--deal-users", "2", "--processors", "4", "--policy", "fcfs"]


@pytest.mark.parametrize("kind", ["audit", "experiment"])
def test_nothing_is_wider_than_the_paper_and_the_first_page_fits(tmp_path: Path, kind: str) -> None:
    page = audit_page_in(tmp_path) if kind == "audit" else experiment_page_of("one", "two")
    write_page(page, tmp_path / "page.html")
    with browser(DESKTOP) as shown:
        opened(shown, tmp_path / "page.html")
        shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        sheet = {"width": WIDE, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        shown.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sheet)
        assert shown.execute_script(OVERFLOWING) == []
        front = shown.execute_script(
            "return document.querySelector('header').getBoundingClientRect().height"
        )
        assert front < (297 - 2 * 14) / 25.4 * 96
        hidden = "return getComputedStyle(document.querySelector('.controls')).display"
        assert shown.execute_script(hidden) == "none"


def test_a_dark_screen_has_a_dark_page_and_paper_stays_white(tmp_path: Path) -> None:
    write_page(audit_page_in(tmp_path), tmp_path / "page.html")
    paper = "return getComputedStyle(document.body).backgroundColor"
    text = "return getComputedStyle(document.querySelector('.chart .role-axis-label text')).fill"
    with browser(DESKTOP) as shown:
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": dark})
        opened(shown, tmp_path / "page.html")
        assert shown.execute_script(paper) == "rgb(22, 24, 28)"
        assert shown.execute_script(text) == "rgb(232, 232, 232)"
        shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": dark})
        assert shown.execute_script(paper) == "rgb(255, 255, 255)"
        assert shown.execute_script(text) == "rgb(26, 26, 26)"


@pytest.mark.parametrize("name", ["r.docx", "r", "r.pdf.gz", "r.pdf"])
def test_a_file_that_is_no_html_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log_in(tmp_path)
    result = CliRunner().invoke(main, [*ARGUMENTS, "--report", name])
    assert result.exit_code == 2
    assert "name a file that ends in .html" in " ".join(result.stderr.split())
    assert not Path(name).exists()
