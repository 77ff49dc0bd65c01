"""`shapleyprio export`: all that gives the past meaning in one file, and what reads it."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from shapleyprio.cli import main
from shapleyprio.replay.logs.exports.anonymizing import Anonymizer
from shapleyprio.store import CapacityRow, PauseRow
from tests.cli.conftest import CommandLine, shell_in, speaking_to
from tests.daemon.consortium import BIOLOGY, NAME, NOW, PHYSICS
from tests.store.examples import BEGIN, exception, work_after_end

NAMES = ("physics", "biology", "guest", "eve", "a1", "a2", "b1", "pa", "pb", "all", NAME)
"""What users, admins and the configuration call things; no anonymized file may have any."""


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """Both organizations have wanted more than there was, and somebody's jobs were nobody's."""
    folder = tmp_path_factory.mktemp("life")
    with pytest.MonkeyPatch.context() as patched, shell_in(folder, patched) as shell:
        slurm = shell.slurm
        for number in range(12):
            account = ("physics", "biology", "biology", "guest")[number % 4]
            slurm.submit(account, processors=3 + number % 5, processing_time=100 + 40 * number)
            slurm.wait(30)
            if number % 4 == 3:
                assert shell.run("daemon", "--once").exit_code == 0
        slurm.cancel(1)
        slurm.wait(4000)
        slurm.submit("physics", processors=1, processing_time=10**6)
        slurm.wait(10)
        assert shell.run("daemon", "--once").exit_code == 0
        return shell


@pytest.fixture
def lived(
    life: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CommandLine]:
    """The life's cluster, which no command here changes, and a store of the test's own."""
    shutil.copy(life.folder / "store.db", tmp_path)
    shell = CommandLine(tmp_path, life.slurm)
    shell.configure()
    with speaking_to(lambda *_: life.slurm, monkeypatch):
        yield shell


def put_first(shell: CommandLine, user: str = "ann") -> None:
    """An admin has paused, and put two jobs first: one has run, the other still waits."""
    reason = "a secret project"
    pause = PauseRow(since=NOW + 60, user=user, reason=reason, keep=False, until=NOW + 90)
    first = exception(3, NOW + 70, user=user, reason=reason, before_all=True)
    with shell.store() as store, store.cluster(NAME).transaction() as rows:
        rows.orders.put_pauses([pause])
        over = replace(first, ended=NOW + 100, passed={"biology": 2, "": 1})
        rows.orders.put_exceptions([over, replace(first, job_id=4, since=NOW + 90)])


def exported(shell: CommandLine, *arguments: str, name: str = "past.tar.gz") -> str:
    file = str(shell.folder / name)
    result = shell.run("export", file, *arguments)
    assert result.exit_code == 0, result.output
    return file


def offline(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def answer(*arguments: str) -> dict[str, Any]:
    result = offline(*arguments, "--json", "-")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def of_store(shell: CommandLine, command: str, *arguments: str) -> dict[str, Any]:
    whose = ("--organizations", str(shell.file), "--cluster", NAME)
    return answer(command, shell.url, *whose, *arguments)


def members(file: str) -> dict[str, str]:
    with tarfile.open(file) as tar:
        return {one.name: tar.extractfile(one).read().decode() for one in tar}  # type: ignore[union-attr]


def anonymous(found: Any) -> Any:
    """An answer without what has to differ: names, sources and seconds of computation."""
    if isinstance(found, dict):
        apart = {"name", "log", "seconds", "organization", "users_after_end"}
        return {key: anonymous(value) for key, value in found.items() if key not in apart}
    return [anonymous(one) for one in found] if isinstance(found, list) else found


EXPORTS = [(), ("--anonymize",), ("--anonymize", "--shift-time")]


@pytest.mark.parametrize("arguments", EXPORTS, ids=str)
def test_a_replay_of_an_export_is_that_of_the_store_to_the_unit(
    lived: CommandLine, arguments: tuple[str, ...]
) -> None:
    file = exported(lived, *arguments)
    for options in ((), ("--wide", "expand", "--horizon", "90s")):
        known, found = of_store(lived, "replay", *options), answer("replay", file, *options)
        assert known["policies"][-1]["unfairness"] > 0
        assert anonymous(found) == anonymous(known)


def test_an_audit_of_an_export_finds_what_the_store_has(lived: CommandLine) -> None:
    row = work_after_end(organization="biology", end=NOW + 100, processor_seconds=77)
    with lived.store() as store, store.cluster(NAME).transaction() as rows:
        rows.runs.save_work_after_end([row], asked_until=NOW + 100)
    known, found = of_store(lived, "audit"), answer("audit", exported(lived))
    assert [one["processor_seconds"] for one in found["after_end"]] == [77]
    assert found["carried"] == known["carried"]
    assert anonymous(found) == anonymous(known)


def ordered(*arguments: str) -> list[str]:
    """The lines of an audit that say what admins ordered."""
    result = offline(*arguments)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    return [line for line in lines if line.startswith(("Pause: ", "Exception: "))]


def test_an_audit_of_an_export_names_pauses_and_jobs_that_went_first(lived: CommandLine) -> None:
    put_first(lived)
    whose = ("--organizations", str(lived.file), "--cluster", NAME)
    known = ordered("audit", lived.url, *whose)
    assert len(known) == 3
    assert known[0].endswith(", by ann (a secret project); priorities were put back")
    assert "; it passed 2 of biology, 1 of nobody, and used " in known[1]
    assert ordered("audit", exported(lived)) == known

    key = ("--anonymize", "--key", str(lived.folder / "key"))
    hidden = exported(lived, *key, name="hidden.tar.gz")
    name = Anonymizer((lived.folder / "key").read_bytes().strip()).name
    for named, line in zip(ordered("audit", hidden), known, strict=True):
        words = line.replace(" (a secret project)", "").replace("ann", name("user", "ann"))
        for one in ("physics", "biology"):
            words = words.replace(one, name("organization", one))
        words = words.replace("2 of ", "1 of nobody, 2 of ").replace(", 1 of nobody, and", ", and")
        assert named == re.sub(r"job (\d+)", lambda job: f"job {name('job', job[1])}", words)


def test_a_report_of_an_export_is_that_of_the_store(lived: CommandLine) -> None:
    lived.write(lived.file, PHYSICS, {**BIOLOGY, "parent": "physics"})
    past, found = exported(lived), []
    for number, source in enumerate((["--config", str(lived.file)], [past])):
        directory = lived.folder / str(number)
        result = offline("report", *source, "--month", "2027-01", "--output", str(directory))
        assert result.exit_code == 0, result.output
        found.append(json.loads((directory / f"{NAME}-2027-01.json").read_text()))
    assert found[0]["waits"]
    assert [one["parent"] for one in found[0]["policies"][0]["unions"]] == ["physics"]
    assert anonymous(found[1]) == anonymous(found[0])
    result = offline("report", past, "--month", "2026-10", "--output", str(lived.folder / "x"))
    assert result.exit_code == 2
    assert f"{past}: holds nothing from 2026-10" in result.stderr


def test_who_has_left_is_still_in_an_export(lived: CommandLine) -> None:
    known = answer("audit", exported(lived, name="before.tar.gz"))
    lived.write(lived.file, PHYSICS)
    file = exported(lived)
    assert json.loads(members(file)["manifest.json"])["organizations"] == ["physics", "biology"]
    assert anonymous(answer("audit", file)) == anonymous(known)
    found = answer("audit", exported(lived, "--anonymize", name="hidden.tar.gz"))
    sizes = [[one["processors"] for one in each["organizations"]] for each in (known, found)]
    assert sizes == [[8, 4], [8, 4]]


def test_an_experiment_takes_users_and_processors_out_of_an_export(lived: CommandLine) -> None:
    general = ("--windows", "1", "--length", "100", "--deal-users", "1", "--policy", "fcfs")
    found = answer("experiment", exported(lived), *general)
    assert {row["log"] for row in found["rows"]} == {"past.tar"}
    assert {row["processors"] for row in found["rows"]} == {12}


def test_no_name_is_left_in_an_anonymized_export(lived: CommandLine) -> None:
    with lived.store() as store, store.cluster(NAME).transaction() as rows:
        rows.runs.save_work_after_end([work_after_end(user="eve")], asked_until=BEGIN + 50)
    put_first(lived, user="root")
    moved = lived.run("ownership", "set", "a1", "biology", "--since", "always", "--yes")
    assert moved.exit_code == 0, moved.output
    plain, hidden = exported(lived), exported(lived, "--anonymize", name="hidden.tar.gz")
    for name in (*NAMES, "root", "a secret project"):
        quoted = json.dumps(name)
        assert quoted in "".join(members(plain).values()), name
        assert quoted not in "".join(members(hidden).values()), name


def test_no_order_in_an_anonymized_export_is_that_of_the_names_in_it(lived: CommandLine) -> None:
    moved = lived.run("ownership", "set", "a[1-2],b1", "biology", "--since", "always", "--yes")
    assert moved.exit_code == 0, moved.output
    with lived.store() as store, store.cluster(NAME).transaction() as rows:
        layout = {("b", "a", "all")[:number]: number for number in (1, 2, 3)}
        some = CapacityRow(organization="physics", since=NOW, processors=layout)
        rows.observed.correct_capacities((), [some], 0)
        passed = dict.fromkeys(("biology", "guest", "physics"), 1)
        rows.orders.put_exceptions([replace(exception(3, NOW + 70), passed=passed)])
    key = lived.folder / "key"
    orders: list[list[Any]] = []
    for number in range(3):  # of one key alone both orders may be the same
        key.write_text(f"{number}" * 16)
        file = exported(lived, "--anonymize", "--key", str(key), "--force")
        found = {
            name: [json.loads(line) for line in lines.splitlines()]
            for name, lines in members(file).items()
            if name != "manifest.json"
        }
        orders += [
            [(row["kind"], row["name"]) for row in found["tenures.jsonl"]],
            [(row["number"], row["kind"], row["name"]) for row in found["corrections.jsonl"]],
            *([row["name"] for row in found[f"{kind}.jsonl"]] for kind in ("nodes", "accounts")),
            [row["organization"] for row in found["standings.jsonl"]],
            *(list(row["nodes"]) for row in found["runs.jsonl"]),
            *([one["owner"] for one in row["allocations"]] for row in found["runs.jsonl"]),
            *(row["partitions"] for row in found["nodes.jsonl"]),
            *(list(row["passed"]) for row in found["exceptions.jsonl"]),
            *(row["processors"] for row in found["capacities.jsonl"]),
            *(names for row in found["capacities.jsonl"] for names, _ in row["processors"]),
        ]
    assert len([one for one in orders if len(one) > 2]) > 20
    for one in orders:
        assert one == sorted(one)


def test_the_same_key_makes_the_same_names_and_the_same_file(lived: CommandLine) -> None:
    key = ("--anonymize", "--key", str(lived.folder / "key"))
    first, second = exported(lived, *key), exported(lived, *key, name="again.tar.gz")
    other = exported(lived, "--anonymize", name="other.tar.gz")
    assert (lived.folder / "key").stat().st_mode & 0o777 == 0o600
    assert Path(first).read_bytes() == Path(second).read_bytes()
    assert members(first)["accounts.jsonl"] != members(other)["accounts.jsonl"]
    (lived.folder / "short").write_text("secret\n")
    result = lived.run("export", other, "--force", *key[:2], str(lived.folder / "short"))
    assert result.exit_code == 2
    assert "has 6 bytes, but a key has at least 16" in result.stderr


def test_what_is_left_is_said(lived: CommandLine) -> None:
    result = lived.run("export", str(lived.folder / "past"), "--anonymize")
    assert "the key was not kept" in result.stdout
    assert "when jobs were submitted, released, started and ended" in result.stdout


def test_times_are_shifted_by_whole_weeks(lived: CommandLine) -> None:
    key = ("--anonymize", "--key", str(lived.folder / "key"))
    first = [json.loads(row) for row in members(exported(lived, *key))["runs.jsonl"].splitlines()]
    file = exported(lived, *key, "--shift-time", "--force")
    second = [json.loads(row) for row in members(file)["runs.jsonl"].splitlines()]
    moved = {
        one[name] - other[name]
        for one, other in zip(first, second, strict=True)
        for name in ("submit", "start", "release", "begin", "end")
        if one[name] is not None
    }
    assert len(moved) == 1
    assert moved.pop() % (7 * 86_400) == 0


def test_an_export_of_a_span_is_replayed_as_that_span_of_the_store(lived: CommandLine) -> None:
    local = [
        datetime.fromtimestamp(NOW + second, UTC).isoformat(timespec="seconds")
        for second in (400, 800)
    ]
    span = ("--since", local[0], "--until", local[1])
    file = exported(lived, *span)
    known, found = of_store(lived, "replay", *span), answer("replay", file)
    assert sum(one["jobs"] for one in known["organizations"]) == 6
    assert anonymous(found) == anonymous(known)
    rows = [json.loads(row) for row in members(file)["runs.jsonl"].splitlines()]
    assert len(rows) == 6  # of 15
    assert all(row["end"] > NOW + 400 and row["begin"] < NOW + 800 for row in rows)


def test_nothing_in_an_export_began_after_its_span_or_had_ended_before(lived: CommandLine) -> None:
    with lived.store() as store, store.cluster(NAME).reading() as view:
        (last,) = {row.t for row in view.history.latest_standings()}
    for second, owner in ((600, "physics"), (1000, "nobody")):
        since = datetime.fromtimestamp(NOW + second, UTC).isoformat()
        moved = lived.run("ownership", "set", "b1", owner, "--since", since, "--yes")
        assert moved.exit_code == 0, moved.output

    def rows(begin: int, end: int) -> dict[str, list[dict[str, Any]]]:
        local = (datetime.fromtimestamp(one, UTC).isoformat() for one in (begin, end))
        span = zip(("--since", "--until"), local, strict=True)
        file = exported(lived, *(word for words in span for word in words), "--force")
        found = members(file)
        del found["manifest.json"]
        return {
            name.removesuffix(".jsonl"): [json.loads(line) for line in lines.splitlines()]
            for name, lines in found.items()
        }

    def of_b1(found: dict[str, list[dict[str, Any]]]) -> list[tuple[Any, ...]]:
        held = (row for row in found["tenures"] if row["name"] == "b1")
        return [(row["organization"], row["since"], row["until"]) for row in held]

    def last_begin(found: dict[str, list[dict[str, Any]]], before: int) -> int:
        runs = (row for row in found["runs"] if row["begin"] < before)
        begins: list[int] = [one["begin"] for row in runs for one in row["allocations"]]
        return max(begins)

    early, late, after = (
        rows(NOW + begin, NOW + end) for begin, end in ((0, 600), (600, 9000), (9000, 9999))
    )
    assert of_b1(early) == [("biology", None, None)]
    assert of_b1(late) == [("physics", NOW + 600, NOW + 1000), ("", NOW + 1000, None)]
    assert of_b1(after) == [("", NOW + 1000, None)]
    assert last_begin(early, NOW + 600) < NOW + 600 == last_begin(late, NOW + 600)
    assert {row["t"] < NOW + 600 for row in early["standings"]} == {True}
    assert {row["t"] for row in late["standings"]} == {last}
    assert [len(each["corrections"]) for each in (early, late, after)] == [0, 2, 0]


def test_slurms_accounting_makes_the_same_export_as_the_store_of_a_daemon_that_saw_all(
    lived: CommandLine,
) -> None:
    live = exported(lived, "--live", name="live.tar.gz")
    assert anonymous(answer("replay", live)) == anonymous(of_store(lived, "replay"))
    (manifest,) = json.loads(members(live)["manifest.json"])["ledgers"]
    assert manifest["releases"][0][1] == lived.slurm.layout().version
    (lived.folder / "store.db").unlink()
    result = lived.run("export", str(lived.folder / "x"))
    assert result.exit_code == 4
    assert "--live reads Slurm's accounting instead" in result.stderr
    again = exported(lived, "--live", name="again.tar.gz")
    assert members(again)["runs.jsonl"] == members(live)["runs.jsonl"]


def test_a_file_that_is_there_is_left_alone_unless_forced(lived: CommandLine) -> None:
    file = Path(exported(lived))
    before = file.read_bytes()
    for arguments in ((), ("--anonymize", "--key", str(lived.folder / "key"))):
        result = lived.run("export", str(file), *arguments)
        assert result.exit_code == 2
        assert result.stderr == f"shapleyprio: {file}: already exists; --force overwrites it\n"
    assert file.read_bytes() == before
    assert not (lived.folder / "key").exists()
    exported(lived, "--anonymize", "--force")
    assert file.read_bytes() != before


def test_options_that_do_not_go_together_are_refused(lived: CommandLine) -> None:
    file = str(lived.folder / "x")
    for arguments, message in (
        (("--shift-time",), "--key and --shift-time go with --anonymize"),
        (("--since", "2027-01-02", "--until", "2027-01-01"), "--since must be before --until"),
        (("--anonymize", "--key", file), "FILE and --key name the same file"),
        (("--since", "9999-12-31"), "'9999-12-31' is too late; expected a date until 2105-12-31"),
        (("--until", "2106-01-01"), "'2106-01-01' is too late; expected a date until 2105-12-31"),
    ):
        result = lived.run("export", file, *arguments)
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())
    assert not Path(file).exists()
