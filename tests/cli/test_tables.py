"""Tables on terminals of any width, and in pipes: no number is ever cut."""

from __future__ import annotations

import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from shapleyprio.cli import main
from shapleyprio.cli.shown.tables import WIDEST_TABLE, Cells, FittingColumn, FittingTable
from shapleyprio.daemon.answering.status import read_status
from shapleyprio.store import DriftRow
from tests.daemon.consortium import NAME, NOW
from tests.daemon.forecasting.examples import forecast

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine

WIDTHS = (60, 80, 120, 200)
CORRECTION = "ownership set a1 biology --since always"
COMMANDS = (
    "status",
    "status --waits",
    "history",
    "history --cycles",
    "history --pushes",
    "history --drift",
    "history --forecasts",
    "changes --since always",
    "daemon --once --dry-run",
    "daemon --once --dry-run --verbose",
    "rollback --dry-run",
    "db status",
    "ownership",
    CORRECTION,
)
HEADINGS = {
    "status": "organization nodes earned got balance late or ahead priority pending running",
    "history": "cycle time organization balance priority pending running",
    "history --cycles": (
        "cycle time outcome seen kept quarantined refused written postponed message"
    ),
    "history --pushes": "time channel target organization old new state why",
    "history --drift": ("until window organization recorded directcontr fairshare alone against"),
    "history --forecasts": "started job organization told from median until later held",
}
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
A_NUMBER = re.compile(r"[−+]?\d[\d.,:%-]*")
REMEDY = "check that SlurmctldHost in slurm.conf is right and that slurmctld runs there"


@pytest.fixture
def lived(steered: CommandLine) -> CommandLine:
    """There are cycles, one of which failed, writes, drifts and large numbers."""
    steered.slurm.wait(3_000_000)
    steered.slurm.fill("biology", 10**7)
    steered.slurm.submit("physics", processing_time=9)
    steered.slurm.wait(10)
    for _ in range(2):
        assert steered.run("daemon", "--once").exit_code == 0
    with steered.store() as store, store.cluster(NAME).transaction() as transaction:
        transaction.forecasts.save([], [forecast(job, NOW, 600 * job) for job in range(1, 4)])
        transaction.forecasts.note_starts(dict.fromkeys(range(1, 4), NOW + 1500))
        transaction.history.save_drifts(
            DriftRow(
                t=NOW, organization=name, schedule=schedule, begin=NOW - 604_800, reference="ref",
                utility=utility, fair=0, parts=100,
            )
            for name, utility in (("physics", -543_210), ("biology", 543_210))
            for schedule in ("recorded", "directcontr", "fairshare", "alone")
        )  # fmt: skip
        (last, *_) = transaction.history.cycles(limit=1)
        transaction.history.save_cycle(
            type(last)(
                number=last.number + 1, started=NOW, finished=NOW, outcome="slurm_unavailable",
                t=NOW, message=REMEDY,
            )
        )  # fmt: skip
    return steered


def on_terminal(shell: CommandLine, command: str, width: int) -> list[str]:
    arguments = [*command.split(), "--config", str(shell.file)]
    terminal = {"COLUMNS": str(width), "FORCE_COLOR": "1", "TERM": "xterm"}
    result = CliRunner().invoke(main, arguments, env=terminal)
    assert not result.exception or isinstance(result.exception, SystemExit), result.output
    return ANSI.sub("", result.stdout).splitlines()


def in_pipe(shell: CommandLine, command: str) -> str:
    return shell.run(*command.split()).stdout


def test_on_a_terminal_no_number_is_cut_and_no_line_too_long(lived: CommandLine) -> None:
    for command in COMMANDS:
        whole = set(A_NUMBER.findall(in_pipe(lived, command)))
        assert whole, command
        for width in WIDTHS:
            lines = on_terminal(lived, command, width)
            without_sentences = {
                "status": lines[:4],
                "status --waits": lines[-3:],
                CORRECTION: lines[1:4],
            }
            table = without_sentences.get(command, lines)
            shown = [number for line in table for number in A_NUMBER.findall(line)]
            assert shown, command
            assert set(shown) <= whole, (command, width)
            assert not any(re.search(r"\d…", line) for line in lines), (command, width)
            if " --dry-run" not in command:  # whose sentences are left to the terminal to wrap
                assert max(map(len, table)) <= width, command


def test_a_wide_terminal_and_a_pipe_show_every_column(lived: CommandLine) -> None:
    for command, headings in HEADINGS.items():
        for lines in (on_terminal(lived, command, 200), in_pipe(lived, command).splitlines()):
            assert headings.split() in [line.split() for line in lines]
            assert "no room for" not in "\n".join(lines)


def test_what_a_narrow_terminal_leaves_out_is_said(lived: CommandLine) -> None:
    for command, headings in HEADINGS.items():
        lines = on_terminal(lived, command, 60)
        said = re.sub(r"\s+", " ", " ".join(lines))
        (left_out,) = re.findall(r"no room for: ([^;]*); wider terminals and --json show all", said)
        kept = [name for name in headings.split() if name not in left_out.split(", ")]
        assert kept in [line.split() for line in lines]


def test_at_80_columns_status_shows_who_is_late_and_what_was_earned(lived: CommandLine) -> None:
    lines = on_terminal(lived, "status", 80)
    shown = HEADINGS["status"].replace("nodes ", "").split()
    assert shown in [line.split() for line in lines]


def test_the_remedy_of_a_failed_cycle_is_whole_on_every_terminal(lived: CommandLine) -> None:
    for width in WIDTHS:
        lines = on_terminal(lived, "history --cycles", width)
        (heading,) = (line for line in lines if line.split()[-1:] == ["message"])
        column = heading.index("message")
        assert REMEDY in " ".join(" ".join(line[column:] for line in lines).split())


def test_a_terminal_too_narrow_for_a_table_has_a_line_for_each_cell(lived: CommandLine) -> None:
    lines = on_terminal(lived, "history", 30)
    assert any(line.startswith("  balance: ") for line in lines)
    whole = set(A_NUMBER.findall(in_pipe(lived, "history")))
    assert {number for line in lines for number in A_NUMBER.findall(line)} <= whole


def test_writes_say_the_balance_of_an_organization(lived: CommandLine) -> None:
    text = in_pipe(lived, "history --pushes")
    assert re.search(r"rank 1 of 2, balance \+\S+ \S+", text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--job 999", "no writes to job 999 on record"),
        ("--drift", "no drift on record"),
        ("--forecasts", "no forecast of a job that has started is on record"),
        ("--organization physics --drift", "no drift on record"),
    ],
)
def test_without_rows_a_line_says_so(steered: CommandLine, arguments: str, said: str) -> None:
    assert steered.run("history", *arguments.split()).stdout == f"{said}\n"


def test_a_real_terminal_is_asked_for_its_width(lived: CommandLine) -> None:
    with lived.store() as store:
        status = read_status(store.cluster(NAME))
    parent, child = pty.openpty()
    ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 60, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-m", "shapleyprio", "status", "--config", str(lived.file)]
    with subprocess.Popen(
        command, stdin=child, stdout=child, stderr=child, env={**environment, "TERM": "xterm"}
    ) as running:
        os.close(child)
        printed = b""
        try:
            while block := os.read(parent, 65_536):
                printed += block
        except OSError:  # how the end is said
            pass
        os.close(parent)
        assert running.wait() in {0, 1}  # nobody steers any more
    lines = ANSI.sub("", printed.decode()).splitlines()
    assert max(map(len, lines[:4])) <= 60
    assert any("no room for: nodes" in line for line in lines)
    assert any(line.split()[:1] == [status.rows[0].organization] for line in lines)


# -- the mechanism

NUMBERS = st.integers(-(10**9), 10**9).map(str)
NAMES = st.text("abcdefgh-", min_size=1, max_size=40)
TEXTS = st.text("abcdefgh ", max_size=90)


@st.composite
def tables(draw: st.DrawFn) -> list[FittingColumn]:
    rows = draw(st.integers(1, 4))
    columns = []
    for number in range(draw(st.integers(1, 9))):
        kind = draw(st.sampled_from(Cells))
        cells = {Cells.NUMBER: NUMBERS, Cells.NAME: NAMES, Cells.TEXT: TEXTS}[kind]
        columns.append(
            FittingColumn(
                heading=f"h{number}",
                cells=draw(st.lists(cells, min_size=rows, max_size=rows)),
                kind=kind,
                leaves=draw(st.none() | st.integers(1, 9)),
            )
        )
    return columns


def printed(columns: list[FittingColumn], width: int) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, force_terminal=True, color_system=None).print(
        FittingTable(columns)
    )
    return ANSI.sub("", stream.getvalue())


@given(tables(), st.integers(15, 250))
def test_every_table_fits_and_every_number_of_a_kept_column_is_whole(
    columns: list[FittingColumn], width: int
) -> None:
    text = printed(columns, width)
    assert max(map(len, text.splitlines())) <= width
    left_out = re.findall(r"\bh\d\b", " ".join(text.split("no room for: ")[1:]))
    words = text.split()
    for column in columns:
        if column.kind is Cells.NUMBER and column.heading not in left_out:
            assert set(column.cells) <= set(words)
        if column.leaves is None:
            assert column.heading not in left_out


@given(tables())
def test_with_room_for_everything_nothing_is_shortened(columns: list[FittingColumn]) -> None:
    text = printed(columns, WIDEST_TABLE)
    assert "no room for" not in text
    assert "…" not in text
    for column in columns:
        for cell in column.cells:
            assert cell.strip() in text


def test_the_least_important_column_leaves_first() -> None:
    columns = [
        FittingColumn(heading=name, cells=["1234567890"], leaves=leaves)
        for name, leaves in (("first", 1), ("always", None), ("last", 2))
    ]
    assert "no room" not in printed(columns, 34)
    assert "no room for: first;" in printed(columns, 33)
    assert "no room for: first, last;" in " ".join(printed(columns, 21).split())


def test_names_become_whole_before_texts_have_more_room() -> None:
    columns = [
        FittingColumn(heading="name", cells=["a-name-of-twenty-two-x"], kind=Cells.NAME),
        FittingColumn(heading="text", cells=["word " * 20], kind=Cells.TEXT),
    ]
    assert "a-name-of-t…" in printed(columns, 34)
    assert "a-name-of-twenty-two-x" in printed(columns, 44)
    assert "a-name-of-twenty-two-…" not in printed(columns, 60)


def test_a_heading_is_shown_as_it_is() -> None:
    """Organizations are headings, and their names no markup."""
    shown = StringIO()
    table = FittingTable(
        [FittingColumn(heading=name, cells=["1"]) for name in ("phys [old]", "[/b] \a")]
    )
    Console(file=shown, width=80).print(table)
    assert shown.getvalue().split("\n")[0].rstrip() == "phys [old]  [/b] \\x07"
