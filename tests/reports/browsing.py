"""A real headless Chromium, where there is one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

DESKTOP, PHONE = (1200, 900), (390, 844)


@contextmanager
def browser(size: tuple[int, int]) -> Iterator[Chrome]:
    """A browser with a window of that size; skips the test where there is none."""
    programs = shutil.which("chromium"), shutil.which("chromedriver")
    if None in programs:
        pytest.skip("no Chromium with its driver here (Debian: chromium, chromium-driver)")
    options = ChromeOptions()
    options.binary_location = str(programs[0])
    width, height = size
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.add_argument(f"--window-size={width},{height}")
    if size == PHONE:
        metrics = {"width": width, "height": height, "pixelRatio": 2.0, "touch": True}
        options.add_experimental_option("mobileEmulation", {"deviceMetrics": metrics})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # it leaves some behind
        service = Service(str(programs[1]), env={**os.environ, "TMPDIR": folder})
        driver = Chrome(options=options, service=service)
        try:
            yield driver
        finally:
            driver.quit()


def opened(driver: Chrome, file: Path) -> None:
    """Opens a report and waits until it is drawn."""
    driver.get(file.as_uri())
    WebDriverWait(driver, 60).until(
        lambda one: one.execute_script("return document.documentElement.dataset.drawn")
    )
