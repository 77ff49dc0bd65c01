"""What `shapleyprio explain` says, and to whom."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from shapleyprio.cli import main
from shapleyprio.cli.explain import command
from shapleyprio.common.wording import MISSING
from shapleyprio.daemon.answering.explain_ranks import UnionRank
from shapleyprio.daemon.forecasting.messages import LimitCost
from shapleyprio.fairness.rule import Ranking, Situation
from shapleyprio.fairness.rules import RULES
from shapleyprio.fairness.worth import Trajectory
from tests.daemon.consortium import FIRST, LAST, NAME
from tests.leases import take_away

if TYPE_CHECKING:
    from click.testing import Result

    from tests.cli.conftest import CommandLine

DOCUMENT = (Path(__file__).parents[2] / "docs" / "explain.md").read_text(encoding="utf-8")


@pytest.fixture
def queue(shell: CommandLine) -> CommandLine:
    """Biology uses the whole cluster; 2 of physics, 3 and 4 of biology and 5 of guests wait."""
    shell.slurm.submit("biology", nice=3, processing_time=9)
    shell.slurm.submit("biology", user="ann", processing_time=9)
    shell.slurm.submit("guest", processing_time=9)
    shell.slurm.wait(9990)
    assert shell.run("daemon", "--once").exit_code == 0
    return shell


def text(shell: CommandLine, *arguments: str) -> str:
    result = shell.run("explain", *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def facts(shell: CommandLine, *arguments: str) -> Any:
    return json.loads(text(shell, *arguments, "--json"))


def refused(result: Result, code: int, line: str) -> None:
    assert (result.exit_code, result.stdout) == (code, "")
    assert re.fullmatch(f"shapleyprio: {line}[^\n]*\n", result.stderr)


# -- a job


def test_the_owed_organizations_user_reads_that_it_is_owed(queue: CommandLine) -> None:
    output = text(queue, "2")
    assert output.startswith("Job 2 of account physics waits with priority ")
    assert "physics is owed 56 min, measured by what it contributed" in output
    assert f"That is rank 1 of 2 and gives its jobs {FIRST} points." in output
    assert "No jobs of organizations with a better rank are ahead.\n" in output
    assert "it would be rank 1 of 2, because its jobs used 0 hours of each processor" in output
    assert "no jobs of other organizations would be ahead.\n" in output
    assert "No job has a higher priority; Slurm says it waits for Priority." in output
    assert "Its nice of 3 takes as many points away from it." in output


def test_a_job_that_slurm_has_not_looked_at_has_no_reason_yet(queue: CommandLine) -> None:
    queue.slurm._engine.waiting.jobs[2].reason = "None"
    assert "a higher priority; Slurm has not said yet why it waits." in text(queue, "2")


def test_the_owing_organizations_user_reads_that_it_owes(queue: CommandLine) -> None:
    output = text(queue, "3")
    assert "biology owes 56 min, measured by what it contributed" in output
    assert "counts, up to an age of 30 days" in output
    assert f"That is rank 2 of 2 and gives its jobs {LAST} points." in output
    assert "1 job of organizations with a better rank is ahead (physics 1)." in output
    assert "used 8.33 hours of each processor it owns in the last 30 days: 1 job of other" in output
    assert "1 job of biology itself is ahead." in output
    assert "The order of organizations is strict" in output
    assert "In all 2 jobs have a higher priority" in output


@pytest.mark.parametrize(
    ("horizon", "age", "usage"),
    [
        ("12h", "the more it counts, up to an age of 12 hours.", "it owns in the last 12 hours:"),
        ("unlimited", "the earlier work was done, the more it counts.", "it owns so far:"),
    ],
)
def test_the_horizon_is_reported(shell: CommandLine, horizon: str, age: str, usage: str) -> None:
    shell.configure(fairness={"horizon": horizon})
    shell.run("daemon", "--once")
    output = text(shell, "2")
    assert age in output
    assert usage in output


def test_nobodys_user_reads_that_there_are_no_points(queue: CommandLine) -> None:
    output = text(queue, "5")
    assert "No organization claims account guest, so such jobs get no points. " in output
    assert facts(queue, "5")["outside"] == "account_unclaimed"
    assert "strict" not in output
    assert "In all 3 jobs have a higher priority" in output


@pytest.mark.parametrize(
    ("key", "name", "outside", "said"),
    [
        ("leave_out_accounts", "biology", "account_left_out", "Account biology is left out"),
        ("leave_out_partitions", "pa", "partition_left_out", "The partition is left out"),
    ],
)
def test_a_user_outside_reads_which_of_the_reasons_holds_and_what_follows(
    queue: CommandLine, key: str, name: str, outside: str, said: str
) -> None:
    physics = {"name": "physics", "accounts": ["physics"], "nodes": ["a[1-2]"]}
    queue.write(queue.file, physics, fairness={key: [name]})
    job = queue.slurm.submit("biology", partition="pa", processing_time=9)
    queue.slurm.wait(10)
    queue.run("daemon", "--once")
    for words in ([str(job)], ["--user", queue.slurm.job(job).user]):
        output = text(queue, *words)
        assert f"{said} (fairness.{key}): " in output
        assert "neither for nor against an organization, and get no points. " in output
        assert "or the partition" not in output
    assert facts(queue, str(job))["outside"] == outside
    queue.write(queue.file, physics, fairness={key: [name]}, push={"channel": "association"})
    if outside == "partition_left_out":
        assert "and keep the points of their account." in text(queue, str(job))


def test_a_held_job(queue: CommandLine) -> None:
    queue.slurm.hold(3)
    assert "It is held: its priority is 0 until it is released." in text(queue, "3")


def test_with_influence_the_others_wait_but_need_not_be_ahead(queue: CommandLine) -> None:
    queue.configure(push={"influence": 500})
    output = text(queue, "3")
    assert "1 job of organizations with a better rank waits (physics 1)." in output
    assert "weighs 500 points" in output
    assert facts(queue, "3")["influence"] == 500


def test_json_has_the_same_facts_and_the_text(queue: CommandLine) -> None:
    output = facts(queue, "3")
    assert output["sentences"] == text(queue, "3").splitlines()
    assert output["balance_per_part"] == pytest.approx(-10_001 / 2 * 8 / 12)
    assert (output["before"], output["own_ahead"], output["ahead"]) == ({"physics": 1}, 1, 2)
    assert output["fair_share"]["before"] == {"physics": 1}
    assert output["influence"] == "strict"


class ByName:
    """The last of the configuration comes first."""

    name = "by_name"
    criterion = "the reverse order of the configuration"
    dynamics = "No rank ever changes."
    estimates = False
    by_balance = False

    def rank(self, situation: Situation) -> Ranking:
        names = [item.name for item in situation.organizations]
        return Ranking(
            rule=self.name,
            trajectories={name: Trajectory(n, 0, 0) for n, name in enumerate(names)},
            contributions=dict.fromkeys(names, 0),
            reasons={name: f"number {n}" for n, name in enumerate(names)},
        )


def test_another_rule_is_explained_in_its_own_words(
    monkeypatch: pytest.MonkeyPatch, queue: CommandLine
) -> None:
    monkeypatch.setitem(RULES, ByName.name, ByName())
    queue.configure(fairness={"rule": "by_name"})
    assert queue.run("daemon", "--once").exit_code == 0
    output = text(queue, "3")
    assert "the rule by_name gave biology rank 1 of 2 (number 1).\n" in output
    assert f"That gives its jobs {FIRST} points.\n" in output
    assert "\nNo rank ever changes.\n" in output
    assert "owe" not in output
    assert "nodes work for others" not in output
    assert (facts(queue, "3")["rule"], facts(queue, "3")["score"]) == ("by_name", 1)
    assert facts(queue, "3")["balance"] < 0
    table = queue.run("status").stdout
    assert "score" in table.splitlines()[1]
    assert "score" in queue.run("history").stdout


# -- equal priorities


def test_jobs_of_the_same_priority_are_counted_in_slurms_order(queue: CommandLine) -> None:
    queue.slurm.submit("biology", processing_time=9)
    queue.slurm.submit("biology", processing_time=9)
    assert queue.run("daemon", "--once").exit_code == 0
    output = text(queue, "7")  # after 4 and 6; 3 has a nice of its own
    assert (
        "In all 1 job has a higher priority, and 2 jobs with the same one are ahead, since Slurm "
        "then takes first what was submitted first; Slurm says" in output
    )
    assert "2 jobs of biology itself are ahead." in output
    found = facts(queue, "7")
    assert (found["ahead"], found["tied_ahead"], found["own_ahead"]) == (3, 2, 2)
    output = text(queue, "--account", "biology")
    assert "Next in line is job 4 with priority 100000. 1 job has a higher one." in output


# -- what does not hold any more


def test_after_a_rollback_it_says_so_and_what_stands_in_slurm(queue: CommandLine) -> None:
    assert "But in Slurm" not in text(queue, "2")
    queue.slurm.wait(60)
    assert queue.run("rollback").exit_code == 0
    result = queue.run("explain", "2")
    assert result.exit_code == 1
    first, second, *_ = result.stdout.splitlines()
    assert re.fullmatch(r"No daemon has run since [-0-9: ]+ \([0-9]+ s ago\)\.", first)
    assert second.startswith("Priorities were rolled back at ")
    assert f"But in Slurm its site factor is 0 now, not {FIRST}.\n" in result.stdout
    found = json.loads(queue.run("explain", "2", "--json").stdout)
    assert (found["stale"], found["rolled_back_at"]) == (True, queue.slurm.now)
    assert found["nobody_steers_since"] is not None
    status = queue.run("status")
    assert status.exit_code == 1
    assert second in status.stdout
    assert json.loads(queue.run("status", "--json").stdout)["stale"]


def test_an_old_cycle_is_called_old(queue: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "shapleyprio.daemon.answering.freshness.patience_of", lambda _poll_seconds: -1
    )
    for words in ("status", "explain 2", "explain --user ann"):
        result = queue.run(*words.split())
        assert result.exit_code == 1
        assert re.search(r"No daemon has run since .* ago\)\.\n", result.stdout)
    with queue.store() as store, store.cluster(NAME).transaction() as transaction:
        take_away(transaction)
    assert "No cycle has succeeded since " in queue.run("explain", "2").stdout


def test_a_new_job_has_not_yet_what_its_rank_gives(queue: CommandLine) -> None:
    queue.slurm.submit("physics", processing_time=9)
    assert f"But in Slurm its site factor is 0 now, not {FIRST}." in text(queue, "6")


# -- all jobs of a user or an account


def test_an_accounts_jobs(queue: CommandLine) -> None:
    output = text(queue, "--account", "biology")
    assert output.startswith("Account biology has 2 jobs waiting and 1 running.\n")
    assert "Waiting longest is job 3, submitted at " in output
    assert "Next in line is job 4 with priority 100000. 1 job has a higher one." in output
    assert "1 job of organizations with a better rank is ahead (physics 1)." in output
    assert output == text(queue, "-A", "biology")


def test_an_account_all_of_whose_jobs_are_held(queue: CommandLine) -> None:
    queue.slurm.hold(2)
    output = text(queue, "--account", "physics")
    assert output.startswith("Account physics has 1 job waiting, 1 of them held, and 0 running.\n")
    assert "Next in line" not in output


def test_a_users_jobs_of_every_organization(queue: CommandLine) -> None:
    output = text(queue, "--user", "user")
    starts = re.findall("^User user has .*", output, flags=re.MULTILINE)
    assert starts == [
        "User user has 1 job of account physics waiting and 0 running.",
        "User user has 1 job of account biology waiting and 1 running.",
        "User user has 1 job of account guest waiting and 0 running.",
    ]
    assert output == text(queue, "-u", "user")
    output = facts(queue, "--user", "ann")
    assert (output["user"], len(output["organizations"])) == ("ann", 1)
    assert output["sentences"] == text(queue, "--user", "ann").splitlines()


# -- what is missing


def test_without_slurm_the_store_is_shown_and_that_it_is(queue: CommandLine) -> None:
    queue.slurm.take_down("slurmctld")
    away = "Slurm does not show its queue: slurmctld does not answer."
    for arguments in (["3"], ["--user", "user"], ["--account", "biology"]):
        output = text(queue, *arguments)
        assert output.startswith(away)
        assert f"That is rank 2 of 2 and gives its jobs {LAST} points." in output
        assert facts(queue, *arguments)["slurm_away"] == "slurmctld does not answer"
    assert "It is not known whether job 3 is still pending" in text(queue, "3")
    assert "had 1 job of account biology running; its pending jobs are not" in text(
        queue, "-u", "user"
    )


def test_without_slurm_and_unknown_to_the_store(queue: CommandLine) -> None:
    queue.slurm.take_down("slurmctld")
    for arguments in (["99"], ["--user", "eve"]):
        refused(queue.run("explain", *arguments), 3, "slurmctld does not answer")


def test_the_daemon_runs_and_no_cycle_has_succeeded(shell: CommandLine) -> None:
    shell.run("db", "upgrade")
    with shell.store() as store, store.cluster(NAME).transaction() as transaction:
        take_away(transaction)
    assert "No cycle has succeeded yet, so ranks are not known." in text(shell, "2")


def test_an_unknown_user_or_account(queue: CommandLine) -> None:
    refused(
        queue.run("explain", "--user", "eve"), 2, "no job of user eve is pending or running; see"
    )
    refused(queue.run("explain", "-A", "physic"), 2, "no account physic .* did you mean physics")


@pytest.mark.parametrize(
    "arguments", ["", "2 --user ann", "2 -A physics", "--user ann --account physics"]
)
def test_one_question_at_a_time(arguments: str) -> None:
    result = CliRunner().invoke(main, ["explain", *arguments.split()])
    assert result.exit_code == 2
    assert "Usage:" in result.stderr
    assert "give one of JOBID, --user, --account and --what-if" in result.stderr


# -- a job that nobody has submitted

WHAT_IF = ("--what-if", "--time", "4:00:00", "--processors", "16", "--partition", "all")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("--what-if",),
            "--what-if needs --time, --processors and --partition, and takes --account",
        ),
        ((*WHAT_IF, "3"), "--what-if needs --time, --processors and --partition"),
        ((*WHAT_IF, "--user", "ann"), "--what-if needs"),
        (("3", "--time", "4"), "--time, --processors and --partition go with --what-if"),
        ((*WHAT_IF, "--time", "soon"), "'soon' is not a time limit; write minutes or"),
        ((*WHAT_IF, "--time", "0"), "a time limit of 1 s to 366 days"),
        ((*WHAT_IF, "--time", "9999-0"), "a time limit of 1 s to 366 days"),
        ((*WHAT_IF, "--time", "9" * 300), "what_if is longer than 255 characters"),
        ((*WHAT_IF, "--processors", "0"), "0 is not in the range x>=1"),
        ((*WHAT_IF, "--processors", "9999999999"), "1 to 2147483647 processors"),
        ((*WHAT_IF, "--partition", "all,pa"), "one partition, and at most one account"),
        ((*WHAT_IF, "--account", "a,b"), "one partition, and at most one account"),
        ((*WHAT_IF, "--account", "a" * 300), "what_if is longer than 255 characters"),
    ],
)
def test_a_hostile_question_about_a_job_to_come_is_refused_in_a_line(
    queue: CommandLine, arguments: tuple[str, ...], line: str
) -> None:
    result = queue.run("explain", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    (error,) = [said for said in result.stderr.splitlines() if said.startswith("Error: ")]
    assert line in error


def test_a_job_to_come_is_asked_of_the_daemon(queue: CommandLine) -> None:
    path = queue.folder / "socket"
    queue.configure(service={"socket": str(path)})
    refused(queue.run("explain", *WHAT_IF), 3, f"the daemon at unix:{path} does not answer")
    queue.configure(service={"socket": "off"})
    refused(queue.run("explain", *WHAT_IF), 2, "service.socket: is off")


# -- the document


def test_the_document_names_every_option_and_no_other() -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*|(?<=`)-[a-zA-Z](?=`)", DOCUMENT))
    assert named == {
        option for parameter in command.params for option in parameter.opts if "-" in option
    }


def test_the_document_shows_what_is_printed(
    queue: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = re.findall(
        r"^```console\n\$ shapleyprio explain 3\n(.*?)^```$", DOCUMENT, re.M | re.S
    )
    times = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
    assert times.sub("then", block) == times.sub("then", text(queue, "3"))


def test_the_document_names_every_key_of_the_json(queue: CommandLine) -> None:
    section = DOCUMENT.split("## As JSON")[1]
    named = set(re.findall(r"`(\w+)`", section))
    of_job, of_user = facts(queue, "3"), facts(queue, "--user", "ann")
    written = {
        *of_job,
        *of_job["fair_share"],
        *of_job["start"],
        *LimitCost.__dataclass_fields__,
        *UnionRank.__dataclass_fields__,
        *of_user,
        *of_user["organizations"][0],
        "account",
    }
    assert named == written | {"pools", "strict"}


def test_what_an_organization_is_worth_to_the_others_is_said(queue: CommandLine) -> None:
    queue.configure(fairness={"rule": "shapley"})
    assert queue.run("daemon", "--once").exit_code == 0
    output = text(queue, "2")
    assert re.search(
        r"Without physics, its nodes and its jobs, the others' work since [-0-9: ]+ would have "
        r"been done [0-9.]+ (s|min|h|d) later on average\.\n",
        output,
    )
    assert re.search(
        r"What physics is worth to the others was estimated at .*; .* as of .* it is owed .*,",
        output,
    )
    assert f"That is rank 1 of 2 and gives its jobs {FIRST} points.\n" in output
    output = text(queue, "3")
    assert re.search(
        r"Alone on its own nodes, biology's work since .* later on average\.\n", output
    )
    assert "An organization's rank rises as others gain by its nodes" in output
    found = facts(queue, "2")
    assert (found["rule"], found["estimated_at"]) == ("shapley", found["t"])
    assert found["value"]["others_sooner_seconds"] > 0
    assert found["value"]["own_sooner_seconds"] is None
    work = found["waiting_work"]
    assert (work["jobs"], [row["user"] for row in work["users"]]) == (1, ["user"])
    assert work["processor_seconds"] > 0
    status = queue.run("status")
    assert re.search(
        r"rule shapley: contributions estimated 0 s before, from 4 coalitions, standard error at "
        r"most 0 s",
        status.stdout.replace("\n", " "),
    ), status.stdout
    shown = json.loads(queue.run("status", "--json").stdout)
    assert (shown["rule"], shown["estimated_at"], shown["coalitions"]) == ("shapley", shown["t"], 4)
    assert {row["organization"]: row["value"] for row in shown["organizations"]}[
        "physics"
    ] == found["value"]


def test_without_an_estimate_directcontr_is_explained_and_status_says_why(
    queue: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "shapleyprio.daemon.steering.composition.WORKER", ("/bin/false",), raising=True
    )
    queue.configure(fairness={"rule": "shapley"})
    assert queue.run("daemon", "--once").exit_code == 0
    output = text(queue, "2")
    assert "The rule shapley has no estimate to rely on, so directcontr ranks until" in output
    assert "physics is owed 56 min" in output
    output = queue.run("status").stdout
    assert "The rule shapley has no estimate yet. Until it has one, directcontr ranks" in output
    (line,) = re.findall(r"^physics .*", output, re.MULTILINE)
    assert re.split("  +", line)[2:6] == [MISSING, "0.0%", MISSING, MISSING]
    assert facts(queue, "2")["value"] is None
