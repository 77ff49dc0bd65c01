"""Tables of commands on logs, on terminals of any width: no number is cut."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from shapleyprio.cli import main
from shapleyprio.cli.offline import auditing, replaying
from shapleyprio.cli.shown.tables import WIDEST_TABLE
from shapleyprio.common.wording import duration
from shapleyprio.lab.cli import experimenting
from shapleyprio.lab.cli.trialling import arms_table
from shapleyprio.lab.trial.arms import ARMS
from shapleyprio.lab.trial.plan import OwnNodes
from shapleyprio.lab.trial.report import SIMULATED, ArmResult, arm_result, simulated
from shapleyprio.lab.trial.running import Trace
from tests.cli.test_tables import A_NUMBER, ANSI, WIDTHS
from tests.lab.experiment.examples import write_log
from tests.lab.trial.test_executed import BEGIN, FIRST_ID, record
from tests.lab.trial.test_trials import ONE, results
from tests.replay.strategies import Job, workload_of_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shapleyprio.replay.results import Result
    from shapleyprio.replay.workloads.workload import Workload

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


@pytest.fixture(scope="module")
def arms() -> tuple[Workload, Sequence[Result], list[ArmResult]]:
    """Every arm, of jobs that came late and waited for hours."""
    hour = 3600
    jobs = workload_of_jobs(
        [1, 1], [Job(0, 0, 9 * hour), Job(1, 9, 7 * hour), Job(1, 9, hour)], 30 * hour
    )
    records = [
        record(0, submit=1, start=12, end=9 * hour + 12),
        record(1, submit=250, start=9 * hour + 20, end=16 * hour + 20),
        record(2, submit=251, start=300, end=hour + 300, node="n2"),
    ]
    traces = [
        Trace(
            arm=arm,
            slurm_version="slurm-wlm 22.05.8",
            begin=BEGIN,
            submitted={FIRST_ID + job: [job] for job in range(len(records))},
            records=records,
            held={},
            refused={},
            unreadable=0,
            cycles=None,
            start_errors=None,
            real_seconds=90.0,
        )
        for arm in ARMS.values()
    ]
    found = [arm_result(OwnNodes(jobs), trace, seed=0) for trace in traces]
    return jobs, simulated(jobs, seed=0, cores=1), found


def test_the_arms_of_a_trial_fit_and_their_unfairness_is_never_left_out(
    arms: tuple[Workload, Sequence[Result], list[ArmResult]],
) -> None:
    def at_width(width: int) -> str:
        stream = io.StringIO()
        Console(file=stream, width=width, highlight=False).print(arms_table(*arms))
        return stream.getvalue()

    check_widths(at_width)
    assert max(map(len, at_width(80).splitlines())) <= 80
    for width in WIDTHS:
        lines = [" ".join(line.split()) for line in at_width(width).splitlines()]
        for arm in arms[2]:
            shown = duration(float(arm.result.unfairness or 0))
            assert any(
                line.startswith(arm.trace.arm.name[:13]) and f" {shown}" in line for line in lines
            ), lines
        names = [line.partition(" ")[0] for line in lines[1 + len(SIMULATED) :][: len(ARMS)]]
        assert len(set(names)) == len(ARMS)


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
