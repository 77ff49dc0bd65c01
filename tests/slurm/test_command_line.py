import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.lab.testbed.processes import wait_until
from shapleyprio.slurm.command_line.adapter import CommandLineSlurm
from shapleyprio.slurm.command_line.commands import SlurmCommands
from shapleyprio.slurm.command_line.orders import OUT_OF_TIME, TOO_SLOW
from shapleyprio.slurm.port import (
    Connection,
    Malformed,
    PendingQueue,
    Slurm,
    SlurmRefusedError,
    SlurmUnavailableError,
)
from shapleyprio.slurm.releases import TESTED_RELEASES
from shapleyprio.slurm.text.squeue import OWN_SEPARATOR
from tests.store.examples import placed_run

RECORDED = Path(__file__).parent / "recorded" / TESTED_RELEASES[-1]
UP = "*ping*) echo 'Slurmctld(primary) at vm is UP';;"
RECORD = (
    *("COMPLETED", "8", "8", "org", "ann", "all", "1000000100", "1000000200", "1000000260"),
    *("00:00:00", "6", "cpu=6,node=2", "a2,b1", "1000000100", "90", "60"),
)
OWN = ("all", "normal", "10", "-5", "1000000100", "4", "1:00", "1000000130")


class Programs:
    """Stand-ins for Slurm's commands: shell scripts that log how they are called."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = directory / "log"

    def install(self, name: str, script: str) -> None:
        path = self.directory / name
        log = shlex.quote(str(self.log))
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {log}\n{script}\n')
        path.chmod(0o755)

    def scontrol(self, *cases: str, orders: str = "") -> None:
        """Install scontrol.

        cases: of a shell's ``case`` over its arguments.
        orders: shell commands for each order of standard input, which is in ``$order``.
        """
        log = shlex.quote(str(self.log))
        fed = f"""'') code=0
            while read -r order; do
                echo "order $order" >> {log}
                echo "scontrol: $order"
                {orders or ":"}
            done
            exit $code;;"""
        self.install("scontrol", 'case "$*" in\n' + "\n".join([*cases, fed, UP]) + "\nesac")

    def calls(self, name: str) -> list[str]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith(name)]


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


@pytest.fixture
def slurm(programs: Programs) -> CommandLineSlurm:
    return CommandLineSlurm(Connection(timeout_seconds=60, bin_directory=programs.directory))


def show(name: str) -> str:
    return f"cat {shlex.quote(str(RECORDED / name))}"


def say(text: str) -> str:
    return f"printf '%s\\n' {shlex.quote(text)}"


def show_the_cluster(programs: Programs) -> None:
    """Install a scontrol that shows all that belongs to the layout."""
    programs.scontrol(
        f"*config*) {show('scontrol_config.txt')};;",
        f"*node*) {show('scontrol_nodes.txt')};;",
        f"*partition*) {show('scontrol_partitions.txt')};;",
    )


def emit(*fields: str) -> str:
    """Fields, after each of which comes the delimiter that the call asked for.

    sacct is given it as an option, squeue behind the width of each field of its format.
    """
    words = " ".join(map(shlex.quote, fields))
    return (
        'for word in "$@"; do case $word in --delimiter=*) d=${word#*=};;'
        " *JobID:0*,*) d=${word##*:0};; esac; done;"
        f' for field in {words}; do printf \'%s%s\' "$field" "$d"; done; echo'
    )


def waiting(number: int, label: str, *own: str, account: str = "org") -> str:
    """The line of a task that waits, with Slurm's own fields of it."""
    fields = (str(number), label, *(own or OWN))
    return emit(OWN_SEPARATOR.join(fields), account, "ann", "Waits for a|b")


# -- reading


def test_it_is_a_slurm(slurm: Slurm) -> None:
    assert callable(slurm.pending)


def test_the_controller_shows_its_clock(programs: Programs, slurm: CommandLineSlurm) -> None:
    programs.scontrol()
    programs.install("sdiag", show("sdiag.txt"))
    output = (RECORDED / "sdiag.txt").read_text()
    assert f"({slurm.controller().time})" in output.splitlines()[1]


def test_the_layout_is_put_together(programs: Programs, slurm: CommandLineSlurm) -> None:
    show_the_cluster(programs)
    programs.install(
        "sacctmgr",
        f'case "$*" in *assoc*) {say("0|root||1")}; {say("1|org2||2")}; {say("2|sub2||7")};;\n'
        f"*qos*) {show('sacctmgr_qos.txt')};; esac",
    )
    layout = slurm.layout()
    assert layout.cluster == "testbed"
    assert layout.version.startswith(TESTED_RELEASES[-1])
    assert layout.enforces_accounts
    assert len(programs.calls("scontrol show config")) == 1
    assert layout.accounts == {"org2": None, "sub2": "org2"}
    assert layout.qos_priorities == {"normal": 0, "high": 100}
    assert layout.partitions["pa"].nodes == ("a1", "a2")
    assert set(layout.nodes) == {"a1", "a2", "b1", "b2"}
    assert "cluster=testbed" in programs.calls("sacctmgr")[0]


def test_records_come_line_by_line(programs: Programs, slurm: CommandLineSlurm) -> None:
    programs.install("sacct", f"{emit(*RECORD)}; {say('what?')}; {emit(*RECORD)}")
    first, second, third = slurm.records(1795245000, 1795246000)
    assert isinstance(first, JobRecord)
    assert first == third
    assert isinstance(second, Malformed)
    assert "-S uts1795245000 -E uts1795246001" in programs.calls("sacct")[0]


def test_when_work_ended_is_asked_for_runs_together_with_their_steps(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    steps = (("1", "5", "6", "6"), ("1.batch", "5", "6", "36"), ("1", "3", "4", "4"))
    programs.install("sacct", "; ".join(emit(*step) for step in steps))
    runs = [placed_run(1, 6, 6, submit=5)[0], placed_run(2, 6, 7, submit=5)[0]]
    assert slurm.last_work(runs) == {runs[0].key: 36}
    (call,) = programs.calls("sacct")
    assert " -X " not in call
    assert call.endswith("-j 1,2")
    assert slurm.last_work([]) == {}


def test_times_that_sacct_takes_for_mistakes_are_not_asked(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.install("sacct", "true")
    assert list(slurm.records(0, 5)) == []
    assert "-S uts1000000 -E uts1000000" in programs.calls("sacct")[0]


def test_records_are_read_in_bounded_pieces_and_may_be_left_early(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    endless = f'yes "$({emit(*RECORD)})"'
    programs.install("sacct", f"echo $$ > {programs.directory}/pid; {endless}")
    records = slurm.records(1795245000, 1795246000)
    assert [isinstance(next(records), JobRecord) for _ in range(5000)] == [True] * 5000
    records.close()  # type: ignore[attr-defined]  # it is a generator
    with pytest.raises(ProcessLookupError):
        os.kill(int((programs.directory / "pid").read_text()), 0)


def test_a_failure_after_the_last_record_is_not_taken_for_the_end(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.install("sacct", f"{emit(*RECORD)}; echo 'Connection refused' >&2; exit 1")
    records = slurm.records(1795245000, 1795246000)
    next(records)
    with pytest.raises(SlurmUnavailableError, match="slurmdbd does not answer"):
        next(records)


def test_a_readers_own_slowness_is_not_held_against_slurm(programs: Programs) -> None:
    slurm = CommandLineSlurm(Connection(timeout_seconds=3, bin_directory=programs.directory))
    programs.install("sacct", f"{emit(*RECORD)}; {emit(*RECORD)}")
    records = slurm.records(1795245000, 1795246000)
    next(records)
    time.sleep(3.2)
    assert len(list(records)) == 1


def test_records_of_jobs_leave_out_other_tasks(programs: Programs, slurm: CommandLineSlurm) -> None:
    programs.install("sacct", f"{emit(*RECORD)}; {emit('9', '8_1', *RECORD[2:])}")
    found = list(slurm.records_of([8, 8, 3, 4]))
    assert [record.job_id for record in found if isinstance(record, JobRecord)] == [8]
    assert [call.rsplit(" ", 1)[1] for call in programs.calls("sacct")] == ["3,4,8"]


def test_many_jobs_are_asked_for_in_several_commands(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.install("sacct", "true")
    assert list(slurm.records_of(range(1, 1201))) == []
    asked = [call.rsplit(" ", 1)[1].split(",") for call in programs.calls("sacct")]
    assert [job for jobs in asked for job in jobs] == list(map(str, range(1, 1201)))
    assert len(asked) == 3


def test_each_call_asks_for_another_delimiter(programs: Programs, slurm: CommandLineSlurm) -> None:
    programs.scontrol()
    programs.install("sacct", "true")
    programs.install("squeue", waiting(33, "33"))
    programs.install("sprio", "true")
    for _ in range(2):
        assert list(slurm.records(1795245000, 1795246000)) == []
        assert len(slurm.pending().jobs) == 1
    asked = re.findall(
        r"--delimiter=([\w-]+)|EligibleTime:0([\w-]+)", "\n".join(programs.calls("s"))
    )
    assert len(asked) == 4
    assert len(set(asked)) == 4


def test_waiting_jobs_get_their_site_factor(programs: Programs, slurm: CommandLineSlurm) -> None:
    programs.scontrol()
    lines = (waiting(33, "33_4"), waiting(33, "33_5"), waiting(36, "33_2"))
    programs.install("squeue", "; ".join([*lines, say("torn")]))
    programs.install("sprio", say("33 -70 5 0.00023"))
    queue = slurm.pending()
    first, second = queue.jobs
    assert (first.target, first.site_factor, first.reason) == ("33_[4-5]", -70, "Waits for a|b")
    assert (first.job_id, first.array_job_id, first.association) == (33, 33, 5)
    assert (second.job_id, second.array_job_id) == (36, 33)
    assert (second.target, second.site_factor, second.nice) == ("33_2", None, -5)
    assert [line.source for line in queue.malformed] == ["squeue"]
    assert len(programs.calls("squeue")) == 2, "how many tasks may run at once is asked for"


def test_a_stepped_array_is_completed_from_its_folded_line(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.scontrol()
    tasks = "; ".join(waiting(33, f"33_{number}") for number in (1, 4, 7))
    folded = emit("33", "33_[1-10:3%2]")
    programs.install("squeue", f'case "$*" in *--array*) {tasks};; *) {folded};; esac')
    programs.install("sprio", "true")
    (job,) = slurm.pending().jobs
    assert (job.target, job.at_once) == ("33_[1,4,7,10]", 2)


@pytest.mark.parametrize("other", ["org", "org2"])
def test_all_is_read_again_when_a_known_record_is_listed_twice(
    programs: Programs, slurm: CommandLineSlurm, other: str
) -> None:
    programs.scontrol()
    lines = [waiting(33, "33"), waiting(34, "34")]
    programs.install("squeue", "; ".join(lines))
    programs.install("sprio", "true")
    assert len(slurm.pending().jobs) == 2
    programs.install("squeue", "; ".join([*lines, waiting(33, "33", account=other)]))
    queue = slurm.pending()
    assert [job.label for job in queue.jobs] == ["34"]
    assert [line.text.split("\x1f")[1] for line in queue.malformed] == ["org", other]
    programs.install("squeue", "; ".join(lines))
    assert len(slurm.pending().jobs) == 2


def test_nobody_waits(programs: Programs, slurm: CommandLineSlurm) -> None:
    programs.scontrol()
    programs.install("squeue", "true")
    programs.install("sprio", say("Unable to find jobs matching user/id(s) specified"))
    assert slurm.pending() == PendingQueue([], [])


def test_some_jobs_are_asked_for_by_their_numbers(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.scontrol()
    programs.install("sprio", f"{say('33 -70')}; {say('Unable to find jobs')}; {say('torn 5 6')}")
    programs.install("squeue", f"{say('34 7')}; {say('99 1')}")
    assert slurm.values_of("nice", [33, 34, 35]) == {33: -70, 34: 7}
    assert programs.calls("sprio") == ["sprio -h --local -o %i %N"]
    (asked,) = programs.calls("squeue")
    assert asked.endswith("-o %A %y -j 34,35")
    assert slurm.values_of("site_factor", [33]) == {33: -70}
    assert programs.calls("sprio")[1:] == ["sprio -h --local -o %i %S -j 33"]
    assert len(programs.calls("squeue")) == 1, "none is missing"


def test_of_many_jobs_all_values_are_read_and_none_else_is_named(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.scontrol()
    programs.install("sprio", f"{say('33 5')}; {say('400 6')}")
    programs.install("squeue", f"{say('34')}; {say('400')}")
    assert slurm.values_of("site_factor", range(200)) == {33: 5, 34: None}
    assert not [call for call in programs.calls("s") if " -j " in call]


def test_the_only_job_may_be_gone(programs: Programs, slurm: CommandLineSlurm) -> None:
    programs.scontrol()
    programs.install("sprio", say("Unable to find jobs matching user/id(s) specified"))
    gone = "slurm_load_jobs error: Invalid job id specified"
    programs.install("squeue", f"{say(gone)} >&2; exit 1")
    assert slurm.values_of("nice", [33]) == {}
    programs.install("squeue", f"{say('squeue: error: no such option')} >&2; exit 1")
    with pytest.raises(SlurmRefusedError, match="no such option"):
        slurm.values_of("nice", [33])


def test_a_users_settings_do_not_change_the_answers(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQUEUE_USERS", "ann")
    monkeypatch.setenv("SLURM_CLUSTERS", "other")
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    programs.install("sacct", f"env > {programs.directory}/env")
    slurm = CommandLineSlurm(
        Connection(bin_directory=programs.directory, environment={"SLURM_CONF": "/x"}, cluster="c1")
    )
    assert list(slurm.records(1795245000, 1795246000)) == []
    seen = (programs.directory / "env").read_text().splitlines()
    assert {"SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0", "SLURM_CONF=/x"} <= set(seen)
    assert not [line for line in seen if line.startswith(("SQUEUE_USERS", "SLURM_CLUSTERS"))]
    assert "--clusters=c1" in programs.calls("sacct")[0]


def test_a_controller_that_was_up_just_now_is_not_pinged_again_unless_something_is_written(
    programs: Programs, slurm: CommandLineSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    show_the_cluster(programs)
    for _ in range(2):
        assert slurm.nodes()
    assert programs.calls("scontrol ping") == ["scontrol ping"]
    monkeypatch.setattr("shapleyprio.slurm.command_line.config.UP_SECONDS", 0)
    slurm.write("nice", {"1": 1})
    assert len(programs.calls("scontrol ping")) == 2
    assert slurm.nodes()
    assert len(programs.calls("scontrol ping")) == 3


# -- writing


def test_one_scontrol_takes_a_few_orders_in_the_order_of_the_values(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.scontrol()
    values = {"1": 5, "2": -7, "3_[4,6-9]": 5}
    assert slurm.write("site_factor", values) == {}
    assert programs.calls("scontrol") == ["scontrol ping", "scontrol "]
    assert programs.calls("order") == [
        "order update JobId=1 SiteFactor=5",
        "order update JobId=2 SiteFactor=-7",
        "order update JobId=3_[4,6-9] SiteFactor=5",
    ]


def test_many_orders_are_spread_over_some_scontrols_and_each_is_taken_once(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.scontrol(orders=REFUSE_9)
    values = {str(number): number for number in range(1000, 3000)} | {"9": 9}
    assert slurm.write("nice", values) == {"9": "Invalid job id specified"}
    assert programs.calls("scontrol") == ["scontrol ping", *4 * ["scontrol "]]
    assert sorted(programs.calls("order")) == sorted(
        f"order update JobId={job} Nice={value}" for job, value in values.items()
    )


def test_the_first_sign_of_an_outage_ends_all_scontrols(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    away = "slurm_update error: Unable to contact slurm controller (connect failure)"
    programs.scontrol(orders=f'case "$order" in *=1300) echo "{away}" >&2; code=1;; esac')
    with pytest.raises(SlurmUnavailableError, match="slurmctld does not answer"):
        slurm.write("nice", {str(number): number for number in range(1000, 100_000)})
    assert len(programs.calls("order")) < 50_000


def test_nothing_to_write_asks_nothing(programs: Programs, slurm: CommandLineSlurm) -> None:
    assert slurm.write("nice", {}) == {}
    assert programs.calls("") == []


REFUSE_9 = 'case "$order" in *=9*) echo "Invalid job id specified for job 9" >&2; code=1;; esac'


def test_refused_jobs_are_reported_and_the_rest_goes_on(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.scontrol(orders=REFUSE_9)
    values = {"1": 5, "9": 5, "3": 5, "4,5": 5, "6": 2**40}
    assert slurm.write("nice", values) == {
        "9": "Invalid job id specified",
        "4,5": "names no job",
        "6": "1099511627776 is not between -2147483645 and 2147483645",
    }
    assert programs.calls("order")[-1] == "order update JobId=3 Nice=5"


@pytest.mark.parametrize(
    "target", ["1\nupdate JobId=2", "1 Priority=9", "1;2", "\n", "", "!!", "1\r2"]
)
def test_nothing_but_the_name_of_a_job_gets_into_an_order(
    programs: Programs, slurm: CommandLineSlurm, target: str
) -> None:
    programs.scontrol()
    assert slurm.write("nice", {target: 5, "7": 5}) == {target: "names no job"}
    assert programs.calls("order") == ["order update JobId=7 Nice=5"]


def test_an_order_of_two_lines_is_a_defect(programs: Programs) -> None:
    commands = SlurmCommands(timeout_seconds=5, bin_directory=programs.directory)
    programs.scontrol()
    with pytest.raises(ValueError, match="not an order of one line"):
        commands.feed("scontrol", ["update JobId=1 Nice=5\nupdate JobId=2 Nice=5"])
    assert programs.calls("order") == []


def test_a_complaint_about_no_job_in_particular_concerns_them_all(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.scontrol(orders="echo 'Update of this parameter is not supported' >&2; code=1")
    refused = slurm.write("nice", {"1": 5, "2": 5})
    assert refused == dict.fromkeys(["1", "2"], "Update of this parameter is not supported")


def test_an_array_of_many_tasks_is_one_order(programs: Programs, slurm: CommandLineSlurm) -> None:
    programs.scontrol()
    long = f"3_[{','.join(map(str, range(0, 60_000, 2)))}]"
    assert slurm.write("nice", {long: 5, "4": 5}) == {}
    assert programs.calls("order") == [f"order update JobId={job} Nice=5" for job in (long, "4")]


def test_much_is_fed_and_much_is_said_at_once(programs: Programs, slurm: CommandLineSlurm) -> None:
    programs.install(
        "scontrol",
        f"""case "$*" in {UP} *)
        sed 's/update JobId=\\([0-9]*\\).*/Invalid job id specified for job \\1/' | tee /dev/stderr
        exit 1;; esac""",
    )
    values = dict.fromkeys(map(str, range(1, 20_001)), 5)
    assert slurm.write("nice", values) == dict.fromkeys(values, "Invalid job id specified")


def test_an_scontrol_that_does_not_read_its_orders_says_why(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.scontrol("'') echo 'scontrol: fatal: no slurm.conf' >&2; exit 1;;")
    values = dict.fromkeys(map(str, range(1, 5_001)), 5)
    refused = slurm.write("nice", values)
    assert refused.keys() == values.keys()
    assert set(refused.values()) == {"scontrol: fatal: no slurm.conf"}


@pytest.mark.parametrize(
    "complaint",
    [
        "Unexpected message received for job 1",
        "slurm_update error: Unable to contact slurm controller (connect failure)",
        "slurm_update error: Socket timed out on send/recv operation",
    ],
)
def test_writing_stops_at_the_first_sign_that_the_controller_is_away(
    programs: Programs, complaint: str
) -> None:
    slurm = CommandLineSlurm(Connection(timeout_seconds=60, bin_directory=programs.directory))
    programs.scontrol(orders=f"echo '{complaint}' >&2; code=1; sleep 30")
    began = time.monotonic()
    with pytest.raises(SlurmUnavailableError, match="slurmctld does not answer"):
        slurm.write("nice", {"1": 5, "2": 6})
    assert time.monotonic() - began < 20
    assert len(programs.calls("order")) == 1


def test_an_scontrol_that_stands_still_is_ended(programs: Programs) -> None:
    slurm = CommandLineSlurm(Connection(timeout_seconds=1, bin_directory=programs.directory))
    programs.scontrol(orders="sleep 60")
    began = time.monotonic()
    with pytest.raises(SlurmUnavailableError, match="scontrol took longer than 1 s"):
        slurm.write("nice", {"1": 5, "2": 6})
    assert time.monotonic() - began < 20


def test_writing_ends_in_time_and_says_what_is_left(programs: Programs) -> None:
    slurm = CommandLineSlurm(Connection(timeout_seconds=1, bin_directory=programs.directory))
    programs.scontrol(orders="sleep 0.01")
    values = dict.fromkeys(map(str, range(10_000, 19_000)), 5)
    refused = slurm.write("nice", values)
    done = len(programs.calls("order"))
    assert 0 < done < len(values)
    assert refused == dict.fromkeys(list(values)[done:], "Slurm took too long over those before it")


def test_nothing_is_written_while_the_controller_is_down(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.install("scontrol", f"{show('scontrol_ping_down.txt')}; exit 1")
    with pytest.raises(SlurmUnavailableError, match=r"at \S+ is DOWN"):
        slurm.write("nice", {"1": 5})
    assert programs.calls("scontrol") == ["scontrol ping"]


def test_without_the_right_to_write_it_says_so(programs: Programs, slurm: CommandLineSlurm) -> None:
    programs.scontrol(
        f"*config*) {say('SlurmUser = slurm(0)')};;",
        orders="echo 'Invalid user id for job 1' >&2; code=1",
    )
    programs.install("sacctmgr", "true")
    with pytest.raises(SlurmRefusedError, match="Invalid user id"):
        slurm.write("nice", {"1": 5})


def test_a_qos_that_has_the_value_already_is_no_refusal(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.install(
        "sacctmgr",
        f'case "$*" in *modify*name=high*) exit 0;; *modify*) echo " Nothing modified"; exit 1;;\n'
        f"*show*) {show('sacctmgr_qos.txt')};; esac",
    )
    values = {"high": 100, "normal": 0, "gone": 7, "negative": -1}
    assert slurm.write("qos", values) == {
        "gone": "no such QOS",
        "negative": "-1 is not between 0 and 2147483647",
    }
    assert slurm.write("qos", {"normal": 8}) == {"normal": "Nothing modified"}


def test_writing_a_qos_without_the_right_is_refused(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.install("sacctmgr", "echo ' Error with request: Access/permission denied' >&2; exit 1")
    with pytest.raises(SlurmRefusedError, match="permission denied"):
        slurm.write("qos", {"high": 1})


@pytest.mark.parametrize(
    ("level", "channel", "missing"),
    [
        ("Operator", "nice", None),
        ("Operator", "site_factor", None),
        ("Administrator", "qos", None),
        ("Operator", "qos", "modify user {} set AdminLevel=Administrator"),
        ("None", "nice", "modify user {} set AdminLevel=Operator"),
        ("", "nice", "add user {} account=root AdminLevel=Operator"),
    ],
)
def test_privileges(
    programs: Programs,
    slurm: CommandLineSlurm,
    monkeypatch: pytest.MonkeyPatch,
    level: str,
    channel: str,
    missing: str | None,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 987654)
    programs.scontrol(f"*config*) {say('SlurmUser = slurm(64030)')};;")
    programs.install("sacctmgr", say(level))
    remedy = slurm.privilege(channel)
    assert remedy is None if missing is None else missing.format("987654") in (remedy or "")


def test_slurms_own_user_may_write(
    programs: Programs, slurm: CommandLineSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 64030)
    programs.scontrol(f"*config*) {say('SlurmUser = slurm(64030)')};;")
    assert slurm.privilege("qos") is None


# -- failures


@pytest.mark.parametrize(
    ("said", "daemon"),
    [
        ("sacct: error: Sending PersistInit msg: Connection refused", "slurmdbd"),
        ("sacct: error: Problem talking to the database: Connection refused", "slurmdbd"),
        ("sacct: error: Unable to connect to database", "slurmdbd's database"),
        ("error: If munged is up, restart it\nerror: Munge encode failed", "munge"),
    ],
)
def test_an_error_names_the_daemon_that_is_away(
    programs: Programs, slurm: CommandLineSlurm, said: str, daemon: str
) -> None:
    programs.install("sacct", f"{say(said)} >&2; exit 1")
    with pytest.raises(SlurmUnavailableError, match=f"^{daemon} does not answer") as caught:
        list(slurm.records(1795245000, 1795246000))
    assert "\n" not in str(caught.value)


def test_what_slurm_understood_and_refused_is_another_error(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.install("sacct", "echo 'sacct: error: Invalid field requested: \"x\"' >&2; exit 1")
    with pytest.raises(SlurmRefusedError, match="sacct: Invalid field requested"):
        list(slurm.records(1795245000, 1795246000))


@pytest.mark.parametrize("release", TESTED_RELEASES)
@pytest.mark.parametrize(
    ("recorded", "cause"),
    [
        ("squeue_unknown_option", "squeue: unrecognized option '--unheard-of'"),
        ("sacct_unknown_option", "sacct: unrecognized option '--unheard-of'"),
        ("sacct_unknown_field", 'sacct: Invalid field requested: "Unheard"'),
    ],
)
def test_an_error_shows_what_slurm_says_was_wrong(
    programs: Programs, slurm: CommandLineSlurm, release: str, recorded: str, cause: str
) -> None:
    program = recorded.partition("_")[0]
    programs.scontrol()
    programs.install(program, f"{show(f'../{release}/{recorded}.txt')} >&2; exit 1")
    with pytest.raises(SlurmRefusedError) as caught:
        slurm.pending() if program == "squeue" else list(slurm.records(1795245000, 1795246000))
    assert str(caught.value) == f"Slurm refused: {cause}"


def test_an_account_reported_twice_is_not_believed(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    show_the_cluster(programs)
    root, org, twin = say("0|root||1"), say("1|org2||2"), say("1|org2||9")
    qos = f"*qos*) {show('sacctmgr_qos.txt')};;"
    for answer in (twin, say("x")):
        asked = f"*account=*) {root}; {org}; {answer};;"
        programs.install("sacctmgr", f'case "$*" in {asked} {qos} *) {root}; {org};; esac')
        with pytest.raises(SlurmUnavailableError, match=r"'org2' more than once|read .*'x'"):
            slurm.layout()


def test_only_what_sacctmgr_shows_when_it_is_asked_for_is_an_account(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    """The listing has what a line end in a name makes of it; nobody asked has one."""
    show_the_cluster(programs)
    root, org = say("0|root||1"), say("1|org2||2")
    forged = "; ".join(map(say, ("2|x", "1|evil||3", "1|org2||4", "2|a|b||5", "2|c,d||6", "||7")))
    programs.install(
        "sacctmgr",
        f'case "$*" in *account=*) {root}; {org}; {say("2|ORG2||8")};;'
        f" *qos*) {show('sacctmgr_qos.txt')};; *) {root}; {org}; {forged};; esac",
    )
    assert slurm.layout().accounts == {"org2": None}
    (asked,) = (call for call in programs.calls("sacctmgr") if "account=" in call)
    assert asked.endswith("account=evil,org2,root")


def test_a_missing_command_is_named_with_the_remedy(slurm: CommandLineSlurm) -> None:
    with pytest.raises(SlurmUnavailableError, match=r"sacctmgr was not found in .*: install"):
        slurm.qos_priorities()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_python_that_this_user_may_not_run_is_named_and_not_the_command() -> None:
    """What has a time limit of its own is started through our own Python."""
    with TemporaryDirectory(dir="/tmp") as closed:  # root's own, as a Python below /root is
        python = Path(closed, "python")
        python.symlink_to(sys.executable)
        program = (
            "import os; from shapleyprio.slurm.command_line import commands as c;"
            f"c.ALARMED = ({str(python)!r}, *c.ALARMED[1:]);"
            "commands = c.SlurmCommands(timeout_seconds=5);"
            "os.setresuid(65534, 65534, 65534);"
            "commands.run('true', within=5.0)"
        )
        done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    (*_, last) = done.stderr.decode().splitlines()
    assert last.endswith(
        "true cannot be started: this user may not run the Python that starts it, "
        f"{python} (Permission denied): install shapleyprio where every user can read it"
    )


@pytest.mark.parametrize(
    ("program", "ask", "daemon"),
    [
        ("sacctmgr", lambda slurm: slurm.qos_priorities(), "slurmdbd"),
        ("sacct", lambda slurm: list(slurm.records(1795245000, 1795246000)), "slurmdbd"),
        ("scontrol", lambda slurm: slurm.controller(), "slurmctld"),
    ],
)
def test_a_command_that_hangs_is_ended_with_its_children(
    programs: Programs, program: str, ask: Callable[[CommandLineSlurm], object], daemon: str
) -> None:
    slurm = CommandLineSlurm(Connection(timeout_seconds=2, bin_directory=programs.directory))
    programs.install(program, f"sleep 60 & echo $! > {programs.directory}/pid; wait")
    began = time.monotonic()
    with pytest.raises(SlurmUnavailableError, match=rf"{daemon} .*{program} took longer than 2 s"):
        ask(slurm)
    assert time.monotonic() - began < 20
    child = int((programs.directory / "pid").read_text())
    while is_running(child):
        assert time.monotonic() - began < 30
        time.sleep(0.01)


def is_running(process: int) -> bool:
    try:
        stat = Path("/proc", str(process), "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_an_answer_that_cannot_be_read_is_no_answer(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.install("sacctmgr", say("normal|many"))
    with pytest.raises(SlurmUnavailableError, match=r"cannot be read \(Priority: 'many'"):
        slurm.qos_priorities()


# -- while nobody else writes


def test_an_scontrol_does_nothing_more_once_others_may_write_though_nobody_is_there_to_end_it(
    programs: Programs,
) -> None:
    programs.scontrol(orders="sleep 0.1")
    feeding = (
        "import sys; from pathlib import Path;"
        "from shapleyprio.slurm.command_line.commands import SlurmCommands;"
        "commands = SlurmCommands(timeout_seconds=60, bin_directory=Path(sys.argv[1]));"
        "orders = (f'update JobId={job} Nice=5' for job in range(1, 100));"
        "commands.feed('scontrol', orders, check=lambda: 4.0)"
    )
    daemon = subprocess.Popen(
        [sys.executable, "-c", feeding, str(programs.directory)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        wait_until(lambda: len(programs.calls("order")) > 1, real_seconds=60, what="some orders")
        (scontrol,) = psutil.Process(daemon.pid).children()
        daemon.send_signal(signal.SIGSTOP)
        scontrol.suspend()  # as the kernel freezes a whole unit
        time.sleep(4.5)
        before = programs.calls("order")
        scontrol.resume()
        time.sleep(0.5)
        assert programs.calls("order") == before
        assert len(before) < 99
    finally:
        daemon.kill()
        daemon.wait()


def test_what_an_scontrol_was_ended_at_another_one_does(programs: Programs) -> None:
    commands = SlurmCommands(timeout_seconds=120, bin_directory=programs.directory)
    stuck = programs.directory / "stuck"
    programs.scontrol(orders=f"[ -e {stuck} ] || {{ touch {stuck}; exec sleep 60; }}; sleep 0.01")
    orders = [f"update JobId={job} Nice=5" for job in range(1, 200)]
    answer = commands.feed("scontrol", orders, check=lambda: 1.6)
    assert answer.code == 0
    assert {line.removeprefix("order ") for line in programs.calls("order")} == set(orders)
    assert len(programs.calls("scontrol")) > 2


HANG_AT_5 = 'case "$order" in *JobId=5*) exec sleep 60;; esac'


def test_an_order_over_which_two_scontrols_were_killed_keeps_no_other_from_being_done(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    programs.scontrol(orders=f"{REFUSE_9}; {HANG_AT_5}")
    values = dict.fromkeys(("1", "9", "5", "3", "4"), 7)
    refused = slurm.write("nice", values, check=lambda: 2.0)
    assert refused == {"9": "Invalid job id specified", "5": TOO_SLOW}
    done = [line.split("=")[1].split()[0] for line in programs.calls("order")]
    assert done.count("5") == 2
    assert {"3", "4"} <= set(done[done.index("5") :])


def test_orders_that_are_to_be_repeated_when_time_is_up_are_not_done(
    programs: Programs,
) -> None:
    slurm = CommandLineSlurm(Connection(timeout_seconds=3, bin_directory=programs.directory))
    programs.scontrol(orders='case "$order" in *JobId=1*) exec sleep 60;; esac')
    checks = itertools.count()

    def check() -> float:
        if next(checks) == 2:  # before the second scontrol
            time.sleep(3)
        return 2.0

    refused = slurm.write("nice", dict.fromkeys("123", 7), check=check)
    assert refused == dict.fromkeys("123", OUT_OF_TIME)


def test_an_scontrol_that_dies_after_another_was_killed_says_why(
    programs: Programs, slurm: CommandLineSlurm
) -> None:
    killed = programs.directory / "killed"
    programs.scontrol(
        f"'') test -e {killed} && {{ echo 'scontrol: fatal: no slurm.conf' >&2; exit 1; }};"
        f" touch {killed}; read -r order;"
        " echo 'Invalid job id specified for job 1' >&2; exec sleep 60;;"
    )
    refused = slurm.write("nice", dict.fromkeys("123", 7), check=lambda: 2.0)
    assert refused == dict.fromkeys("123", "scontrol: fatal: no slurm.conf")


def test_a_command_that_takes_longer_than_nobody_else_writes_is_ended(programs: Programs) -> None:
    commands = SlurmCommands(timeout_seconds=30, bin_directory=programs.directory)
    programs.install("sacctmgr", "exec sleep 60")
    began = time.monotonic()
    with pytest.raises(SlurmUnavailableError, match=r"sacctmgr took longer than 0\.5 s"):
        commands.run("sacctmgr", "modify", within=0.5)
    assert time.monotonic() - began < 20
