"""The documentation and the code say the same."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from shapleyprio.cli import COMMANDS, main
from shapleyprio.cli.offline import replaying
from shapleyprio.cli.options.parameters import ReplayParameters
from shapleyprio.cli.replay import command as replay
from shapleyprio.common.errors import KnownError
from shapleyprio.config import config_reference
from shapleyprio.lab.cli.bench import command as bench
from shapleyprio.lab.cli.rehearse import command as rehearse
from shapleyprio.lab.cli.trial import command as trial
from shapleyprio.lab.cli.trials import command as trials
from shapleyprio.lab.cli.trials import trials_in
from shapleyprio.lab.rehearsal.arms import ARMS as SITE_ARMS
from shapleyprio.lab.trial.arms import ARMS
from shapleyprio.replay import POLICIES, load_organizations
from shapleyprio.replay.logs.column_names import ASK
from shapleyprio.replay.policies import RunOptions
from shapleyprio.replay.policies.own import own_decisions
from shapleyprio.replay.results import SCHEDULE_COLUMNS
from tests.replay.strategies import Job, workload_of_jobs
from tests.replay.traces import trace

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SEMANTICS = (ROOT / "docs" / "semantics.md").read_text()
REPLAY = (ROOT / "docs" / "replay.md").read_text()
TRIAL = (ROOT / "docs" / "trial.md").read_text()
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"


def options_of(command: click.Command) -> set[str]:
    """All that begin with two dashes."""
    options = {option for parameter in command.params for option in parameter.opts}
    return {option for option in options if option.startswith("--")}


def blocks(text: str, language: str) -> list[str]:
    """The blocks of code in that language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def shown(text: str) -> Iterator[tuple[list[str], str]]:
    """The arguments of every `shapleyprio replay` in blocks of code, and what stands below."""
    for block in (*blocks(text, "console"), *blocks(text, "sh")):
        lines = iter(block.replace("\\\n", " ").splitlines(keepends=True))
        for line in lines:
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words[:2] == ["shapleyprio", "replay"]:
                yield words[2:], "".join(lines) if line.startswith("$ ") else ""


PRINTED = [(arguments, output) for arguments, output in shown(REPLAY) if output]


def test_the_reference_of_the_configuration_is_up_to_date() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text()
    assert written == config_reference(), (
        "run: python -m shapleyprio.config > docs/configuration.md"
    )


def test_the_readme_lists_every_command_and_no_other() -> None:
    section = README.split("## Commands")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `shapleyprio (\w+)", section, flags=re.MULTILINE)
    assert listed == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readme_names_only_options_that_exist(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    known = {option for parameter in command.params for option in parameter.opts}
    for line in README.splitlines():
        if line.startswith((f"| `shapleyprio {name}", f"shapleyprio {name} ")):
            named = set(re.findall(r"--[a-z-]+", line.split("  # ")[0]))
            assert named <= known, line


def known_errors(kind: type[KnownError]) -> Iterator[type[KnownError]]:
    """It and all kinds of it."""
    yield kind
    for special in kind.__subclasses__():
        yield from known_errors(special)


def test_the_exit_codes_are_documented() -> None:
    section = SEMANTICS.split("## Exit codes")[1]
    documented = {int(code) for code in re.findall(r"^\| (\d) \|", section, flags=re.MULTILINE)}
    assert documented == {0, 1, *(kind.exit_code for kind in known_errors(KnownError))}
    assert main.help is not None
    for code in documented:
        assert f"{code} " in main.help


@pytest.mark.parametrize("file", [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))], ids=str)
def test_links_in_the_documentation_lead_somewhere(file: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", file.read_text()):
        assert (file.parent / target).exists(), target


# the replay


def test_the_replay_document_names_every_option_and_no_other() -> None:
    text = re.sub(r"^TZ=UTC sacct (.*\\\n)*", "", REPLAY, flags=re.MULTILINE)
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
    assert named == {option for parameter in replay.params for option in parameter.opts} - {"log"}


def test_the_replay_document_describes_every_policy_as_the_registry_does() -> None:
    section = REPLAY.split("## Policies")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([\w-]+)` \| (.*) \| (.*?) ?\|$", section, flags=re.MULTILINE)
    assert [(name, *(text.replace("`", "") for text in texts)) for name, *texts in rows] == [
        (policy.name, policy.decision, policy.source) for policy in POLICIES.values()
    ]


def test_the_documented_policy_of_ones_own_runs() -> None:
    (program,) = (block for block in blocks(REPLAY, "python") if "state.waiting" in block)
    names: dict[str, Any] = {}
    exec(program, names)
    workload = workload_of_jobs([1, 0], [Job(0, 0, 2), Job(0, 0, 2), Job(1, 0, 2)], 9)
    schedule = own_decisions(workload, "queues:shortest", names["shortest"], RunOptions())
    assert workload.organization[schedule.job].tolist() == [1, 0, 0]


def test_the_replay_document_asks_sacct_for_all_that_the_reader_uses() -> None:
    (block,) = (block for block in blocks(REPLAY, "sh") if "sacct --allusers" in block)
    assert set(ASK.split()) <= set(block.split())


@pytest.mark.parametrize(
    "arguments",
    [arguments for text in (README, REPLAY) for arguments, _ in shown(text)],
    ids=" ".join,
)
def test_every_replay_that_is_shown_is_accepted(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters: list[ReplayParameters] = []
    monkeypatch.setattr(replaying, "replay", parameters.append)
    result = CliRunner().invoke(main, ["replay", *arguments])
    assert result.exit_code == 0, result.output
    replaying.refuse_unknown_policies(parameters[0].policies)


def test_the_example_of_organizations_can_be_read() -> None:
    names = [one.name for one in load_organizations(EXAMPLES / "pozidriv.toml")]
    assert names == ["calla", "taifl", "caste", "field", "ibech", "center"]


def test_the_documented_json_has_the_keys_that_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rest = "1 -1 -1 1 -1 -1 1 7 1 -1 1 -1 -1 -1"
    Path("log.swf").write_text(f"; MaxProcs: 1\n1 0 0 5 {rest}\n2 0 0 0 {rest}\n")
    arguments = ["replay", "log.swf", "--deal-users", "1", "--json", "-", "--schedule", "s.csv"]
    written = CliRunner().invoke(main, arguments).stdout
    assert json.loads(written)
    (documented,) = blocks(REPLAY, "json")
    keys = re.compile(r'"(\w+)":')
    assert set(keys.findall(documented)) == set(keys.findall(written))
    header = Path("s.csv").read_text().splitlines()[0]
    assert header == ",".join(SCHEDULE_COLUMNS)
    assert f"\n{header}\n" in REPLAY


def figures(output: str) -> list[list[str]]:
    """The words of every line, without the seconds that runs took."""
    lines = []
    for paragraph in output.split("\n\n"):
        rows = [row.split() for row in paragraph.splitlines()]
        timed = bool(rows) and rows[0][-1] == "seconds"
        lines += [row[:-1] if timed else row for row in rows]
    return lines


@pytest.mark.parametrize(("arguments", "output"), PRINTED, ids=[words[0] for words, _ in PRINTED])
def test_replays_print_what_is_documented(
    arguments: list[str], output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = trace(arguments[0])
    monkeypatch.chdir(tmp_path)
    for file in (log, *EXAMPLES.iterdir()):
        Path(file.name).symlink_to(file)
    result = CliRunner().invoke(main, ["replay", *arguments])
    printed = iter(figures(result.stdout))
    assert [line for line in figures(output) if line not in printed] == []  # in this order


# operations

CALL = re.compile(
    r"(?:^|-- )shapleyprio ((?:(?:db|ownership) )?[a-z]+)((?: [^\n|#;()]+)?)", re.MULTILINE
)


def calls(file: Path) -> list[tuple[str, str]]:
    """Every call of the program in code, with its arguments."""
    text = file.read_text().replace("\\\n", " ")
    code = [*blocks(text, "sh"), *re.findall(r"`([^`\n]*shapleyprio [^`\n]*)`", text)]
    return [(match[1], match[2]) for part in code for match in CALL.finditer(part)]


@pytest.mark.parametrize("name", ["operations.md", "compared.md"])
def test_every_command_and_option_that_operations_names_exists(name: str) -> None:
    for words, arguments in calls(DOCS / name):
        command: click.Command = main
        for word in words.split():
            assert isinstance(command, click.Group), words
            found = command.get_command(click.Context(command), word)
            assert found is not None, words
            command = found
        named = set(re.findall(r"--[a-z-]+", arguments))
        assert named <= {*options_of(command), "--help"}, (words, arguments)


def test_operations_names_commands() -> None:
    named = {name for name, _ in calls(DOCS / "operations.md")}
    assert {"check", "daemon", "status", "rollback", "history", "replay", "audit"} <= named


# the trial


def test_the_trial_document_names_every_arm_and_no_option_that_there_is_not() -> None:
    section = TRIAL.split("## Arms")[1].split("\n## ")[0]
    table = "".join(line for line in section.splitlines() if line.startswith("|"))
    assert set(ARMS) <= set(re.findall(r"`([a-z-]+)`", table))
    of_trials = {*options_of(trial), *options_of(trials)}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", TRIAL))
    assert of_trials - options_of(replay) <= named
    of_others = {"--backfill", "--ntasks", "--start"}
    assert named <= of_trials | options_of(bench) | of_others


def test_the_rehearsal_document_names_every_arm_and_no_option_that_there_is_not() -> None:
    text = (DOCS / "rehearse.md").read_text()
    assert set(SITE_ARMS) <= set(re.findall(r"`([a-z]+)`", text))
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
    assert named <= options_of(rehearse)
    assert options_of(rehearse) - options_of(trial) - options_of(replay) - {"--keep"} <= named


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.toml")), ids=lambda file: file.name)
def test_every_example_can_be_read(file: Path) -> None:
    if "[[trial]]" in file.read_text():
        assert trials_in(file, Path())
    else:
        assert load_organizations(file)
