"""What can be said of the packages without building them; `./run matrix` builds and tries them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from shapleyprio.cli import COMMANDS, main
from shapleyprio.config.reference import sections

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
SCRIPTS = [
    *(PACKAGING / name for name in ("build-deb", "build-rpm", "install-tree")),
    *(PACKAGING / name for name in ("test-package", "test-rpm")),
    *sorted((PACKAGING / "debian").glob("*.p*inst")),
    *sorted((PACKAGING / "debian").glob("*.p*rm")),
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """File name -> text."""
    folder = tmp_path_factory.mktemp("man")
    subprocess.run([sys.executable, PACKAGING / "man_pages.py", folder], check=True)
    return {file.name: file.read_text() for file in folder.iterdir()}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_are_read_by_a_plain_shell(script: Path) -> None:
    subprocess.run(["sh", "-n", script], check=True)


def test_the_packages_have_the_version_of_the_project() -> None:
    changelog = (PACKAGING / "debian" / "changelog").read_text()
    assert changelog.startswith(f"shapleyprio ({VERSION}-")
    spec = (PACKAGING / "rpm" / "shapleyprio.spec").read_text()
    assert re.findall(r"^Version: +(.*)$", spec, re.MULTILINE) == [VERSION]


def test_the_daemon_can_be_installed_without_what_replays_and_estimates() -> None:
    control = (PACKAGING / "debian" / "control").read_text()
    (core,) = re.findall(r"^Package: shapleyprio\n(?:.+\n)+", control, re.MULTILINE)
    fields = dict(re.findall(r"^(\w+):((?:\n .+)+)", core, re.MULTILINE))
    assert "shapleyprio-replay" not in fields["Depends"]
    assert "shapleyprio-replay," in fields["Recommends"]


def test_every_lintian_override_has_a_reason() -> None:
    for file in (PACKAGING / "debian").glob("*.lintian-overrides"):
        assert file.read_text().startswith("# "), file


def test_every_command_has_a_page_and_is_named_by_the_first(pages: dict[str, str]) -> None:
    for name in COMMANDS:
        assert f".SH NAME\nshapleyprio\\-{name} \\- " in pages[f"shapleyprio-{name}.1"]
        assert f"\\fBshapleyprio\\-{name}\\fR(1)" in pages["shapleyprio.1"]
    assert {"shapleyprio-db-upgrade.1", "shapleyprio-db-status.1"} < set(pages)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_has_every_option(name: str, pages: dict[str, str]) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    page = pages[f"shapleyprio-{name}.1"].replace("\\-", "-")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert all(option in page for option in parameter.opts), parameter.name


def test_the_page_of_the_configuration_has_every_key(pages: dict[str, str]) -> None:
    page = pages["shapleyprio.toml.5"]
    for table, model in sections().items():
        after = page.partition(f'.SH "[{table}]"' if f'"[{table}]"' in page else f"[[{table}]]")[2]
        for key in model.model_fields:
            assert f"\\fB{key}\\fR = " in after.partition("\n.SH ")[0], (table, key)


def test_the_pages_say_what_exit_codes_mean(pages: dict[str, str]) -> None:
    for code in range(7):
        assert f".TP\n\\fB{code}\\fR\n" in pages["shapleyprio-check.1"]


def test_pages_are_good_roff(pages: dict[str, str], tmp_path: Path) -> None:
    try:
        subprocess.run(["groff", "--version"], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("groff is not installed")
    for name, page in pages.items():
        shown = subprocess.run(
            ["groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-W", "break", "-z"],
            input=page,
            check=True,
            capture_output=True,
            text=True,
        )
        assert shown.stderr == "", name
