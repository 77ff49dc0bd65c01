"""Pages on paper: as PDF, and laid out for print."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from shapleyprio.cli import main
from shapleyprio.reports import ReportError, write_page, write_pdf
from shapleyprio.reports.html import pdf
from tests.reports.browsing import DESKTOP, browser, opened
from tests.reports.test_audit_page import page_in as audit_page_in
from tests.reports.test_experiment_page import page_of as experiment_page_of
from tests.reports.workloads import log_in

A4 = (595, 842)
"""Points."""

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


def test_an_audit_is_printed_on_sheets_of_a4(tmp_path: Path) -> None:
    if shutil.which("chromium") is None:
        pytest.skip("no Chromium here (Debian: chromium)")
    write_pdf(audit_page_in(tmp_path), tmp_path / "audit.pdf")
    content = (tmp_path / "audit.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert 4 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 10
    boxes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", content)
    assert {tuple(round(float(side)) for side in box) for box in boxes} == {A4}


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


def test_without_a_browser_one_line_says_so_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pdf, "BROWSERS", ("no-such-browser",))
    log_in(tmp_path)
    result = CliRunner().invoke(main, [*ARGUMENTS, "--report", "r.pdf"])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "Chromium, which is not installed here; install it" in line
    assert result.stdout == ""
    assert not Path("r.pdf").exists()


def test_a_browser_that_prints_nothing_is_named_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho no display >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(pdf, "BROWSERS", (str(program),))
    page = replace(experiment_page_of("one"), sections=())
    with pytest.raises(ReportError, match=r"printed no PDF \(no display\); name a file"):
        write_pdf(replace(page, front=None), tmp_path / "r.pdf")
    assert not (tmp_path / "r.pdf").exists()


@pytest.mark.parametrize("name", ["r.docx", "r", "r.pdf.gz"])
def test_a_file_that_is_neither_html_nor_pdf_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log_in(tmp_path)
    result = CliRunner().invoke(main, [*ARGUMENTS, "--report", name])
    assert result.exit_code == 2
    assert "name a file that ends in .html or .pdf" in " ".join(result.stderr.split())
    assert not Path(name).exists()
