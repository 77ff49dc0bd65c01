"""`shapleyprio trials`: what a list may say, and the table of what was found out."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest
from click.testing import CliRunner, Result

from shapleyprio.cli import main
from shapleyprio.lab.trial.report import ComparedTrial, average_of
from shapleyprio.replay.measures.turns import Turns

LINE = "1 0 -1 10 1 -1 -1 -1 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
ONE = '[[trial]]\nname = "one"\nlog = "log.swf"\n'


@pytest.fixture(autouse=True)
def _in_a_folder_with_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.swf").write_text(f"; MaxProcs: 3\n{LINE}")


def trials(text: str, *arguments: str) -> Result:
    Path("list.toml").write_text(text)
    words = ["trials", "list.toml", "--keep", "results", *arguments]
    return CliRunner().invoke(main, words)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("list.toml: there is no table [[trial]]", "deal-users = 2\n"),
        ("list.toml: Expected '='", "deal-users\n"),
        ("trial one: name the owners of the jobs", ONE),
        ("trial one: No such option", f"deal-user = 2\n{ONE}"),
        ("trial one: Invalid value for '--deal-users'", f"deal-users = 0\n{ONE}"),
        ("trial one: Invalid value for '--arm'", f'deal-users = 2\narm = ["fair"]\n{ONE}'),
        ("trial one: keep: give it as an option of the command", f'keep = "x"\n{ONE}'),
        ("trial 1: name: it needs one", 'deal-users = 2\n[[trial]]\nlog = "log.swf"\n'),
        ("trial a/b: name: it needs one fit", '[[trial]]\nname = "a/b"\nlog = "log.swf"\n'),
        ("trial a.2: name: it needs one fit", '[[trial]]\nname = "a.2"\nlog = "log.swf"\n'),
        ("trial one: repeat: give it as an option of the command", f"repeat = 2\n{ONE}"),
        ("trial one: log: it needs one", '[[trial]]\nname = "one"\n'),
        ("trial one: name: one is also another trial's", f"deal-users = 2\n{ONE}{ONE}"),
    ],
)
def test_a_mistake_in_a_list_is_reported_with_its_place(message: str, text: str) -> None:
    ended = trials(text)
    assert ended.exit_code == 2, ended.output
    assert ended.stdout == ""
    assert message in " ".join(ended.stderr.split())


def results(asked: dict[str, Any], fair_share: float, steered: float) -> dict[str, Any]:
    """What a trial writes, as far as it is compared."""
    simulated = {"ref": (0.0, 0), "directcontr": (100.0, 1), "fairshare": (400.0, 5)}
    arms = {"slurm-fairshare": (fair_share, 1.5, 6), "shapleyprio-nice": (steered, 0.5, 2)}
    return {
        "trial": asked,
        "organizations": [{"jobs": 1000}, {"jobs": 234}],
        "policies": [
            {"policy": p, "unfairness": u, "contested": 10, "out_of_turn": wrong}
            for p, (u, wrong) in simulated.items()
        ],
        "arms": [
            {
                "arm": arm,
                "unfairness": u,
                "contested": 20,
                "out_of_turn": wrong,
                "model": {"policy": "directcontr", "unfairness": 100.0},
                "submission_lag": {"mean": lag, "95th_percentile": 9},
            }
            for arm, (u, lag, wrong) in arms.items()
        ],
    }


def test_what_has_results_is_shown_and_not_run_again() -> None:
    Path("results").mkdir()
    for name, fair_share, steered in (("one", 410.0, 90.0), ("two", 430.0, 130.0)):
        asked = {"deal-users": 2, "name": name, "log": "log.swf"}
        Path(f"results/{name}.json").write_text(json.dumps(results(asked, fair_share, steered)))
    text = f"deal-users = 2\n{ONE}{ONE.replace('one', 'two')}"
    ended = trials(text, "--json", "all.json")
    assert (ended.exit_code, ended.stderr) == (0, "")
    table = [" ".join(line.split()) for line in ended.stdout.splitlines()[:10]]
    assert table == [
        "trial jobs fairshare (simulated) directcontr (simulated) slurm-fairshare "
        "shapleyprio-nice mean lag",
        "one 1,234 400 s 100 s 410 s (100 s) 90.0 s (100 s) 1.50 s",
        "two 1,234 400 s 100 s 430 s (100 s) 130 s (100 s) 1.50 s",
        "mean 1,234 400 s 100 s 420 s (100 s) 110 s (100 s) 1.50 s",
        "median 1,234 400 s 100 s 420 s (100 s) 110 s (100 s) 1.50 s",
        "",
        "out of turn fairshare (simulated) directcontr (simulated) slurm-fairshare "
        "shapleyprio-nice",
        "one 50.0% 10.0% 30.0% 10.0%",
        "two 50.0% 10.0% 30.0% 10.0%",
        "all 50.0% 10.0% 30.0% 10.0%",
    ]
    assert list(json.loads(Path("all.json").read_text())) == ["one", "two"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{}", "was run with other parameters than are asked for now"),
        ('{"trial": {"deal-users": 3}}', "was run with other parameters than are asked for now"),
        ("no JSON", "cannot be read"),
        ("[]", "is not a JSON object"),
    ],
)
def test_results_of_something_else_are_not_taken_for_a_trials(text: str, complaint: str) -> None:
    Path("results").mkdir()
    Path("results/one.json").write_text(text)
    ended = trials(f"deal-users = 2\n{ONE}")
    assert ended.exit_code == 2
    assert f"one.json: {complaint}" in " ".join(ended.stderr.split())


def test_repeated_trials_show_the_mean_of_their_runs_and_how_far_they_lie_apart() -> None:
    Path("results").mkdir()
    asked = {"deal-users": 2, "name": "one", "log": "log.swf"}
    for part, fair_share, steered in (("one", 410.0, 90.0), ("one.2", 430.0, 130.0)):
        Path(f"results/{part}.json").write_text(json.dumps(results(asked, fair_share, steered)))
    ended = trials(f"deal-users = 2\n{ONE}", "--repeat", "2", "--json", "all.json")
    assert (ended.exit_code, ended.stderr) == (0, "")
    line = " ".join(ended.stdout.splitlines()[1].split())
    assert "420 s [410 to 430] (100 s) 110 s [90.0 to 130] (100 s)" in line
    assert list(json.loads(Path("all.json").read_text())) == ["one", "one.2"]


def compared(arms: dict[str, list[float]], turns: dict[str, Turns] | None = None) -> ComparedTrial:
    models = dict.fromkeys(arms, 7.0)
    return ComparedTrial(
        name="", jobs=1, simulated={}, arms=arms, models=models, turns=turns or {}, mean_lag=0
    )


def test_averages_are_over_those_trials_that_ran_an_arm_run_by_run() -> None:
    trials_of_arms = [compared({"a": [1], "b": [2]}), compared({"a": [3, 9]})]
    mean = average_of("mean", fmean, trials_of_arms)
    assert mean.arms == {"a": [2], "b": [2]}
    assert mean.models == {"a": 7, "b": 7}
    several = [compared({"a": [first, first + 1]}) for first in (1, 2, 9)]
    assert average_of("median", median, several).arms == {"a": [2, 3]}


def test_turns_are_pooled() -> None:
    """So that a trial with few contested moments has no more weight than they have."""
    few, many = (compared({"a": [1]}, {"a": turns}) for turns in (Turns(1, 1), Turns(9, 0)))
    assert average_of("all", fmean, [few, many]).turns == {"a": Turns(10, 1)}
