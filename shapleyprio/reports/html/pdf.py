"""Pages as PDF, printed by a Chromium of the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from shapleyprio.common.output import whole_binary_file
from shapleyprio.reports.html.page import Page, ReportError
from shapleyprio.reports.html.writing import render

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Names of the programs that can print, the first one that is found is taken."""

TIME_LIMIT = 180
"""Seconds after which a browser that has not printed is killed."""

MOST_TO_WAIT = 60_000
"""Milliseconds of the page's own clock in which its charts are drawn."""


def find_browser() -> str:
    """Returns the program that prints.

    Raises:
        ReportError: there is none.
    """
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise ReportError(
            "a PDF is printed by Chromium, which is not installed here; install it (Debian: "
            "chromium), or name a file that ends in .html"
        )
    return found


def write_pdf(page: Page, file: Path) -> None:
    """Writes the page as PDF, whole or not at all.

    Raises:
        ReportError: no browser is there, or it does not print.
        OutputError: the file cannot be written.
    """
    program = find_browser()
    with TemporaryDirectory(prefix="shapleyprio-pdf-") as folder:
        html, printed = Path(folder, "page.html"), Path(folder, "page.pdf")
        html.write_text(render(page), encoding="utf-8")
        complaint = _print(program, html, printed)
        content = printed.read_bytes() if printed.exists() else b""
    if not content.startswith(b"%PDF"):
        raise ReportError(
            f"{program} printed no PDF ({complaint}); name a file that ends in .html, and print it "
            "in a browser"
        )
    with whole_binary_file(file) as opened:
        opened.write(content)


def _print(program: str, html: Path, printed: Path) -> str:
    """Returns the last line of complaints."""
    command = (
        program,
        "--headless",
        # the page is our own and may load nothing; services have no namespaces for a sandbox
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-pdf-header-footer",
        f"--virtual-time-budget={MOST_TO_WAIT}",
        f"--user-data-dir={html.parent / 'browser'}",
        f"--print-to-pdf={printed}",
        html.as_uri(),
    )
    folder = str(html.parent)
    try:
        done = subprocess.run(
            command,
            # a service's home may not be writable, and Chromium leaves folders behind
            env={**os.environ, "HOME": folder, "TMPDIR": folder},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not done after {TIME_LIMIT} s"
    except OSError as error:
        return error.strerror or str(error)
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"
