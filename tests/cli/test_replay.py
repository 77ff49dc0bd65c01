"""`shapleyprio replay` on small logs written here, and on a real one where it is at hand."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from shapleyprio.cli import main
from shapleyprio.replay.measures import turns
from shapleyprio.replay.policies import POLICIES, PREDICTORS
from tests.cli.offline import OfflineCommand

TRACES = Path(__file__).parents[3] / "shared" / "traces"
HEADER = "; MaxProcs: 3\n"
DEAL = ("--deal-users", "2")

BUSY = [(job, 10 + job // 3, job % 5 + 1, 3 + job % 4, 1 + job % 2) for job in range(1, 31)]
"""(job, submit, user, run time, processors): more than three processors can do at once."""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def swf_line(job: int, submit: int, user: int, seconds: int, processors: int) -> str:
    return f"{job} {submit} 2 {seconds} {processors} -1 -1 -1 -1 -1 1 {user} 1 -1 1 -1 -1 -1\n"


def write_log(*extra_lines: str, header: str = HEADER) -> None:
    lines = (swf_line(*job) for job in BUSY)
    Path("log.swf").write_text(header + "".join(lines) + "".join(extra_lines))


COMMAND = OfflineCommand("replay", "log.swf")
replay, succeeds, answer, fails = (
    COMMAND.run,
    COMMAND.succeeds,
    COMMAND.answer,
    COMMAND.fails,
)


# what it shows


def test_tables_for_people() -> None:
    write_log()
    lines = succeeds(*DEAL, "--window", "0:12").stdout.splitlines()
    assert lines[0] == (
        "log.swf: 30 jobs of 2 organizations on 3 processors, released in 12 s from second 0 on"
    )
    policies, organizations = lines.index("", 1), lines.index("", 2)
    headings = [
        "policy",
        "Δψ/p_tot",
        *["out", "of", "turn", "ρ", "mean", "wait", "95", "%", "wait", "slowdown"],
    ]
    assert lines[policies + 1].split() == [*headings, "utilization", "seconds"]
    rows = [line.split()[0] for line in lines[policies + 2 : organizations]]
    assert rows == ["ref", "directcontr", "fairshare", "recorded"]
    assert lines[policies + 2].split()[1:4] == ["0", "s", "0.0%"]
    assert lines[organizations + 1].split() == [
        *("organization", "processors", "jobs", "directcontr", "fairshare", "recorded")
    ]
    assert lines[organizations + 2].split()[:2] == ["organization1", "2"]


def test_tables_are_whole_however_narrow_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    write_log()
    assert "…" not in succeeds(*DEAL).stdout


def test_drifts_add_up_to_the_unfairness() -> None:
    write_log()
    output = answer(*DEAL, "--window", "0:30")
    fair = [one["utility"] for one in output["policies"][0]["organizations"]]
    for policy in output["policies"]:
        utilities = [one["utility"] for one in policy["organizations"]]
        apart = sum(abs(ours - ref) for ours, ref in zip(utilities, fair, strict=True))
        assert policy["unfairness"] == pytest.approx(apart / output["policies"][0]["p_tot"])


def test_where_decisions_are_not_judged_it_is_said_why(monkeypatch: pytest.MonkeyPatch) -> None:
    write_log()
    assert "out of turn: of the moments" in succeeds(*DEAL).stdout
    monkeypatch.setattr(turns, "MOST_STARTS", 30 * 4 - 1)
    output = succeeds(*DEAL).stdout
    assert "out of turn is missing: decisions are judged as long as" in output
    (head,) = (line for line in output.splitlines() if line.startswith("policy"))
    assert "Δψ/p_tot" in head
    assert "out of turn" not in head
    assert all(policy["out_of_turn"] is None for policy in answer(*DEAL)["policies"])


def test_without_ref_there_is_no_drift_to_show() -> None:
    write_log()
    output = succeeds(*DEAL, "--policy", "fcfs").stdout
    assert "Δψ" not in output
    assert output.count("fcfs") == 1


def test_what_was_left_out_and_malformed_is_reported_with_its_line() -> None:
    write_log(swf_line(98, 20, 1, 0, 1), swf_line(99, 20, 1, -1, 1), "100 20 x\n")
    result = succeeds(*DEAL)
    assert "1 malformed" in result.stdout
    assert "1 unknown processing time" in result.stdout
    assert "1 zero processing time" in result.stdout
    assert result.stderr.startswith("shapleyprio: log.swf:34: ")


def test_strict_makes_a_malformed_line_fatal() -> None:
    write_log("100 20 x\n")
    fails("shapleyprio: log.swf:32: ", *DEAL, "--strict")


# JSON and CSV


def test_the_same_input_and_seed_give_the_same_bytes() -> None:
    write_log()
    written = []
    for _ in range(2):
        succeeds(*DEAL, "--seed", "7", "--json", "out.json", "--schedule", "out.csv")
        results = json.loads(Path("out.json").read_text())
        for policy in results["policies"]:
            policy["seconds"] = 0
        written.append((json.dumps(results), Path("out.csv").read_bytes()))
    assert written[0] == written[1]


def test_json_on_standard_output_is_what_the_file_holds() -> None:
    write_log()
    succeeds(*DEAL, "--json", "out.json")
    text = Path("out.json").read_text()
    on_output = succeeds(*DEAL, "--json", "-").stdout
    without_times = [
        [line for line in one.splitlines() if '"seconds"' not in line] for one in (text, on_output)
    ]
    assert without_times[0] == without_times[1]
    assert text.endswith("}\n")


def test_the_window_counts_from_the_first_release() -> None:
    write_log()
    assert answer(*DEAL, "--window", "2:5")["window"] == {"start": 2, "length": 5}
    assert answer(*DEAL, "--window", "0s:1m")["window"] == {"start": 0, "length": 60}
    assert answer(*DEAL)["window"] == {"start": 0, "length": 11}
    jobs = sum(one["jobs"] for one in answer(*DEAL, "--window", "2:5")["organizations"])
    assert jobs == sum(12 <= submit < 17 for _, submit, *_ in BUSY)


def test_the_schedule_has_all_policies_and_copies_on_processors_that_were_free() -> None:
    write_log()
    succeeds(*DEAL, "--policy", "ref", "--policy", "fcfs", "--schedule", "out.csv")
    with Path("out.csv").open() as file:
        rows = list(csv.DictReader(file))
    processors_of = {job: processors for job, *_, processors in BUSY}
    for policy in ("ref", "fcfs"):
        starts = [row for row in rows if row["policy"] == policy]
        seconds = [int(row["start"]) for row in starts]
        assert seconds == sorted(seconds)
        for row in starts:
            assert int(row["copy"]) <= processors_of[int(row["job"])]
        for t in set(seconds):
            running = [
                row["owner"]
                for row in starts
                if int(row["start"]) <= t < int(row["start"]) + int(row["processing_time"])
            ]
            assert running.count("organization1") <= 2
            assert running.count("organization2") <= 1


# policies


def test_parts_may_stop_gaining_worth_at_an_age() -> None:
    write_log()
    within, without = answer(*DEAL, "--horizon", "1s"), answer(*DEAL)
    assert (within["horizon"], without["horizon"]) == (1, None)
    for one, other in zip(within["policies"], without["policies"], strict=True):
        worth = [sum(each["utility"] for each in run["organizations"]) for run in (one, other)]
        assert worth[0] == one["p_tot"] < worth[1]
    lines = succeeds(*DEAL, "--horizon", "30d").stdout.splitlines()
    assert lines[0].endswith("second 0 on, horizon 30 d")
    fails("'soon' is not a duration; write for instance 12h or 30d", *DEAL, "--horizon", "soon")


def test_jobs_may_be_kept_to_their_partitions() -> None:
    """Two jobs want the node of one partition, while that of the other one is idle."""
    fields = "JobIDRaw|User|Partition|Submit|Start|End|AllocCPUS|State|NodeList"
    jobs = [("1", "a", "gpu", 0, 0, 9, "n1"), ("2", "b", "gpu", 0, 9, 18, "n1")]
    jobs.append(("3", "b", "cpu", 0, 0, 5, "n2"))
    rows = [
        (number, user, partition, *(f"2025-01-01T00:00:{s:02}" for s in times), "1", "COMPLETED", n)
        for number, user, partition, *times, n in jobs
    ]
    Path("log.sacct").write_text("\n".join((fields, *("|".join(row) for row in rows))) + "\n")
    deal = ("--deal-users", "2", "--processors", "2", "--policy", "fcfs", "--window", "0:20")
    log = OfflineCommand("replay", "log.sacct")

    def starts(*options: str) -> dict[str, str]:
        log.succeeds(*deal, "--schedule", "s.csv", *options)
        with Path("s.csv").open() as rows:
            return {row["job"]: row["start"] for row in csv.DictReader(rows)}

    assert starts() == {"1": "0", "2": "0", "3": "9"}
    assert starts("--respect-partitions") == {"1": "0", "2": "9", "3": "0"}
    without, within = log.answer(*deal), log.answer(*deal, "--respect-partitions")
    assert (without["partitions"], within["partitions"]) == (None, {"cpu": 1, "gpu": 1})
    assert "all jobs may run anywhere" in log.succeeds(*deal).stdout
    line = "the jobs of 2 partitions were kept to their nodes, in 2 bays"
    assert line in log.succeeds(*deal, "--respect-partitions").stdout
    write_log()
    fails("does not name the nodes and partitions", *DEAL, "--respect-partitions")


CLUSTERS = """\
JobIDRaw|Account|User|Submit|Start|End|ElapsedRaw|AllocCPUS|NodeList|Cluster
1|physics|ann|1700000000|1700000000|1700000009|9|1|n1|c1
2|physics|ann|1700000000|1700000009|1700000018|9|1|n1|c1
1|biology|bob|1700000000|1700000005|1700000008|3|1|n1|c2
"""
"""A node of each cluster, both of the same name; the second job might have run at once at c2."""


def organizations_file(name: str, organization: str, *accounts: str, nodes: str = "n1") -> str:
    Path(name).write_text(
        f'[[organization]]\nname = "{organization}"\naccounts = {list(accounts)}\n'
        f'nodes = ["{nodes}"]\n'.replace("'", '"')
    )
    return name


def test_the_clusters_of_a_pool_are_one_game_unless_jobs_are_kept_to_theirs() -> None:
    Path("both.sacct").write_text(CLUSTERS)
    files = {
        "c1": organizations_file("c1.toml", "physics", "physics"),
        "c2": organizations_file("c2.toml", "biology", "biology"),
    }
    common = ("--policy", "fcfs", "--schedule", "starts.csv", "--window", "0:30")
    both = OfflineCommand("replay", "both.sacct", *common)
    pool = [word for name, file in files.items() for word in ("--organizations", f"{name}={file}")]

    def starts(*options: str) -> list[tuple[str, str]]:
        both.succeeds(*pool, *options)
        with Path("starts.csv").open() as rows:
            return [(row["organization"], row["start"]) for row in csv.DictReader(rows)]

    assert starts() == [("physics", "0"), ("physics", "0"), ("biology", "9")]
    apart = [("physics", "0"), ("biology", "0"), ("physics", "9")]
    assert starts("--respect-partitions") == apart
    assert "no job can move between c1 and c2" in both.succeeds(*pool).stdout
    line = "the jobs of c1 and c2 were kept to their clusters\n"
    assert line in both.succeeds(*pool, "--respect-partitions").stdout
    answer = both.answer(*pool, "--respect-partitions")
    assert (answer["clusters"], answer["confined"]) == (["c1", "c2"], 1)
    assert answer["partitions"] == {"c1": 1, "c2": 1}

    dealt = ("--deal-users", "1", "--processors", "4", "--respect-partitions")
    assert both.answer(*dealt)["partitions"] == {"c1": 2, "c2": 2}

    one = both.answer("--cluster", "c2", "--organizations", files["c2"])
    assert (one["clusters"], one["organizations"][0]["jobs"]) == ([], 1)
    both.fails("c3 is not among them", "--cluster", "c3", *pool)
    both.fails("no file names its organizations", *pool[:2])
    both.fails("are both of cluster c1", *pool, *pool[:2])
    both.fails("are both for all clusters; give CLUSTER=FILE", *["--organizations", "c1.toml"] * 2)


def test_a_policy_named_twice_runs_once() -> None:
    write_log()
    output = answer(*DEAL, "--policy", "fcfs", "--policy", "ref", "--policy", "fcfs")
    assert [one["policy"] for one in output["policies"]] == ["fcfs", "ref"]


def test_what_really_happened_is_shown_only_if_the_log_shows() -> None:
    Path("log.swf").write_text(HEADER + swf_line(1, 0, 1, 5, 1).replace(" 0 2 5 ", " 0 -1 5 "))
    output = answer("--deal-users", "1")
    assert [one["policy"] for one in output["policies"]] == ["ref", "directcontr", "fairshare"]


def test_many_organizations_get_rand_unless_ref_is_asked_for() -> None:
    write_log()
    many = ("--deal-users", "13", "--processors", "20")
    output = answer(*many)
    assert output["policies"][0]["policy"] == "rand"
    assert output["policies"][0]["unfairness"] is None


@pytest.mark.parametrize(
    ("name", "message"),
    [("directcont", "did you mean directcontr?"), ("xyz", "take one of ref, rand, shapley, live")],
)
def test_an_unknown_policy_names_the_nearest(name: str, message: str) -> None:
    write_log()
    fails(f"unknown policy '{name}'; {message}", *DEAL, "--policy", name)


def test_a_policy_of_ones_own(tmp_path: Path) -> None:
    write_log()
    (tmp_path / "queues.py").write_text(
        "def shortest(state):\n"
        "    return sorted(state.waiting, key=lambda organization: organization.waiting)\n"
        "def broken(state):\n"
        "    return state.nothing\n"
    )
    output = answer(*DEAL, "--policy", "queues:shortest", "--policy", "ref")
    assert [one["policy"] for one in output["policies"]] == ["queues:shortest", "ref"]
    assert output["policies"][0]["unfairness"] is not None
    result = replay(*DEAL, "--policy", "queues:broken")
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert "policy 'queues:broken' failed at second" in result.stderr


def test_the_help_names_every_policy() -> None:
    words = CliRunner().invoke(main, ["replay", "--help"]).output.replace("-\n  ", "-")
    assert all(policy in words for policy in POLICIES)


def test_theorem_5_6_sets_the_orderings() -> None:
    """N = ⌈k²/ε²·ln(k/(1 − λ))⌉ = ⌈4/0.25·ln 20⌉ = 48."""
    write_log()
    rand = (*DEAL, "--policy", "rand")
    by_theorem = answer(*rand, "--epsilon", "0.5", "--confidence", "0.9")
    by_number = answer(*rand, "--orderings", "48")
    for output in (by_theorem, by_number):
        output["policies"][0]["seconds"] = 0
    assert by_theorem == by_number


def test_more_orderings_than_can_be_drawn_are_refused_before_anything_runs() -> None:
    write_log()
    policies = ("--policy", "runs_first:never", "--policy", "rand")
    Path("runs_first.py").write_text("def never(state):\n    raise SystemExit('ran')\n")
    fails(
        "rand with 11,982,930 orderings; at most 1,000,000 are possible; choose fewer "
        "--orderings, or a larger --epsilon",
        *(*DEAL, *policies, "--epsilon", "0.001", "--confidence", "0.9"),
    )


def test_live_predicts_as_it_is_asked_to() -> None:
    """A log found by trying: predictions seldom change what is decided."""
    random = Random(14)
    jobs = [(n, 20 * n, random.randrange(5), random.choice((2, 400)), 1) for n in range(1, 120)]
    Path("log.swf").write_text("; MaxProcs: 5\n" + "".join(swf_line(*job) for job in jobs))

    def by(*options: str) -> object:
        live = ("--deal-users", "3", "--policy", "live", "--recompute", "9s")
        (policy,) = answer(*live, *options)["policies"]
        return policy | {"seconds": 0}

    found = [by("--predictor", name) for name in PREDICTORS]
    assert by() == found[0]
    assert any(policy != found[0] for policy in found)


def test_shapley_values_few_coalitions_of_many_organizations() -> None:
    write_log(header="; MaxProcs: 12\n")
    policy = ("--deal-users", "12", "--policy", "shapley", "--coalitions", "40")
    (first,), (again,) = (answer(*policy)["policies"] for _ in range(2))
    first["seconds"] = again["seconds"] = 0
    assert first == again


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--policy", "fcfs", "--recompute", "9s"), "--recompute is for shapley and live"),
        (("--policy", "shapley", "--predictor", "limit"), "add --policy live"),
    ],
)
def test_options_that_no_policy_heeds_are_refused(options: tuple[str, ...], complaint: str) -> None:
    write_log()
    fails(complaint, *DEAL, *options)


# organizations


def test_organizations_from_a_file() -> None:
    write_log()
    Path("organizations.toml").write_text(
        '[[organization]]\nname = "odd"\nusers = ["1", "3", "5"]\nprocessors = 2\n'
        '[[organization]]\nname = "even"\nusers = ["2", "4"]\nprocessors = 1\n'
    )
    fails("jobs used 430.3% of the 3 processors", "--organizations", "organizations.toml")
    output = answer("--organizations", "organizations.toml", "--allow", "utilization")
    assert output["organizations"] == [
        {"name": "odd", "processors": 2, "jobs": 18},
        {"name": "even", "processors": 1, "jobs": 12},
    ]


def test_it_is_said_where_the_daemon_counts_something_else_than_the_cpus_of_sacct() -> None:
    Path("both.sacct").write_text(CLUSTERS)
    file = Path(organizations_file("gpus.toml", "physics", "physics", "biology"))
    pools = "".join(
        f'[[pool]]\nname = "{name}"\nclusters = ["c2"]\n{keys}\n'
        for name, keys in {"a": 'partitions = ["a"]\nweight = "billing"', "rest": ""}.items()
    )
    plain = file.read_text()
    command = OfflineCommand("replay", "both.sacct", "--policy", "fcfs", "--organizations")
    one = "both.sacct, c2: counts CPUs, where gpus.toml has the daemon count gres/gpu; "
    for text, warned in (
        (plain, ""),
        (f'[fairness]\nweight = "cpus"\n{plain}', ""),
        (f'[fairness]\nweight = "gres/gpu"\n{plain}', one),
        (plain + pools, one.replace("gres/gpu", "billing")),
        (plain + pools.replace("c2", "c3"), ""),
    ):
        file.write_text(text)
        found = command.succeeds("gpus.toml").stderr
        assert ("counts CPUs" in found, warned in found) == (bool(warned), True)


def test_it_is_said_where_users_can_have_forged_records() -> None:
    command = OfflineCommand("replay", "names.sacct", "--deal-users", "2", "--processors", "2")
    head, *jobs = CLUSTERS.splitlines()
    for column, warned in (("JobName", True), ("Reservation", False)):
        lines = [f"{head}|{column}", *(f"{job}|x" for job in jobs)]
        Path("names.sacct").write_text("\n".join(lines) + "\n")
        warning = "names.sacct: jobname: users can write lines there that read like records"
        assert (warning in command.succeeds().stderr) == warned


def test_the_number_of_processors_comes_from_the_command_line_or_the_log() -> None:
    write_log()
    dealt = answer(*DEAL, "--processor-shares", "uniform", "--processors", "8")["organizations"]
    assert [one["processors"] for one in dealt] == [4, 4]
    write_log(header="")
    fails("does not say how many processors the system had; give --processors N", *DEAL)


# usage


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("either --organizations FILE or --deal-users K", ""),
        ("either --organizations FILE or --deal-users K", "--deal-users 2 --organizations x.toml"),
        ("go with --deal-users", "--organizations x.toml --processors 4"),
        ("--epsilon and --confidence go together", "--deal-users 2 --epsilon 0.1"),
        (
            "leave --orderings out",
            "--deal-users 2 --epsilon 0.1 --confidence 0.9 --orderings 5",
        ),
        ("add --policy rand", "--deal-users 2 --orderings 5"),
        ("--backfill goes with --wide rigid", "--deal-users 2 --wide expand --backfill easy"),
        ("name the same file", "--deal-users 2 --json a --schedule a"),
        ("there is no directory nowhere", "--deal-users 2 --schedule nowhere/a.csv"),
        ("write for instance 0:50000", "--deal-users 2 --window 50000"),
        ("write for instance 0:50000", "--deal-users 2 --window 0:0"),
        ("write for instance 0:50000", "--deal-users 2 --window=-5:10"),
        ("write for instance 0:50000", "--deal-users 2 --window 1:2:3"),
        ("--fields goes with the format sacct", "--deal-users 2 --fields jobid,user"),
        ("--cluster goes with the format sacct or store", "--deal-users 2 --cluster c1"),
        ("choose another --window", "--deal-users 2 --window 1000:10"),
    ],
)
def test_contradictions_are_usage_errors(message: str, arguments: str) -> None:
    write_log()
    fails(message, *arguments.split())


def test_no_such_log() -> None:
    fails("log.swf: cannot be read: No such file", *DEAL)


@pytest.mark.parametrize(
    ("command", "missing", "extra"),
    [
        ("replay", "numpy", "replay"),
        ("audit", "numpy", "replay"),
        ("experiment", "numpy", "replay"),
    ],
)
def test_missing_packages_are_named_in_one_line(command: str, missing: str, extra: str) -> None:
    program = f"""if True:
        import sys
        sys.modules["{missing}"] = None
        from shapleyprio.cli import main
        main(["{command}", "log.swf", "--deal-users", "2"])
    """
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"shapleyprio: {command} needs more packages: install the package "
        f"shapleyprio-replay, or pip install 'shapleyprio[{extra}]'\n"
    )


# a real log


@pytest.mark.skipif(not TRACES.is_dir(), reason="the folder of real logs is not here")
def test_the_papers_first_workload() -> None:
    log = TRACES / "LPC-EGEE-2004-1.2-cln.swf.gz"
    deal = ["--deal-users", "5", "--processor-shares", "zipf", "--processors", "70"]
    window = ["--seed", "1", "--window", "100d:50000"]
    result = CliRunner().invoke(main, ["replay", str(log), *deal, *window, "--json", "-"])
    assert result.exit_code == 0, result.output
    output = json.loads(result.stdout)
    assert [one["processors"] for one in output["organizations"]] == [31, 15, 10, 8, 6]
    assert output["window"] == {"start": 100 * 86400, "length": 50000}
    ref, directcontr, *_ = output["policies"]
    assert (ref["policy"], ref["unfairness"]) == ("ref", 0.0)
    assert ref["p_tot"] == sum(one["parts"] for one in ref["organizations"]) > 0
    assert 0 < ref["utilization"] <= 1
    for policy in (ref, directcontr):
        total = sum(one["utility"] for one in policy["organizations"])
        contributions = [one["contribution"] for one in policy["organizations"]]
        assert sum(map(Fraction, contributions)) == total


def test_pandas_is_imported_for_frames_only() -> None:
    program = (
        "import sys; import shapleyprio.cli.offline.replaying, shapleyprio.lab.cli.experimenting; "
        "assert 'pandas' not in sys.modules; "
        "from shapleyprio.replay import starts_frame; assert 'pandas' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
