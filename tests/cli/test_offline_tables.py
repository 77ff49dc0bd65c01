"""Tables of commands on logs, on terminals of any width: no number is cut."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from shapleyprio.cli import auditing, experimenting, main, replaying
from shapleyprio.cli.tables import WIDEST_TABLE
from tests.cli.test_tables import A_NUMBER, ANSI, WIDTHS
from tests.experiment.examples import write_log
from tests.trial.test_trials import ONE, results

if TYPE_CHECKING:
    from collections.abc import Callable

DEALT = ("--deal-users", "3")
WINDOWS = ("--windows", "2", "--length", "15s", "--cores", "1")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def succeed(*words: str, **environment: str) -> str:
    result = CliRunner().invoke(main, words, env=environment)
    assert result.exit_code == 0, result.output
    return ANSI.sub("", result.stdout)


def check_widths(at_width: Callable[[int], str]) -> None:
    """Sentences are left to the terminal to wrap, and are the same at every width."""
    whole = at_width(WIDEST_TABLE)
    numbers = set(A_NUMBER.findall(whole))
    assert numbers
    for width in WIDTHS:
        text = at_width(width)
        shown = set(A_NUMBER.findall(text))
        assert shown
        assert shown <= numbers, width
        sentences = whole.splitlines()
        assert [x for x in text.splitlines() if len(x) > width and x not in sentences] == []


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (replaying, ("replay", "busy.swf", *DEALT)),
        (auditing, ("audit", "busy.swf", *DEALT)),
        (experimenting, ("experiment", "busy.swf", *DEALT, *WINDOWS)),
    ],
)
def test_no_number_is_cut_and_no_line_is_too_long(
    module: Any, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(Path("busy.swf"))
    rendered: list[tuple[Any, ...]] = []
    render = module.render
    monkeypatch.setattr(module, "render", lambda *of: rendered.append(of))
    succeed(*words)
    ((_, *shown),) = rendered

    def at_width(width: int) -> str:
        stream = io.StringIO()
        render(Console(file=stream, width=width, highlight=False), *shown)
        return stream.getvalue()

    check_widths(at_width)


def test_several_trials_fit_and_their_arms_are_never_left_out() -> None:
    Path("list.toml").write_text(f"deal-users = 2\n{ONE}")
    Path("results").mkdir()
    asked = {"deal-users": 2, "name": "one", "log": "log.swf"}
    Path("results/one.json").write_text(json.dumps(results(asked, 43_210.0, 9_876.0)))

    def at_width(width: int) -> str:
        terminal = {"COLUMNS": str(width), "FORCE_COLOR": "1", "TERM": "xterm"}
        return succeed("trials", "list.toml", "--keep", "results", **terminal)

    check_widths(at_width)
    assert "43,210 s" in at_width(WIDTHS[0])
