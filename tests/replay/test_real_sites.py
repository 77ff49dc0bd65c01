"""The documented figures of two real sites are those of the commands beside them."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from shapleyprio.cli import main
from tests.replay.traces import TRACES, trace

DOCS = Path(__file__).parents[2] / "docs"
SECTION = (DOCS / "experiments.md").read_text().split("## Two real sites")[1].split("\n## ")[0]
REPLAYS, SETTINGS = re.findall(r"^```sh\n(.*?)^```$", SECTION, flags=re.MULTILINE | re.DOTALL)
POOL, UNIVERSITY = REPLAYS.replace("\\\n", " ").splitlines()


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Works where the logs and the examples are."""
    trace("usc-jobs.sacct.xz")
    for file in (*TRACES.iterdir(), *(DOCS / "examples").iterdir()):
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)


def printed(command: str, arguments: list[str]) -> list[list[list[str]]]:
    """The cells of every table that a command prints."""
    result = CliRunner().invoke(main, [command, *arguments])
    assert result.exit_code == 0, result.output
    paragraphs = [part.splitlines() for part in result.stdout.split("\n\n")]
    return [[re.split(r"\s{2,}", line.strip()) for line in lines] for lines in paragraphs]


def cells(table: int) -> list[list[str]]:
    """The rows of a table of the document, without its head."""
    rows = re.findall(r"(?:^\|.*\n)+", SECTION, flags=re.MULTILINE)[table].splitlines()[2:]
    return [[cell.strip(" `") for cell in row.strip("|").split("|")] for row in rows]


def test_the_policies_print_what_is_documented() -> None:
    pool, university = (
        next(rows for rows in printed("replay", shlex.split(line)[2:]) if rows[0][0] == "policy")
        for line in (POOL, UNIVERSITY)
    )
    assert cells(0) == [
        [*one[:4], *two[1:5]] for one, two in zip(pool[1:], university[1:], strict=True)
    ]


@pytest.mark.parametrize(
    ("line", "latest", "alone"),
    [
        (POOL, ("center", "4.5 h"), ("190", "68", "254")),
        (UNIVERSITY, ("account61", "31 min"), ("18", "8", "62")),
    ],
    ids=["pool", "university"],
)
def test_the_audits_find_what_is_documented(
    line: str, latest: tuple[str, str], alone: tuple[str, str, str]
) -> None:
    arguments = shlex.split(line.split(" --policy")[0].replace(" --respect-partitions", ""))[2:]
    text = CliRunner().invoke(main, ["audit", *arguments]).stdout
    name, late = latest
    before, fair, groups = alone
    assert f"{name} came off worst: it was {late} late." in text
    assert f"{before} of {groups} groups" in text
    assert f"in the fair schedule {fair}." in text
    words = " ".join(SECTION.split())
    assert f"{name} was latest, {late}" in words
    assert f"{before} of {groups} groups would have had more alone, under ref {fair}" in (
        words.replace("`", "")
    )


def test_the_university_with_departments_is_audited_as_documented() -> None:
    told = re.search(
        r"With ([^.]+) as \[departments\]\S+ of the others (\S+) was latest, ([^,]+), and of the "
        r"five (\S+), ([\d.]+ min)\.",
        " ".join(SECTION.split()),
    )
    assert told is not None
    departments, latest, late, of_five, its = told.groups()
    brought = dict(re.findall(r"(account\d+) \((\d+)", departments))
    text = Path("usc.toml").read_text()
    for name, processors in brought.items():
        text = re.sub(rf'"{name}",? ?', "", text) + (
            f'[[organization]]\nname = "{name}"\nparent = "others"\naccounts = ["{name}"]\n'
            f"processors = {processors}\n"
        )
    rest = 1_042 - sum(map(int, brought.values()))
    Path("nested.toml").write_text(text.replace("processors = 1042", f"processors = {rest}"))
    result = CliRunner().invoke(
        main, ["audit", *UNIVERSITY.split()[2:3], "--organizations", "nested.toml"]
    )
    assert f"of {6 + len(brought)} organizations on 4,992 processors" in result.stdout
    assert f"{latest} came off worst: it was {late} late." in result.stdout
    assert re.search(rf"^{of_five} .* {its} late  ", result.stdout, re.MULTILINE)


def test_the_fairest_and_the_least_fair_setting_are_those_documented(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two of all 81, which take a minute."""
    log, organizations, waits, settings = SETTINGS.split()[2:]
    lines = Path(settings).read_text().splitlines()
    Path("two.csv").write_text("\n".join([lines[0], lines[1 + 48], lines[1 + 56]]))
    runpy.run_path("settings.py")["main"](log, organizations, waits, "two.csv")
    least, most = re.findall(r"^(?:min|max) +([\d.]+)", capsys.readouterr().out, re.MULTILINE)
    assert f"{least} to {most} min" in SECTION
