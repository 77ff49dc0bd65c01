"""Attacks by data: what somebody else wrote must cost neither memory nor time without bound."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import shutil
import subprocess
import time
import tomllib
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

from shapleyprio.cli import main
from shapleyprio.common.errors import ConfigError, Remedy
from shapleyprio.common.output import whole_file
from shapleyprio.config import load_config
from shapleyprio.config.load import MOST_PROBLEMS
from shapleyprio.config.values import host_list
from shapleyprio.daemon.accounting import allocating
from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.lab.experiment.results import write_rows
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs import files, memory
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.results import write_schedules
from shapleyprio.slurm.port import Malformed
from shapleyprio.slurm.text.accounting import FIELDS, accounting_line
from shapleyprio.slurm.text.squeue import MOST_ASIDE, WaitingRecords
from shapleyprio.slurm.text.values import UnreadableError, amount, duration, hosts
from shapleyprio.store import Store, StoreError
from shapleyprio.store.repositories.observed import (
    MOST_LINES,
    MOST_LINES_AFTER_PRUNING,
    ONLY_COUNTED,
)
from tests.fairness.examples import job_record
from tests.lab.experiment.examples import write_log
from tests.replay.strategies import Job, workload_of_jobs
from tests.store.servers import file_of, url_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.store.servers import Databases

SWF_LINE = b"7 100 20 300 4 0 0 8 3600 0 1 5 6 1 2 3 -1 0\n"
SACCT_HEADER = b"JobIDRaw|Account|User|Submit|Start|End|ElapsedRaw|AllocCPUS|NodeList\n"
ORGANIZATION = '[[organization]]\nname = "physics"\naccounts = ["physics"]\n'


@pytest.fixture
def store(databases: Databases) -> Iterator[Store]:
    with databases.store("sqlite") as store:
        yield store


def ledger_of(store: Store, records: Iterator[object], now: int = 1000) -> OpenLedger:
    with store.cluster("c").transaction() as transaction:
        opened = OpenLedger(
            transaction,
            horizon=None,
            opens=0,
            ask_holders=lambda: {"node": {"n1": "physics"}, "account": {"phys": "physics"}},
        )
        opened.ingest(records, now)  # type: ignore[arg-type]
        opened.close(now, observed_until=now)
    return opened


# -- the daemon's store


def test_fill_the_store_with_bad_lines_that_all_differ(store: Store) -> None:
    many = 100_000
    opened = ledger_of(store, (Malformed("sacct", f"{i}" + "x" * 900, "?") for i in range(many)))
    assert opened.tally.quarantined == many
    with store.cluster("c").transaction() as rows:
        kept = rows.observed.quarantined(limit=many)
        assert len(kept) == rows.observed.quarantined_count() == MOST_LINES + 1
        assert kept[0].line == ONLY_COUNTED
        assert sum(line.times for line in kept) == many
        # pruning makes room for lines nobody has seen, and forgets none of the numbers
        assert rows.prune_history(0, pushes_before=0) == MOST_LINES - MOST_LINES_AFTER_PRUNING
        assert sum(line.times for line in rows.observed.quarantined(limit=many)) == many
        assert rows.observed.quarantine([Malformed("sacct", "a real one", "?")], 2000) == 1
        assert rows.observed.quarantined(limit=1)[0].line.text == "a real one"
        # what nobody has met for long is gone
        rows.prune_history(1001, pushes_before=0)
        assert [line.line.text for line in rows.observed.quarantined()] == ["a real one"]
    beside = file_of(url_of(store)).parent
    assert 0 < sum(file.stat().st_size for file in beside.iterdir()) < 10_000_000


def test_keep_a_cycle_busy_with_an_account_of_nothing_but_line_ends() -> None:
    torn = 1_000_000
    began = time.process_time()
    queue = WaitingRecords(("x" for _ in range(torn)), "0123456789abcdef").queue()
    assert (len(queue.malformed), queue.more_malformed) == (MOST_ASIDE, torn - MOST_ASIDE)
    assert queue.jobs == []
    assert time.process_time() - began < 60


def test_make_every_cycle_read_a_million_names_of_accounts(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocating, "MOST_STRANGERS", 100)
    record = job_record(start=100, end=160)
    opened = ledger_of(store, (replace(record, job_id=i + 1, account=f"a{i}") for i in range(1000)))
    assert opened.tally.kept == 1000  # the work of each is accounted all the same
    with store.cluster("c").reading() as view:
        strangers = [tenure for tenure in view.ledger.tenures() if tenure.organization == NOBODY]
    assert len(strangers) == 100


@pytest.mark.parametrize("field", ["Account", "User", "Partition"])
def test_break_the_database_by_a_name_longer_than_its_columns(field: str) -> None:
    values = dict.fromkeys(FIELDS, "Unknown") | {
        "JobIDRaw": "1",
        "JobID": "1",
        "Submit": "1",
        "ElapsedRaw": "0",
        "Suspended": "00:00:00",
        "State": "PENDING",
        "AllocCPUS": "0",
        "TimelimitRaw": "",
        field: "x" * 300,
    }
    found = accounting_line("".join(f"{values[name]}#" for name in FIELDS), "cpu", "#")
    assert isinstance(found, Malformed)
    assert found.reason == f"{field}: longer than 255 characters"


def test_fill_the_memory_by_one_endless_bad_line() -> None:
    found = accounting_line("x" * 4_000_000, "cpu", "#")
    assert isinstance(found, Malformed)
    assert len(found.text) < 10_000


# -- logs


def bomb(repeated: bytes, times: int) -> bytes:
    """A file of gzip with a text that is a thousand times as large."""
    return gzip.compress(repeated * ((1 << 20) // len(repeated))) * times


def zstd(text: bytes, *options: str) -> bytes:
    """What the program zstd makes of a text of unknown length."""
    if shutil.which("zstd") is None:
        pytest.skip("there is no program zstd")
    command = ["zstd", "-qc", *options]
    return subprocess.run(command, input=text, check=True, capture_output=True).stdout


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (lambda: bomb(SWF_LINE, 300), "decompress to more than 100 times as many"),
        (lambda: lzma.compress(SWF_LINE * 9999) * 500, "decompress to more than 100 times as many"),
        (lambda: zstd(SWF_LINE * 5_000_000), "decompress to more than 100 times as many"),
        (
            lambda: bomb(b'{"meta": [%s],' % (b" " * 1000), 300),
            "decompress to more than 100 times as many",
        ),
        (lambda: bomb(b"\0", 300), "is not text"),
        (lambda: bomb(b"7", 300), "1: is longer than 8 MiB"),
        (
            lambda: lzma.compress(
                SWF_LINE, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29, "preset": 0}]
            ),
            "takes more than 256 MiB of memory to decompress",
        ),
        (
            lambda: zstd(SWF_LINE, "--ultra", "--long=29"),
            "takes more than 256 MiB of memory to decompress",
        ),
        (lambda: bz2.compress(SWF_LINE * 100), "is not text"),
        (lambda: b"\x28\xb5\x2f\xfd\x04\x58", "compressed data are damaged or cut short"),
        (lambda: b"PK\x03\x04\x14\x00", "is not text"),
    ],
    ids=[
        *("swf", "xz", "zstd", "json", "zeros", "one line", "dictionary", "dictionary of zstd"),
        *("bzip2", "cut zstd", "zip"),
    ],
)
def test_fill_the_memory_by_a_small_file_that_decompresses_to_a_huge_one(
    tmp_path: Path, content: Callable[[], bytes], complaint: str
) -> None:
    log = tmp_path / "log"
    log.write_bytes(content())
    result = CliRunner().invoke(main, ["replay", str(log), "--deal-users", "2"])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output
    assert complaint in result.stderr


@pytest.mark.parametrize(
    ("begin", "repeated"),
    [
        (b"", SWF_LINE),
        (SACCT_HEADER, b"7|a|u|1|1|61|60|4|n1\n"),
        (b'{"jobs": [', b'{"job_id": 7, "time": {"submission": 1}},'),
        (b"", b"\n"),
    ],
    ids=["swf", "sacct", "json", "blank"],
)
def test_fill_the_memory_by_a_log_without_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: bytes, repeated: bytes
) -> None:
    monkeypatch.setattr(files, "BLOCK", 1 << 16)
    free = iter((1 << 40, 1 << 40, 1 << 28))
    monkeypatch.setattr(memory, "free_memory", lambda: next(free))  # no further than the third time
    log = tmp_path / "log"
    log.write_bytes(begin + repeated * ((5 << 20) // len(repeated)))
    with pytest.raises(LogError, match="is larger than the memory that is free") as caught:
        read_log(str(log))
    assert caught.value.remedy is Remedy.PART_OF_LOG


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"7 1 2 30 2147483648 0 0 8 36 0 1 5 6 1 2 3 -1 0\n",
         "log:1: field 5 (allocated processors): '2147483648' is beyond 16777215"),
        (b"7 1 2 30 -1 0 0 2147483648 36 0 1 5 6 1 2 3 -1 0\n",
         "log:1: field 8 (requested processors): '2147483648' is beyond 16777215"),
        (b"7 9007199254740992 2 30 1 0 0 1 36 0 1 5 6 1 2 3 -1 0\n",
         "log:1: field 2 (submit time): '9007199254740992' is beyond 4294967296"),
        (b"7 1 2 9999999999 1 0 0 1 36 0 1 5 6 1 2 3 -1 0\n",
         "log:1: field 4 (run time): '9999999999' is beyond 4294967296"),
        (SACCT_HEADER + b"1|a|u|1|1|61|60|2147483648|n1\n",
         "log:2: alloccpus: '2147483648' is more than 16777215 processors"),
        (SACCT_HEADER + b"1|a|u|1|1|61|60|4|n[0-999999999]\n",
         "log:2: nodelist: 'n[0-999999999]' is more hosts than a cluster has"),
        (SACCT_HEADER + b"1|a|u|9999-12-31T23:59:59|1|61|60|4|n1\n",
         "log:2: submit: '9999-12-31T23:59:59' is neither a time"),
        (SACCT_HEADER + b"1|a|u|1|1|61|nan|4|n1\n", "log:2: elapsed: 'nan' is not a duration"),
        (SACCT_HEADER + b"1|a|u|1|1|61|60|inf|n1\n", "log:2: alloccpus: 'inf' is not an amount"),
    ],
)  # fmt: skip
def test_end_a_replay_by_a_number_that_no_cluster_has(
    tmp_path: Path, line: bytes, complaint: str
) -> None:
    log = tmp_path / "log"
    log.write_bytes(line)
    result = CliRunner().invoke(main, ["replay", str(log), "--deal-users", "1"])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output
    assert complaint in result.stderr


def test_end_a_replay_by_more_pieces_than_there_is_memory_for(tmp_path: Path) -> None:
    log = tmp_path / "log"
    wide = b"7 100 20 300 16777215 0 0 8 3600 0 1 5 6 1 2 3 -1 0\n"
    log.write_bytes(wide * 200)
    arguments = ["replay", str(log), "--deal-users", "1", "--processors", "10"]
    arguments += ["--wide", "expand"]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output
    assert "pieces" in result.stderr
    assert "choose a shorter --window" in result.stderr


# -- the configuration


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[push]\ninfluence = nan", "2: push.influence: nan is not"),
        ("[push]\ninfluence = inf", "2: push.influence: inf is not"),
        ('[fairness]\nhorizon = "' + "9" * 100_000 + 'd"', "2: fairness.horizon: "),
        ('[[organization]]\nname = "' + "x" * 65 + '"', "at most 64 characters"),
        ('[[organization]]\nname = "a\\u202eb"', "no control characters"),
        ('[[organization]]\nname = "a\\u200bb"', "no control characters"),
        ('[[organization]]\nnodes = ["n[0-999999999]"]', "more than 100,000 hosts"),
        ('[[organization]]\nnodes = ["n[0-99999]x[0-99999]"]', "more than 100,000 hosts"),
    ],
)
def test_keep_every_command_busy_with_a_value_of_the_configuration(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text)
    began = time.process_time()
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert time.process_time() - began < 30
    assert complaint in str(caught.value)
    assert all(len(problem) < 1000 + len(str(path)) for problem in caught.value.problems)


NESTED = "[" * 100_000


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (NESTED, "cannot be read"),
        ("[]", "is not a JSON object"),
        ('{"parameters": %s}', "holds no rows"),
        ('{"parameters": %s, "rows": [1]}', "holds no rows"),
    ],
)
def test_end_an_experiment_by_what_is_kept_of_it(tmp_path: Path, text: str, why: str) -> None:
    log, kept = tmp_path / "busy.swf", tmp_path / "kept"
    write_log(log)
    words = ["experiment", str(log), "--windows", "1", "--length", "15s", "--deal-users", "2"]
    words += ["--cores", "1", "--policy", "fcfs", "--keep", str(kept)]
    first = CliRunner().invoke(main, words)
    assert first.exit_code == 0, first.output
    (cell, *_) = sorted((kept / "cells").iterdir())
    parameters = json.dumps(json.loads(cell.read_text())["parameters"])
    cell.write_text(text % parameters if "%s" in text else text)
    again = CliRunner().invoke(main, words)
    assert again.exit_code == 2
    assert isinstance(again.exception, SystemExit)
    assert f"{cell}: {why}" in again.stderr


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("sqlite:////nowhere/store.db?foo=Xy7", "Xy7"),
        ("mysql://fair@127.0.0.1:1/x?foo=Xy7", "Xy7"),
        ("mysql://fair@127.0.0.1:1/x?read_timeout=Xy7", "Xy7"),
        ("postgresql://fair@127.0.0.1:1/x?foo=Xy7", "Xy7"),
    ],
)
def test_end_a_command_by_a_key_that_no_driver_knows(url: str, secret: str) -> None:
    if not url.startswith("sqlite"):
        pytest.importorskip("pymysql" if url.startswith("mysql") else "psycopg")
    with pytest.raises(StoreError) as refused, Store.open(url):
        pass
    assert "\n" not in str(refused.value)
    assert "query" in str(refused.value) or "option" in str(refused.value)
    assert secret not in str(refused.value)


def test_bury_the_one_problem_that_matters_under_thousands(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(ORGANIZATION + "".join(f"k{i} = 1\n" for i in range(2000)))
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert len(caught.value.problems) == MOST_PROBLEMS + 1
    assert caught.value.problems[-1].endswith("and 1950 more problems")


def test_slow_the_search_for_the_line_of_a_mistake_by_a_long_list(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    accounts = ",\n".join(f'"a{i}"' for i in range(20_000))
    path.write_text(f'[[organization]]\nname = "x"\naccounts = [\n{accounts}]\nwrong = 1\n')
    began = time.process_time()
    with pytest.raises(ConfigError, match=r"c\.toml:20004: organization\[1\].wrong: unknown key"):
        load_config(path)
    assert time.process_time() - began < 30


# -- texts of all kinds, made up by chance

PIECES = st.text(st.sampled_from("0129-[],:.ndx/%\"'{}=#\n ²٣\u202e\0|e+"), max_size=40)
NUMBERS = st.sampled_from([b"nan", b"inf", b"-1", b"9" * 30, b"0x7", b"\xff", b"1e9", b""])
SWF_FIELDS = st.lists(
    st.one_of(st.integers(-2, 2**70).map(lambda n: str(n).encode()), NUMBERS), max_size=20
)


@given(PIECES)
def test_end_a_reader_of_slurms_words_by_an_error_that_nobody_expects(text: str) -> None:
    for read in (hosts, duration, amount):
        with suppress(UnreadableError):
            read("field", text)
    with suppress(ValueError):
        host_list(text)


@given(st.lists(PIECES, max_size=8))
@example(["]"])
def test_end_a_command_by_a_configuration_of_any_text(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    path = tmp_path_factory.mktemp("toml") / "c.toml"
    text = ORGANIZATION + "nodes = [" + "\n".join(lines)
    path.write_text(text, encoding="utf-8")
    right = tomllib.loads(ORGANIZATION + "nodes = []")
    with suppress(tomllib.TOMLDecodeError):
        if tomllib.loads(text) == right:  # as chance has it
            assert list(load_config(path).organizations[0].nodes) == []
            return
    with pytest.raises(ConfigError):
        load_config(path)


@given(st.lists(SWF_FIELDS, min_size=1, max_size=5))
def test_end_the_reader_of_logs_in_swf_by_any_fields(
    tmp_path_factory: pytest.TempPathFactory, lines: list[list[bytes]]
) -> None:
    log = tmp_path_factory.mktemp("swf") / "log.swf"
    log.write_bytes(SWF_LINE + b"\n".join(b" ".join(fields) for fields in lines))
    assert 7 in read_log(str(log)).job


@given(st.lists(st.lists(PIECES, min_size=8, max_size=10), min_size=1, max_size=5))
def test_end_the_reader_of_sacct_by_any_fields(
    tmp_path_factory: pytest.TempPathFactory, lines: list[list[str]]
) -> None:
    log = tmp_path_factory.mktemp("sacct") / "log"
    good = b"7|a|u|1|1|61|60|4|n1\n"
    text = "\n".join("|".join(fields).replace("\0", "") for fields in lines)
    log.write_bytes(SACCT_HEADER + good + text.encode())
    assert 7 in read_log(str(log)).job


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([0, 1, 60, 2**32 - 2, 2**32 - 1, float("nan"), float("inf"), 1e300]),
    PIECES,
    st.text(max_size=5),
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["set", "infinite", "number", "current", "type", "count"]), inner
        ),
    ),
    max_leaves=5,
)
JOB_FIELDS = {
    **dict.fromkeys(("job_id", "account", "user", "partition", "qos", "nodes"), JSON),
    "association": st.one_of(JSON, st.fixed_dictionaries({"account": JSON, "user": JSON})),
    "time": st.one_of(
        JSON,
        st.fixed_dictionaries(
            dict.fromkeys(("submission", "eligible", "start", "end", "elapsed", "limit"), JSON)
        ),
    ),
    "tres": st.one_of(JSON, st.fixed_dictionaries({"allocated": JSON})),
    "state": st.one_of(JSON, st.fixed_dictionaries({"current": JSON})),
}
JOBS = st.lists(
    st.one_of(JSON, st.fixed_dictionaries({}, optional=JOB_FIELDS)), min_size=1, max_size=5
)
GOOD_JOB = {
    "job_id": 7,
    "account": "a",
    "user": "u",
    "time": {"submission": 1, "eligible": 1, "start": 1, "end": 61, "elapsed": 60},
    "tres": {"allocated": [{"type": "cpu", "count": 4}]},
    "state": {"current": ["COMPLETED"]},
    "nodes": "n1",
}


@given(jobs=JOBS, indent=st.sampled_from([None, 1]))
def test_end_the_reader_of_json_by_any_values(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[object], indent: int | None
) -> None:
    log = tmp_path_factory.mktemp("json") / "log"
    log.write_text(json.dumps({"jobs": [GOOD_JOB, *jobs, GOOD_JOB]}, indent=indent))
    read = read_log(str(log))
    assert read.job.tolist().count(7) >= 2
    assert len(read.job) + sum(read.left_out.values()) == len(jobs) + 2
    assert all(0 < bad.number <= log.read_text().count("\n") + 1 for bad in read.malformed)
    assert all("\n" not in bad.reason and ": " in bad.reason for bad in read.malformed)


@pytest.mark.parametrize(
    ("job", "complaint"),
    [
        ('{"a": ' * 200_000, "log:2: its JSON cannot be read: a job's values are nested too deep"),
        ("[" * 200_000 + "]" * 200_000, "log:2: its JSON cannot be read: a job's values are nest"),
        ('{"job_id": 7\n"time": 1}', "log:3: its JSON cannot be read: Expecting ',' delimiter"),
        ('{"job_id": 7, "time": {"elapsed": 1}', "is cut short"),
        ('{"job_id": ' + "9" * 100_000 + "}]}", "log:2: job_id: '99999999"),
        ('{"job_id": "7"}]}', "log:2: job_id: '7' is not a whole number"),
        (
            '{"job_id": 7, "time": {"elapsed": 1e999}}]}',
            "log:2: elapsed: '1e999' is not a whole number",
        ),
        ('{"job_id": 7, "account": {"x": 1}}]}', "log:2: account: an object is not a string"),
        (
            '{"job_id": 7, "time": {"start": 1, "submission": 1, "elapsed": -5}, '
            '"state": {"current": "x"}}]}',
            "log:2: elapsed: '-5' is",
        ),
        ("7]}", "log:2: job: 7 is not an object"),
    ],
)  # fmt: skip
def test_end_a_command_by_forged_json(tmp_path: Path, job: str, complaint: str) -> None:
    log = tmp_path / "log"
    log.write_text('{"jobs": [\n' + job)
    result = CliRunner().invoke(main, ["replay", str(log), "--deal-users", "1"])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output
    assert complaint in result.stderr


@given(option=st.sampled_from(["--window", "--period"]), text=PIECES)
def test_end_a_command_by_an_option_of_any_text(
    tmp_path_factory: pytest.TempPathFactory, option: str, text: str
) -> None:
    missing = str(tmp_path_factory.getbasetemp() / "missing")
    result = CliRunner().invoke(main, ["audit", missing, "--deal-users", "2", f"{option}={text}"])
    assert result.exit_code == 2, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


FORMULA = "HYPERLINK(A1)"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        *((f"{begin}{FORMULA}", f"'{begin}{FORMULA}") for begin in "=+-@\uff1d"),
        *((f"{begin}={FORMULA}", f"{begin!a}={FORMULA}".replace("'", "")) for begin in "\t\r\n"),
    ],
)
def test_have_a_spreadsheet_calculate_what_a_name_says(
    tmp_path: Path, name: str, shown: str
) -> None:
    rows = tmp_path / "rows.csv"
    write_rows(rows, [{"policy": name, "value": -5.5, "count": 7}])
    jobs = tmp_path / "jobs.csv"
    workload = replace(workload_of_jobs([1], [Job(0, 0, 4)], 20), organizations=(name,))
    with whole_file(jobs) as stream:
        write_schedules(stream, workload, [run_policy(workload, "fcfs")])
    found = []
    for file in (rows, jobs):
        with file.open(newline="") as lines:
            found += list(csv.DictReader(lines))
    assert found[0] == {"policy": shown, "value": "-5.5", "count": "7"}
    assert found[1]["organization"] == found[1]["owner"] == shown
