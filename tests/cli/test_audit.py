"""`shapleyprio audit` on small logs written here, and on a real one where it is at hand."""

from __future__ import annotations

import json
import re
import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from shapleyprio.cli import main
from shapleyprio.cli.audit import command
from shapleyprio.common.wording import delay
from shapleyprio.store import Store
from tests.replay.traces import trace
from tests.store.examples import BEGIN, placed_run, watermark, work_after_end

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS / "examples"
AUDIT = (DOCS / "audit.md").read_text()
DEALT = ("log.swf", "--deal-users", "2")

ORGANIZATIONS = """
[[organization]]
name = "physics"
accounts = ["physics"]
nodes = ["n1"]

[[organization]]
name = "biology"
accounts = ["biology"]
nodes = ["n2"]
"""

HEADER = "JobIDRaw|Account|Submit|Start|End|ElapsedRaw|AllocCPUS|NodeList\n"
DAY = "2025-01-01T"
LENT = (
    f"1|biology|{DAY}00:00:00|{DAY}00:00:00|{DAY}10:00:00|36000|1|n1\n"
    f"2|biology|{DAY}00:00:00|{DAY}00:00:00|{DAY}10:00:00|36000|1|n2\n"
    f"3|physics|{DAY}00:00:00|{DAY}10:00:00|{DAY}12:00:00|7200|1|n1\n"
    f"4|biology|{DAY}14:00:00|{DAY}14:00:00|{DAY}14:01:00|60|1|n2\n"
)
"""Biology's jobs ran on both nodes for ten hours, and physics' job waited for its own."""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("organizations.toml").write_text(ORGANIZATIONS)
    Path("lent.sacct").write_text(HEADER + LENT)


def audit(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["audit", *arguments])


def lent(*arguments: str) -> Result:
    result = audit("lent.sacct", "--organizations", "organizations.toml", *arguments)
    assert result.exit_code == 0, result.output
    return result


def answer(*arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(lent(*arguments, "--json", "-").stdout)
    return answer


def write_swf(wait: int = 5, users: int = 2) -> None:
    Path("log.swf").write_text(
        "; MaxProcs: 20\n"
        + "".join(
            f"{job} {job} {wait} 9 2 -1 -1 -1 -1 -1 1 {job % users} 1 -1 1 -1 -1 -1\n"
            for job in range(40)
        )
    )


def rows(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()]


# what it shows


def test_the_verdict_names_who_was_served_late_and_who_would_have_left() -> None:
    lines = lent().stdout.splitlines()
    assert lines[2] == (
        "On average work came 1.8 h too early or too late, and physics came off worst: it was "
        "55 min late."
    )
    assert lines[4].startswith(
        "On paper 1 of 2 groups of organizations would have had more alone, with their own nodes "
        "only; in the fair schedule 0. Being alone looks better here than it would be: "
    )
    assert lines[4].endswith(
        "The strongest reason to part had physics: alone their work would have come 10 h earlier, "
        "in the fair schedule 10 h earlier without leaving."
    )


def test_a_union_stands_below_its_members() -> None:
    biology = 'name = "biology"\n'
    department = ORGANIZATIONS.replace(biology, biology + 'parent = "physics"\n')
    Path("organizations.toml").write_text(department + '[[organization]]\nname = "law"\n')
    (row,) = (row for row in rows(lent().stdout) if row[:3] == ["all", "of", "physics"])
    policies = answer()["policies"]
    recorded = policies[0]
    (union,) = recorded["unions"]
    assert union["parent"] == "physics"
    members = [one["drift"] for one in recorded["organizations"][:2]]
    assert union["drift"] == pytest.approx(sum(members))
    assert " ".join(row[3:]).startswith(delay(-union["drift"]))


def test_the_matrix_shows_processor_hours_on_each_others_nodes() -> None:
    output = rows(lent().stdout)
    begin = output.index(["jobs", "of", "physics", "biology", "together"])
    assert output[begin + 1 : begin + 4] == [
        ["physics", "2.00", "0", "2.00"],
        ["biology", "10.0", "10.0", "20.0"],
        ["together", "12.0", "10.0", "22.0"],
    ]


def test_contribution_against_use_is_reported_for_each_period() -> None:
    output = rows(lent("--period", "7h").stdout)
    begin = output.index(["from", "physics", "biology"])
    assert output[begin + 1 : begin + 4] == [
        ["2025-01-01", "00:00", "+7.00", "−7.00"],
        ["2025-01-01", "07:00", "+3.00", "−3.00"],
        ["2025-01-01", "14:00", "0", "0"],
    ]
    assert output[begin + 4] == ["in", "all", "+10.0", "−10.0"]


def test_json_shows_the_same_exactly() -> None:
    found = answer("--period", "7h")
    assert [one["policy"] for one in found["policies"]] == [
        *("recorded", "ref", "directcontr", "fairshare")
    ]
    physics, biology = found["policies"][0]["organizations"]
    assert physics["drift"] == pytest.approx(-36000 * 7200 / found["policies"][1]["p_tot"])
    assert biology["drift"] > 0
    assert found["carried"][1] == {
        "jobs_of": "biology",
        "processor_seconds": {"physics": 36000, "biology": 36001},
        "on_nobodys_nodes": 0,
    }
    assert [one["start"] for one in found["periods"]] == [0, 25200, 50400]
    assert found["periods"][0]["organizations"][0] == {
        "name": "physics",
        "used": 0,
        "contributed": 25200,
        "utility": 0,
        "contribution": 25200 * 25201 // 2,
    }
    recorded = found["stability"][0]
    assert recorded["strongest"]["members"] == ["physics"]
    assert recorded["strongest"]["gain"] == 7200 * 36000
    assert (found["reference"], found["orderings"]) == ("ref", None)


def test_jobs_on_nodes_of_nobody_have_a_column_of_their_own() -> None:
    guest = f"5|physics|{DAY}01:00:00|{DAY}01:00:00|{DAY}02:00:00|3600|1|n9\n"
    Path("lent.sacct").write_text(HEADER + LENT + guest)
    output = rows(lent().stdout)
    begin = output.index(["jobs", "of", "physics", "biology", "nobody", "together"])
    assert output[begin + 1] == ["physics", "2.00", "0", "1.00", "3.00"]


def test_half_of_a_split_organization_is_among_the_results() -> None:
    split = ORGANIZATIONS.replace('["n1"]', '["n1", "n2"]').replace('nodes = ["n2"]\n', "")
    Path("organizations.toml").write_text(split)
    rest = "".join(
        f"{1 + i}|physics|{DAY}00:00:00|{DAY}{i:02}:00:00|{DAY}{i + 1:02}:00:00|3600|1|n1\n"
        for i in range(22)
    )
    urgent = "".join(
        f"{100 + i}|biology|{DAY}{i:02}:30:00|{DAY}{i:02}:30:00|{DAY}{i:02}:40:00|600|1|n2\n"
        for i in range(20)
    )
    Path("lent.sacct").write_text(HEADER + rest + urgent)
    found = json.loads(lent("--json", "-").stdout)
    assert found["going_first"] == [
        {
            "name": "biology",
            "brings": 0,
            "uses": 20 * 600 / (22 * 3600 + 20 * 600),
            "came": 20,
            "went_first": 20,
        }
    ]


def test_without_nodes_the_matrix_is_left_out_with_the_reason() -> None:
    write_swf()
    result = audit(*DEALT)
    assert result.exit_code == 0, result.output
    assert "Who carried whom" not in result.stdout
    assert "Used, processor-hours" in result.stdout
    assert "The log does not say on whose nodes its jobs ran" in result.stdout
    found = json.loads(audit(*DEALT, "--json", "-").stdout)
    assert found["carried"] is None
    assert found["owners_unknown"]
    assert found["periods"][0]["organizations"][0]["contributed"] is None


def test_with_more_than_fourteen_organizations_it_says_that_it_sampled() -> None:
    write_swf(users=15)
    result = audit("log.swf", "--deal-users", "15")
    assert result.exit_code == 0, result.output
    assert "against rand, estimated from 15 orderings" in result.stdout
    assert "Coalitions were sampled from 15 random orderings" in result.stdout


def test_large_coalitions_are_named_by_who_is_missing() -> None:
    write_swf(wait=300, users=5)
    result = audit("log.swf", "--deal-users", "5", "--window", "0:400")
    assert " all but organization" in result.stdout


def test_tables_are_whole_however_narrow_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert "…" not in lent().stdout


def test_the_same_input_and_seed_give_the_same_bytes() -> None:
    written = []
    for _ in range(2):
        lent("--seed", "7", "--json", "out.json")
        found = json.loads(Path("out.json").read_text())
        for policy in found["policies"]:
            policy["seconds"] = 0
        written.append(json.dumps(found))
    assert written[0] == written[1]


def test_a_pool_in_the_store_is_audited_as_the_sum_of_its_clusters() -> None:
    url = "sqlite:///store.db"
    lender = {"c1": "physics", "c2": "biology"}
    with Store.open(url, create=True) as store:
        for cluster, owner in lender.items():
            with store.cluster(cluster).transaction() as rows_of:
                rows_of.ledger.save_watermark(watermark())
                # physics runs everywhere; at c2 on biology's node
                runs = [placed_run(7, end=BEGIN + 3600, owners=(owner,))]
                rows_of.runs.put(runs)
                rows_of.runs.save_work_after_end([work_after_end()], asked_until=BEGIN + 4000)
    whose = (url, "--organizations", "organizations.toml", "--window", "0:3660")
    pool = (*whose, "--cluster", "c1", "--cluster", "c2")
    found = json.loads(audit(*pool, "--json").stdout)
    assert found["clusters"] == ["c1", "c2"]
    assert found["carried"][0]["processor_seconds"] == {"physics": 16 * 3600, "biology": 16 * 3600}
    assert [(one["jobs"], one["processor_seconds"]) for one in found["after_end"]] == [(2, 120)]
    assert "the jobs of c1 and c2 were kept to their clusters" in audit(*pool).stdout

    one = json.loads(audit(*whose, "--cluster", "c2", "--json").stdout)
    assert one["carried"][0]["processor_seconds"] == {"physics": 0, "biology": 16 * 3600}
    failed = audit(*whose)
    assert failed.exit_code == 2
    assert "name one cluster, or those of a pool" in failed.stderr


def test_the_daemons_store_can_be_audited() -> None:
    url = "sqlite:///store.db"
    within = work_after_end(job_id=8, end=BEGIN + 3599, processor_seconds=480)
    later = replace(within, job_id=7, user="ada", end=BEGIN + 7200)
    with Store.open(url, create=True) as store, store.cluster("c").transaction() as rows_of:
        rows_of.ledger.save_watermark(watermark())
        rows_of.runs.save_work_after_end([within, later], asked_until=BEGIN + 9000)
        rows_of.runs.put(
            [
                placed_run(7, end=BEGIN + 7200, owners=("biology",), submit=BEGIN),
                placed_run(8, end=BEGIN + 3600, owners=("physics",), submit=BEGIN),
            ]
        )
    result = audit(url, "--organizations", "organizations.toml", "--window", "0:3600")
    assert result.exit_code == 0, result.output
    output = rows(result.stdout)
    begin = output.index(["jobs", "of", "physics", "biology", "together"])
    assert output[begin + 1] == ["physics", "16.0", "16.0", "32.0"]
    assert "Stable: no organization or group of them would have had more alone." in result.stdout
    begin = output.index(["Users", "of", "jobs", "that", "continued", "after", "their", "end"])
    assert output[begin + 2][:4] == ["eve", "physics", "1", "480"]
    assert "ada" not in result.stdout
    result = audit(url, "--organizations", "organizations.toml", "--window", "0:9000", "--json")
    assert [one["user"] for one in json.loads(result.stdout)["after_end"]] == ["ada", "eve"]


# what it refuses


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("name the owners of the jobs", ("log.swf",)),
        ("'0s' is not a duration", (*DEALT, "--period", "0s")),
        ("--backfill goes with --wide rigid", (*DEALT, "--wide", "expand", "--backfill", "easy")),
        ("there is no directory none", (*DEALT, "--json", "none/a.json")),
        ("periods of 1 s", (*DEALT, "--window", "0:20000", "--period", "1s")),
    ],
)
def test_contradictions_end_with_one_line(message: str, arguments: tuple[str, ...]) -> None:
    write_swf()
    result = audit(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert message in " ".join(result.stderr.split())


def test_a_log_without_starts_cannot_be_audited() -> None:
    write_swf(wait=-1)
    result = audit(*DEALT)
    assert result.exit_code == 2
    assert result.stderr == (
        "shapleyprio: the log does not say when jobs started, which an audit needs; "
        "`shapleyprio replay` does without\n"
    )


# what is documented


def test_the_audit_document_names_every_option_and_no_other() -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", AUDIT))
    options = {option for parameter in command.params for option in parameter.opts}
    assert named == options - {"log"}


def test_the_audit_document_names_every_key_that_is_written() -> None:
    found = answer()
    shared = json.loads(
        CliRunner()
        .invoke(main, ["replay", "lent.sacct", "--organizations", "organizations.toml", "--json=-"])
        .stdout
    )
    own = set(found) - set(shared)
    deeper = {*found["periods"][0]["organizations"][0], *found["stability"][0]} - {"name", "policy"}
    for key in {*own, *deeper, *found["stability"][0]["alone"][0]} - {"members"}:
        assert f"`{key}`" in AUDIT, key


def test_links_in_the_audit_document_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)[^)]*\)", AUDIT):
        assert (DOCS / target).exists(), target


def test_the_audit_prints_what_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    ((line, output),) = re.findall(r"^\$ shapleyprio (audit .*)\n([^`]*)", AUDIT, re.MULTILINE)
    arguments = shlex.split(line)
    for file in (trace(arguments[1]), *EXAMPLES.iterdir()):
        Path(file.name).symlink_to(file)
    result = CliRunner().invoke(main, arguments)
    printed = iter(rows(result.stdout))
    assert [line for line in rows(output) if line not in printed] == []  # in this order


# a real log


def test_a_condo_cluster() -> None:
    log = trace("xdmod-pozidriv.sacct.gz")
    organizations = str(EXAMPLES / "pozidriv.toml")
    result = audit(str(log), "--organizations", organizations, "--json", "-")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    recorded = found["policies"][0]
    names = [one["name"] for one in found["organizations"]]
    matrix = {row["jobs_of"]: row for row in found["carried"]}
    for u, name in enumerate(names):
        used = sum(matrix[name]["processor_seconds"].values()) + matrix[name]["on_nobodys_nodes"]
        assert used == recorded["organizations"][u]["parts"]
        assert used == sum(one["organizations"][u]["used"] for one in found["periods"])
    last = found["periods"][-1]["organizations"]
    assert [one["utility"] for one in last] == [o["utility"] for o in recorded["organizations"]]
    assert [str(o["contribution"]) for o in last] == [
        one["contribution"] for one in recorded["organizations"]
    ]
    assert found["stability"][0]["coalitions"] == 62


def test_a_window_beyond_the_end_is_refused_in_the_words_in_which_it_was_typed() -> None:
    result = audit("lent.sacct", "--organizations", "organizations.toml", "--window", "900d:1d")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "was released from 2027-06-20 00:00 to 2027-06-21 00:00 UTC" in line
    assert "the log's jobs were released from 2025-01-01 00:00 to 2025-01-01 14:00 UTC" in line
    write_swf()
    result = audit(*DEALT, "--window", "900d:1d")
    assert "was released in 24 h from second 77,760,000 on" in result.stderr
    assert "released in 40 s from second 0 on; choose another --window" in result.stderr


def test_times_are_those_of_the_local_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Warsaw")
    time.tzset()
    try:
        output = lent("--period", "7h").stdout
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "released from 2025-01-01 01:00 to 2025-01-01 15:00 CET" in output
    assert "2025-01-01 08:00" in output
