"""An admin's month on a real Slurm: what goes on and wrong in it, and what each surface says."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from shapleyprio.cli.common import user
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.store import PushState
from tests.end_to_end import forked
from tests.end_to_end.consortium import (
    ALL_CPUS,
    BASE_PRIORITY,
    COMMAND_SECONDS,
    MEMBERS,
    Consortium,
    RunningDaemon,
    clear,
)

pytestmark = pytest.mark.real_slurm

SPEED = 1
DIRECTORS = 9_000_000
"""A priority that an operator sets by hand."""

LIFT = 300_000
"""Points by which an operator lifts a job above others of its organization."""

STEP_SECONDS = 1200
"""By which the controller's clock is wrong for a while."""

ACCEPTED = rf"{user()} accepted the controller's clock, \d+ min behind the ledger"

Answer = dict[str, Any]


@pytest.fixture
def month(consortium: Consortium) -> Iterator[Month]:
    """A guest's job on the whole cluster, and a partition for tests; in the end as it was."""
    cluster = consortium.cluster
    before = cluster.paths.slurm_conf.read_text()
    month = Month(consortium, f"{before}PartitionName=debug Nodes=a1 State=UP MaxTime=INFINITE\n")
    try:
        yield month
    finally:
        consortium.close()
        clear(cluster)
        cluster.paths.slurm_conf.write_text(before)
        cluster.run("scontrol", "reconfigure")


class Month:
    """The consortium as its admin has it: alpha and beta, and gamma, which joins.

    Args:
        consortium: whose store is new.
        slurm_conf: with the partition for tests.
    """

    def __init__(self, consortium: Consortium, slurm_conf: str) -> None:
        self.consortium = consortium
        self.cluster: PrivateSlurm = consortium.cluster
        self.reconfigure(slurm_conf)
        self.guests = consortium.occupy()
        self.jobs = {
            name: [self.cluster.submit(name, 1, processors=ALL_CPUS) for _ in range(3)]
            for name in MEMBERS
        }
        self.exempt = self.cluster.submit("alpha", 1, partition="debug")
        self.configure("alpha", "beta", poll_seconds=3600)
        self.daemon = self.start(cycles=1)

    # -- what the admin does

    def reconfigure(self, slurm_conf: str) -> None:
        """Changes Slurm's configuration, whole at any moment: the daemon's commands read it too."""
        conf = self.cluster.paths.slurm_conf
        new = conf.with_suffix(".new")
        new.write_text(slurm_conf)
        new.replace(conf)
        self.cluster.run("scontrol", "reconfigure")

    def configure(
        self, *organizations: str, misspelt: tuple[str, str] = ("", ""), poll_seconds: int = 1
    ) -> None:
        """Writes our configuration, with a mistake if one is given."""
        self.consortium.configure(organizations=organizations, poll_seconds=poll_seconds)
        text = self.consortium.config_file.read_text().replace(*misspelt)
        text = text.replace("[fairness]", '[fairness]\nleave_out_partitions = ["debug"]')
        self.consortium.config_file.write_text(text)

    def reload(self, *organizations: str, misspelt: tuple[str, str] = ("", "")) -> None:
        """Has the daemon read another configuration."""
        self.configure(*organizations, misspelt=misspelt)
        self.daemon.signal(signal.SIGHUP)

    def start(self, cycles: int = 2) -> RunningDaemon:
        self.daemon = self.consortium.start_daemon("--take-over")
        self.consortium.await_cycles(cycles)
        return self.daemon

    def update(self, job: int, what: str) -> None:
        """Sets something by hand, as an operator."""
        self.cluster.run("scontrol", "update", f"JobId={job}", what)

    # -- what the surfaces say

    def until(self, predicate: Callable[[], bool], what: str) -> None:
        self.consortium.until(predicate, what=what)

    def status(self) -> Answer:
        return self._answer("status")

    def explained(self, job: int) -> tuple[Answer, str]:
        """Returns what is said of a job to programs and to people."""
        return self._answer("explain", str(job)), self.consortium.run("explain", str(job)).stdout

    def _answer(self, *words: str) -> Answer:
        done = self.consortium.run(*words, "--json")
        assert done.returncode in {0, 1}, done.stderr
        found: Answer = json.loads(done.stdout)
        return found

    def page(self) -> Answer:
        """Returns what the status page shows, which may be two seconds old, of the last cycle."""
        number = self.consortium.cycles()[-1].number
        while (found := self.consortium.page())["last_cycle"]["number"] < number:
            self.consortium.wait(0.2)
        return found

    def order(self) -> list[int]:
        """Returns the jobs of all, the one with the highest priority first."""
        waiting = self.consortium.waiting()
        ours = [job for jobs in self.jobs.values() for job in jobs if job in waiting]
        return sorted(ours, key=lambda job: (-waiting[job].priority, job))

    def metric(self, name: str, **labels: str) -> float | None:
        """Returns a value that Prometheus would read; None if there is none."""
        wanted = "".join(f'(?=.*{label}="{re.escape(value)}")' for label, value in labels.items())
        found = re.findall(
            rf"^shapleyprio_{name}{{{wanted}.*}} (\S+)$", self.consortium.metrics(), re.MULTILINE
        )
        return float(found[0]) if found else None

    def factors(self, *names: str) -> dict[str, set[int | None]]:
        """Organization -> site factors of its jobs that wait."""
        waiting = self.consortium.waiting()
        return {
            name: {waiting[job].site_factor for job in self.jobs[name] if job in waiting}
            for name in names
        }

    def has_points(self, *names: str) -> bool:
        points = self.consortium.points()
        return self.factors(*names) == {name: {points[name]} for name in names}


def test_an_admins_month(month: Month) -> None:
    _poll_more_often(month)
    _leave_a_partition_out(month)
    _pause(month)
    _leave_alone_what_the_director_sets(month)
    _put_jobs_first(month)
    _let_a_member_join(month)
    _move_a_node(month)
    _lose_accounting(month)
    _accept_the_clock(month)
    _start_what_goes_first(month)
    _tell_what_changed(month)
    _report(month)


def _poll_more_often(month: Month) -> None:
    """One cycle an hour was too few: the reload runs one at once, and the next a second later."""
    assert month.consortium.good_cycles() == 1
    month.reload("alpha", "beta")
    month.consortium.await_cycles(2)


def _leave_a_partition_out(month: Month) -> None:
    """Whose jobs have no points is told why, of three reasons."""
    month.until(lambda: month.has_points("alpha", "beta"), "the first points")
    found, said = month.explained(month.exempt)
    assert found["outside"] == "partition_left_out"
    assert "The partition is left out (fairness.leave_out_partitions)" in said
    assert "and get no points." in said
    found, said = month.explained(month.jobs["gamma"][0])
    assert found["outside"] == "account_unclaimed"
    assert "No organization claims account gamma" in said
    waiting = month.consortium.waiting()
    assert {waiting[job].site_factor for job in (month.exempt, *month.jobs["gamma"])} == {0}
    assert {row["organization"]: row["pending"] for row in month.status()["organizations"]} == {
        "alpha": 3,
        "beta": 3,
    }
    assert month.metric("organization_pending_jobs", organization="alpha") == 3


def _pause(month: Month) -> None:
    """Priorities are as found until somebody says so, whatever is killed meanwhile."""
    pause = ("pause", "--reason", "the queue looks odd")
    assert "are put back as they were found" in month.consortium.succeed(*pause)
    again = month.consortium.run(*pause)
    assert (again.returncode, "already paused since" in again.stderr) == (2, True)
    nothing = {"alpha": {0}, "beta": {0}}
    month.until(lambda: month.factors("alpha", "beta") == nothing, "what was found to be back")
    month.daemon.kill()
    new = month.cluster.submit("alpha", 1, processors=ALL_CPUS)
    month.jobs["alpha"].append(new)
    month.start()
    assert month.factors("alpha", "beta") == nothing
    said = f"Steering is paused since .* by {user()}: the queue looks odd."
    found, told = month.explained(new)
    for text in (month.consortium.succeed("status"), told):
        assert re.search(said, text)
    for answer in (month.status(), found, month.page()):
        assert (answer["pause"]["user"], answer["pause"]["keep"]) == (user(), False)
    assert (month.metric("pause_seconds") or 0) > 0
    month.consortium.succeed("resume")
    month.until(lambda: month.has_points("alpha", "beta"), "points after the pause")
    month.until(lambda: month.metric("pause_seconds") == 0, "the metrics of that cycle")
    assert month.status()["pause"] is None
    assert "paused" not in month.explained(new)[1]


def _leave_alone_what_the_director_sets(month: Month) -> None:
    """What somebody sets by hand is told, and is ours again when it is undone."""
    fixed, factor, nice = month.jobs["beta"]
    points = month.consortium.points()["beta"]
    month.update(factor, f"SiteFactor={points + LIFT}")
    month.cluster.run("scontrol", "top", str(nice))  # the others' nice pays for it
    month.update(fixed, f"Priority={DIRECTORS}")
    month.consortium.await_cycles(3)
    waiting = month.consortium.waiting()
    assert (waiting[fixed].priority, waiting[fixed].is_fixed) == (DIRECTORS, True)
    assert waiting[factor].site_factor == points + LIFT
    assert (waiting[nice].site_factor, waiting[nice].nice) == (points, -LIFT)
    assert waiting[nice].priority == BASE_PRIORITY + points + LIFT > waiting[factor].priority
    found = {"priority": 1, "site_factor": 1, "nice": 1}
    assert month.status()["by_hand"] == month.page()["by_hand"] == found
    assert {kind: month.metric("foreign_priorities", of=kind) for kind in found} == found
    text = month.consortium.succeed("status")
    assert "set by hand and left as it is: priority itself at 1 job" in text
    for job, said in (
        (fixed, f"Its priority itself was set to {DIRECTORS} by hand, and is left as it is."),
        (factor, f"Its site factor was set to {points + LIFT} by hand, and is left as it is."),
        (nice, f"Its nice was set to {-LIFT} by hand, and is left as it is."),
    ):
        assert said in month.explained(job)[1]
    assert "by hand" not in month.explained(month.jobs["alpha"][0])[1]
    refused = month.consortium.run("first", str(fixed), "--reason", "a deadline")
    assert refused.returncode == 2
    assert "by hand, so it is left alone" in refused.stderr
    month.cluster.run("scontrol", "hold", str(fixed))
    month.cluster.run("scontrol", "release", str(fixed))
    month.update(factor, "SiteFactor=0")
    for job in (fixed, factor, nice):
        month.update(job, "Nice=0")
    month.until(lambda: month.has_points("beta"), "points where nobody set anything any more")
    month.consortium.await_cycles()
    assert month.status()["by_hand"] == {}
    assert {push.state for push in month.consortium.pushes()} == {PushState.APPLIED}


def _put_jobs_first(month: Month) -> None:
    """One for a while, and one until it starts."""
    undone, first = month.jobs["beta"][1:]
    month.consortium.succeed("first", str(undone), "--reason", "an exam")
    own_first = [*month.jobs["alpha"], undone]
    month.until(lambda: month.order()[: len(own_first)] == own_first, "its organization's first")
    month.consortium.succeed("first", str(undone), "--undo")
    month.until(lambda: month.has_points("beta"), "the points that it had")
    order = ("first", str(first), "--before-all", "--reason", "review on Friday")
    assert f"job {first} goes before all others" in month.consortium.succeed(*order)
    month.until(lambda: month.order()[0] == first, "the job to be the first")
    month.consortium.await_cycles(1)
    said = f"goes before all others since .*, ordered by {user()}: review on Friday."
    found, told = month.explained(first)
    assert found["exception"]["reason"] == "review on Friday"
    assert re.search(f"It {said}", told)
    assert re.search(f"Job {first} {said}", month.consortium.succeed("status"))
    found, told = month.explained(month.jobs["alpha"][0])
    assert found["put_ahead"] == 1
    assert "1 job goes first by exceptions" in told
    for answer in (month.status(), month.page()):
        assert [(row["job"], row["before_all"]) for row in answer["exceptions"]] == [
            (str(first), True)
        ]
    assert month.metric("jobs_put_first") == 1


def _let_a_member_join(month: Month) -> None:
    """By a reload with a misspelt account, one that is refused, and a good one."""
    month.reload(*MEMBERS, misspelt=('accounts = ["gamma"]', 'accounts = ["gama"]'))
    month.until(lambda: "Slurm has no account gama" in month.daemon.log(), "the warning")
    assert re.search("Slurm has no account gama.*did_you_mean=gamma", month.daemon.log())
    done = month.consortium.run("check")
    assert done.returncode == 3
    meant = "error: organization gamma: Slurm has no account gama; did you mean 'gamma'?"
    assert meant in done.stdout
    assert month.explained(month.jobs["gamma"][0])[0]["outside"] == "account_unclaimed"
    month.reload(*MEMBERS, misspelt=("influence =", "influense ="))
    month.until(lambda: "is refused" in month.daemon.log(), "the refusal")
    assert "did you mean 'influence'?" in month.daemon.log()
    assert month.consortium.run("check").returncode == 2
    month.reload(*MEMBERS)
    month.until(lambda: month.has_points("gamma"), "the points of the new member")
    found, said = month.explained(month.jobs["gamma"][0])
    assert (found["organization"], found["organizations"]) == ("gamma", 3)
    assert " of 3 " in said
    for answer in (month.status(), month.page()):
        assert [row["organization"] for row in answer["organizations"]] == list(MEMBERS)
    assert month.metric("organization_pending_jobs", organization="gamma") == 3
    # what was so before a reload is no news after it
    assert month.daemon.log().count("a job goes first by an exception") == 2


def _move_a_node(month: Month) -> None:
    """From gamma's partition to alpha's."""
    conf = month.cluster.paths.slurm_conf.read_text()
    conf = conf.replace("PartitionName=gamma Nodes=c1", 'PartitionName=gamma Nodes=""')
    conf = conf.replace("PartitionName=alpha Nodes=a1", "PartitionName=alpha Nodes=a1,c1")
    month.reconfigure(conf)
    month.reload(*MEMBERS)  # or partitions are reread every ten minutes
    brought = {"alpha": 4.0, "beta": 2.0, "gamma": 0.0}
    month.until(
        lambda: (
            brought
            == {
                name: month.metric("organization_owned_processors", organization=name)
                for name in MEMBERS
            }
        ),
        "the node to be alpha's",
    )
    assert "node c1: gamma → alpha since" in month.daemon.log()
    for answer in (month.status(), month.page()):
        shares = [row["share"] for row in answer["organizations"]]
        assert shares == pytest.approx([2 / 3, 1 / 3, 0])


def _lose_accounting(month: Month) -> None:
    """And everybody says so until it is back."""
    month.cluster.kill("slurmdbd")
    try:
        month.until(lambda: bool(month.status()["failure"]), "a cycle to fail")
        failure = month.status()["failure"]
        assert failure["outcome"] == "slurm_unavailable"
        assert "slurmdbd does not answer" in failure["message"]
        assert month.page()["last_cycle"]["outcome"] == "slurm_unavailable"
        assert (month.metric("cycles_total", outcome="slurm_unavailable") or 0) > 0
        assert month.metric("organization_balance_per_part_seconds") is None
        done = month.consortium.run("check")
        assert done.returncode == 3
        assert "slurmdbd does not answer" in done.stdout.splitlines()[0]
        assert month.explained(month.jobs["alpha"][0])[0]["organization"] == "alpha"
    finally:
        month.cluster.restart("slurmdbd")
    month.consortium.await_cycles()
    assert month.status()["failure"] is None


def _accept_the_clock(month: Month) -> None:
    """Which was ahead for some cycles, and is right again."""
    month.cluster.restart("slurmctld", ahead=STEP_SECONDS)
    month.consortium.await_cycles()
    month.cluster.restart("slurmctld")
    month.until(lambda: bool(month.status()["failure"]), "a cycle to fail")
    new = month.cluster.submit("alpha", 1, processors=ALL_CPUS)
    month.jobs["alpha"].append(new)
    month.until(lambda: month.has_points("alpha"), "the last known points at a new job")
    failure = month.status()["failure"]
    assert failure["outcome"] == "clock_backwards"
    assert "run `shapleyprio db accept-clock`" in failure["message"]
    assert month.page()["last_cycle"]["outcome"] == "clock_backwards"
    assert (month.metric("cycles_total", outcome="clock_backwards") or 0) > 0
    held = month.consortium.run("db", "accept-clock")
    assert held.returncode == 6
    assert month.daemon.end() == 0
    assert "the ledger stands at " in month.consortium.succeed("db", "accept-clock")
    month.start()
    assert month.status()["failure"] is None
    rows = json.loads(month.consortium.succeed("changes", "--json"))
    (what,) = [row["what"] for row in rows if row["kind"] == "clock"]
    assert re.fullmatch(ACCEPTED, what)
    assert what in {row["what"] for row in month.page()["changes"]}
    assert month.metric("change_timestamp_seconds", kind="clock", what=what) is not None


def _start_what_goes_first(month: Month) -> None:
    due = month.order()[:2]
    assert due[0] == month.jobs["beta"][2]
    month.consortium.cancel(month.guests)
    assert month.consortium.starts(due) == due
    month.until(lambda: month.status()["exceptions"] == [], "the exception to end")
    clear(month.cluster)
    month.consortium.await_settled()
    month.consortium.await_cycles()
    assert month.metric("jobs_put_first") == 0
    assert month.daemon.end() == 0


def _tell_what_changed(month: Month) -> None:
    """In one timeline, in order."""
    who, (undone, first) = user(), month.jobs["beta"][1:]
    due = [
        ("configuration", "first configuration on record, .*"),
        ("steering", "rule directcontr, channel site_factor"),
        ("configuration", "service.poll_interval: 1h → 1s"),
        ("pause", f"{who} paused, priorities are put back: the queue looks odd"),
        ("steering", "steering has ended"),
        ("steering", "rule directcontr, channel site_factor"),
        (
            "exception",
            f"{who} put job {undone} before all others of beta: an exam \\(undone by {who}\\)",
        ),
        (
            "exception",
            f"{who} put job {first} before all others: review on Friday \\(the job started\\)",
        ),
        ("configuration", r'organization.gamma.accounts: not set → \["gama"\]'),
        ("ownership", "node c1: nobody → gamma"),
        ("configuration", "a configuration was refused, .*did you mean 'influence'.*"),
        ("configuration", r'organization.gamma.accounts: \["gama"\] → \["gamma"\]'),
        ("ownership", "account gamma: nobody → gamma"),
        ("ownership", "node c1: gamma → alpha"),
        ("failure", r"\d+ cycles? failed \(slurm_unavailable\): .*slurmdbd does not answer.*"),
        ("failure", r"\d+ cycles? failed \(clock_backwards\): .*"),
        ("clock", ACCEPTED),
    ]
    rows = json.loads(month.consortium.succeed("changes", "--json"))
    assert rows == sorted(rows, key=lambda row: row["at"])
    left, at = list(rows), 0  # what happened in the same second is in any order
    for kind, what in due:
        told = [row for row in left if row["kind"] == kind and re.fullmatch(what, row["what"])]
        row = next((row for row in told if row["at"] >= at), None)
        assert row is not None, (what, rows)
        left.remove(row)
        at = row["at"]
    lasted = [row["until"] is not None for row in rows]
    ends = ("pause", "exception", "failure", "outage")
    assert lasted == [row["kind"] in ends for row in rows]


def _report(month: Month) -> None:
    """Names what the admin ordered and what changed."""
    with month.consortium.reading() as view:
        watermark = view.ledger.watermark()
    assert watermark is not None
    name = datetime.fromtimestamp(watermark.accounted_to, UTC).strftime("%Y-%m")
    directory = month.consortium.directory / "reports"
    words = ["report", "--month", name, "--output", str(directory)]
    words += ["--config", str(month.consortium.config_file)]
    # a report asks no Slurm
    environment = {**month.cluster.environment, "PATH": "/nonexistent", "COLUMNS": "250"}
    done = forked.run(words, environment, timeout=COMMAND_SECONDS)
    assert done.returncode == 0, done.stderr
    printed = done.stdout
    first = month.jobs["beta"][2]
    for said in (
        "Order of the queue: nothing known of shapleyprio before, ",
        "Changes of ownership: .*node c1: nobody → gamma at .*, node c1: gamma → alpha at ",
        "Changes of ownership: .*account gamma: nobody → gamma at ",  # in the same second
        f"Pause: since .* until .*, by {user()} \\(the queue looks odd\\); priorities were",
        f"Exception: job {first} of beta before all others since .*, by {user()} "
        "\\(review on Friday\\); it passed 4 of alpha, 2 of beta",
    ):
        assert re.search(said, printed), printed
