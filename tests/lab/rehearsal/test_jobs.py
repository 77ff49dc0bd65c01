"""From a site's accounting to jobs, accounts and nodes of a private Slurm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shapleyprio.config import load_config
from shapleyprio.lab.rehearsal.arms import ARMS, changed
from shapleyprio.lab.rehearsal.jobs import NOBODY, Days, SiteJobs, last_days, site_jobs
from shapleyprio.lab.rehearsal.site import read_site
from shapleyprio.lab.rehearsal.site_files import SiteError
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.replay.workloads.log import UNKNOWN
from tests.lab.rehearsal.site_files import HEADER, write_site

TODAY = ARMS["today"]

LINES = (
    # submitted, started, and ended long ago; waits at 10:00; runs at 10:00; on time; on time
    "1|physics|ann|long|low|2026-01-01T08:00:00|2026-01-01T08:00:00|600|4|COMPLETED|01:00:00",
    "2|physics|ann|long|low|2026-01-01T09:00:00|2026-01-01T10:30:00|600|4|COMPLETED|01:00:00",
    "3|biology|eve|long|normal|2026-01-01T09:00:00|2026-01-01T09:50:00|1800|2|TIMEOUT|00:30:00",
    "4|physics|ben|short|high|2026-01-01T10:10:00|2026-01-01T10:20:00|300|2|COMPLETED|00:10:00",
    "5|guests|joe|gone||2026-01-01T10:15:00|2026-01-01T11:20:00|300|1|COMPLETED|00:10:00",
    "6|physics|ann|short|low|2026-01-01T10:16:00|2026-01-01T10:20:00|300|13|COMPLETED|00:10:00",
)
TEN, ELEVEN = 1767261600, 1767265200


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_site(tmp_path)
    (tmp_path / "jobs.sacct").write_text("\n".join((HEADER, *LINES)) + "\n")
    return tmp_path


def jobs_in(folder: Path, days: Days | None = None, max_nodes: int = 1000) -> SiteJobs:
    site = read_site(folder / "slurm.conf", folder / "dump", folder / "qos")
    log = read_log(str(folder / "jobs.sacct"))
    days = days or Days(begin=TEN, since=TEN + 300, until=ELEVEN)
    return site_jobs(log, site, folder / "who.toml", days, max_nodes=max_nodes)


@pytest.fixture
def jobs(folder: Path) -> SiteJobs:
    return jobs_in(folder)


def numbers(jobs: SiteJobs) -> list[int]:
    found: list[int] = jobs.plan.workload.job.tolist()
    return found


def test_what_ran_or_waited_at_the_beginning_is_there_and_does_not_count(jobs: SiteJobs) -> None:
    workload = jobs.plan.workload
    assert numbers(jobs) == [2, 4, 3, 5]  # by organization, nobody's last
    assert workload.release.tolist() == [60, 600, 0, 900]
    assert workload.processing_time.tolist() == [600, 300, 20 * 60, 300]
    assert workload.limit.tolist() == [3600, 600, 20 * 60, 600]
    assert jobs.started.tolist() == [1800, 1200, 0, UNKNOWN]
    assert jobs.counted.tolist() == [False, True, False, True]


def test_where_a_site_has_more_nodes_each_stands_for_several_that_are_alike(folder: Path) -> None:
    conf = folder / "slurm.conf"
    conf.write_text(conf.read_text().replace("b[1-2]", "b[2-6]").replace("a[1-2],b1", "a[1-2],b2"))
    (folder / "who.toml").write_text((folder / "who.toml").read_text().replace("b1", "b2"))
    all_nodes, fewer = jobs_in(folder), jobs_in(folder, max_nodes=4)
    found = fewer.plan.site.conf
    assert list(found.nodes) == ["a1", "b2", "b3", "b5"]
    assert [node.processors for node in found.nodes.values()] == [8, 4, 8, 8]
    assert found.nodes["a1"].options == "CPUs=8 RealMemory=120000 Weight=5 Feature=fast"
    assert [node.gpus for node in found.nodes.values()] == ["", "gpu:2", "gpu:4", "gpu:4"]
    assert found.partitions["short"].nodes == ("a1", "b2")
    assert fewer.plan.workload.owned.tolist() == all_nodes.plan.workload.owned.tolist()
    assert fewer.plan.left_out["7 nodes"].startswith("4 stand for them, up to 2 alike in one")
    with pytest.raises(SiteError, match="nodes of 3 kinds cannot be played with 2; raise"):
        jobs_in(folder, max_nodes=2)


def test_jobs_wider_than_their_partition_are_left_out_and_counted(jobs: SiteJobs) -> None:
    assert jobs.plan.workload.left_out == {"too_wide": 1}


def test_nodes_and_jobs_of_no_organization_are_on_the_cluster_all_the_same(jobs: SiteJobs) -> None:
    plan = jobs.plan
    assert plan.workload.organizations == ("Science & Co", "biology", NOBODY)
    assert plan.workload.owned.tolist() == [8, 4, 4]
    assert plan.owners == {"a1": 0, "a2": 0, "b1": 1, "b2": 2}
    assert jobs.other_partition == 1


def test_a_job_keeps_its_account_partition_qos_and_limit(jobs: SiteJobs) -> None:
    options = [jobs.plan.options(job, TODAY) for job in range(4)]
    assert options[0] == (
        "--account=u1",
        "--partition=long",
        "--ntasks=4",
        "--time=60",
        "--qos=low",
    )
    assert options[1][:2] == ("--account=u2", "--partition=short")
    assert options[3] == ("--account=u4", "--partition=long", "--ntasks=1", "--time=10")


def test_memory_and_nodes_are_asked_for_where_the_log_knows_them(folder: Path) -> None:
    lines = (folder / "jobs.sacct").read_text().splitlines()
    asked = ["ReqTRES", "billing=4,cpu=4,mem=6000M,node=2", "", *["cpu=2,mem=400G,node=1"] * 4]
    (folder / "jobs.sacct").write_text("\n".join(map("|".join, zip(lines, asked, strict=True))))
    plan = jobs_in(folder).plan
    first, second = (plan.options(job, TODAY)[5:] for job in (0, 1))
    assert first == ()  # job 2 says nothing
    assert second == ("--mem-per-cpu=60000M",)  # all that a node has
    spec = plan.spec(TODAY, speed=50)
    assert spec.extra["SelectTypeParameters"] == "CR_Core_Memory"
    assert "DefMemPerCPU=2048" in spec.partition_options["long"]
    assert "memory" not in plan.left_out
    days = Days(begin=TEN - 7200, since=TEN - 7200, until=ELEVEN)
    earlier = jobs_in(folder, days).plan
    of_the_first = earlier.options(earlier.workload.job.tolist().index(1), TODAY)
    assert of_the_first[5:] == ("--nodes=2-4", "--mem-per-cpu=1500M")


def test_gpus_count_where_jobs_ask_for_them(folder: Path) -> None:
    lines = (folder / "jobs.sacct").read_text().splitlines()
    asked = [
        *("ReqTRES", "cpu=4,node=1", "cpu=4,gres/gpu=1,node=1", "cpu=2,gres/gpu:a100=2,gres/gpu=2"),
        *["cpu=2,node=1"] * 3,
    ]
    (folder / "jobs.sacct").write_text("\n".join(map("|".join, zip(lines, asked, strict=True))))
    plan = jobs_in(folder).plan
    assert [plan.options(job, TODAY)[5:] for job in (0, 1, 2)] == [
        ("--gpus=1",), (), ("--gpus=a100:2",),
    ]  # fmt: skip
    spec = plan.spec(TODAY, speed=50)
    assert spec.gres == {"b1": "gpu:2", "b2": "gpu:2"}
    assert spec.extra["AccountingStorageTRES"] == "gres/gpu"
    assert spec.extra["PriorityWeightTRES"] == "CPU=1000,GRES/gpu=3000"
    assert "GrpTRES=cpu=6,gres/gpu=2" in "\n".join(plan.associations(TODAY, "root"))
    assert "GPUs" not in plan.left_out


@pytest.mark.parametrize(
    ("asked", "constraint", "lost"),
    [
        ("fast", ["--constraint=fast"], 0),
        ("[fast*2&fast]", ["--constraint=[fast*2&fast]"], 0),
        ("fast|slow", [], 1),
        ("fast;true", [], 1),
    ],
)
def test_features_count_where_nodes_have_them(
    folder: Path, asked: str, constraint: list[str], lost: int
) -> None:
    lines = (folder / "jobs.sacct").read_text().splitlines()
    columns = ["Constraints", "", *[asked] * 5]
    (folder / "jobs.sacct").write_text("\n".join(map("|".join, zip(lines, columns, strict=True))))
    plan = jobs_in(folder).plan
    options = [option for job in range(4) for option in plan.options(job, TODAY)]
    assert [one for one in options if "constraint" in one] == constraint * 4
    told = "do not count for 4 jobs that name others than nodes have"
    assert plan.left_out.get("features") == (told if lost else None)


def test_without_constraints_features_do_not_count(jobs: SiteJobs) -> None:
    assert jobs.plan.left_out["features"].endswith("names any in a column Constraints")


def test_without_requests_gpus_do_not_count(jobs: SiteJobs) -> None:
    assert jobs.plan.left_out["GPUs"].startswith("do not count, since no job")
    spec = jobs.plan.spec(TODAY, speed=50)
    assert (spec.gres, spec.extra["PriorityWeightTRES"]) == ({}, "CPU=1000")
    assert "gpu" not in "\n".join(jobs.plan.associations(TODAY, "root"))
    assert "gpu" not in spec.partition_options["long"].lower()


def test_without_requests_memory_does_not_count_and_this_is_said(jobs: SiteJobs) -> None:
    assert jobs.plan.left_out["memory"] == "does not count, since the log has no column ReqTRES"
    spec = jobs.plan.spec(TODAY, speed=50)
    assert not any("DefMem" in options for options in spec.partition_options.values())


def test_a_request_that_cannot_be_read_is_refused(folder: Path) -> None:
    lines = (folder / "jobs.sacct").read_text().splitlines()
    text = "\n".join(
        f"{line}|{'ReqTRES' if number == 0 else 'mem=much'}" for number, line in enumerate(lines)
    )
    (folder / "jobs.sacct").write_text(text)
    with pytest.raises(SiteError, match="ReqTRES: 'much' is not an amount"):
        jobs_in(folder)


def test_each_user_of_an_account_has_an_account_with_the_users_shares_and_limits(
    jobs: SiteJobs,
) -> None:
    text = "\n".join(jobs.plan.associations(TODAY, "root"))
    named = "Account - 'u1':Description='u1':Organization='rehearsal'"
    assert f"{named}:QOS='normal,low,high,usage':Fairshare=3:MaxJobs=4" in text
    assert text.index("Account - 'science'") < text.index("Account - 'physics'")
    assert text.index("Account - 'physics'") < text.index("Parent - 'physics'\nAccount - 'u1'")
    assert "Parent - 'u4'\nUser - 'root':DefaultAccount='u4':Fairshare=1" in text
    assert "Parent - 'guests'\nAccount - 'u4'" in text


def test_usage_from_before_is_known_and_decays(folder: Path, jobs: SiteJobs) -> None:
    half = 0.5 ** ((7200 - 600) / (7 * 86_400))
    assert jobs.plan.usage == {
        ("physics", "ann", 0): pytest.approx(2400 * half),
        ("biology", "eve", 1): 600 * 2,  # of the job that runs, so far
    }
    with (folder / "weights.conf").open("a") as file:
        file.write("PriorityDecayHalfLife=0\n")
    assert jobs_in(folder).plan.usage["physics", "ann", 0] == 2400
    with (folder / "weights.conf").open("a") as file:
        file.write("PriorityDecayHalfLife=soon\n")
    with pytest.raises(SiteError, match="PriorityDecayHalfLife: is not a time"):
        jobs_in(folder)


def test_under_fair_share_alone_organizations_have_shares_by_their_processors(
    jobs: SiteJobs,
) -> None:
    text = "\n".join(jobs.plan.associations(ARMS["fairshare"], "root"))
    for handle, processors in (("organization1", 8), ("organization2", 4), ("organization3", 4)):
        assert f"Account - '{handle}':" in text
        assert f":Fairshare={processors}\n" in text
    assert "Parent - 'organization1'\nAccount - 'u1'" in text
    assert "science" not in text


def test_the_daemon_knows_whose_accounts_and_nodes_are_whose(
    jobs: SiteJobs, tmp_path: Path
) -> None:
    file = tmp_path / "tables.toml"
    file.write_text(jobs.plan.organizations(ARMS["directcontr"]))
    first, second = load_config(file).organizations
    assert (first.accounts, first.nodes) == (("u1", "u2"), ("a1", "a2"))
    assert (second.accounts, second.nodes) == (("u3",), ("b1",))


def test_the_daemon_knows_who_stands_together(folder: Path, tmp_path: Path) -> None:
    with (folder / "who.toml").open("a") as organizations:
        organizations.write('parent = "Science & Co"\n')
    plan = jobs_in(folder).plan
    assert plan.workload.unions == (0, 0, 1)  # the last one is nobody
    file = tmp_path / "tables.toml"
    file.write_text(plan.organizations(ARMS["shapley"]))
    assert load_config(file).parents == {"organization2": "organization1"}


def test_the_cluster_is_the_sites_with_an_arms_settings(jobs: SiteJobs) -> None:
    spec = jobs.plan.spec(changed(1, "PriorityWeightAge=7 priorityfavorsmall=YES"), speed=50)
    assert spec.partitions == {"short": ("a1", "a2", "b1"), "long": ("a1", "a2", "b1", "b2")}
    assert spec.cpus == dict.fromkeys(("a1", "a2", "b1", "b2"), 4)
    assert spec.extra["PriorityWeightAge"] == "7"
    assert spec.extra["PriorityFavorSmall"] == "YES"
    assert spec.extra["PriorityWeightFairshare"] == "50000"
    assert spec.extra["PriorityWeightJobSize"] == ""  # Slurm's own
    assert spec.extra["SelectTypeParameters"] == "CR_Core"
    assert spec.extra["OverTimeLimit"] == "UNLIMITED"


def test_a_site_that_only_suspends_jobs_preempts_none(folder: Path) -> None:
    text = (folder / "slurm.conf").read_text().replace("REQUEUE,GANG", "SUSPEND,GANG")
    (folder / "slurm.conf").write_text(text)
    plan = jobs_in(folder).plan
    settings = plan.spec(TODAY, speed=50).extra
    assert (settings["PreemptType"], settings["PreemptMode"]) == ("", "OFF")
    assert not plan.preempts(TODAY)
    assert plan.preempts(changed(1, "PreemptMode=REQUEUE"))


def test_only_settings_that_are_taken_over_can_be_changed() -> None:
    for text in ("PriorityWeightAge", "SlurmUser=root", "a b"):
        with pytest.raises(SiteError, match="--set: "):
            changed(1, text)


def test_by_default_the_last_day_of_the_log_is_rehearsed(folder: Path) -> None:
    log = read_log(str(folder / "jobs.sacct"))
    last = int(log.release.max()) + 1
    days = last_days(log, 3600, since=None, warm_up=60)
    assert (days.begin, days.since, days.until) == (last - 3660, last - 3600, last)
    first = int(log.release.min())
    days = last_days(log, 3600, since=first - 3599, warm_up=60)
    assert (days.since, days.until) == (first - 3599, first + 1)
    for since in (first - 3600, TEN + 86_400):
        with pytest.raises(SiteError, match="no job was released on these days"):
            last_days(log, 3600, since=since, warm_up=60)


def test_days_without_a_job_are_refused(folder: Path) -> None:
    with pytest.raises(SiteError, match="no job was released on these days"):
        jobs_in(folder, Days(begin=TEN, since=TEN + 1200, until=ELEVEN))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7|a b|ann|long|low|", "account: 'a b' is not a name in Slurm"),
        ("7|physics|ann|long|x'y|", 'qos: "x\'y" is not a name in Slurm'),
    ],
)
def test_names_that_sacctmgr_would_take_for_something_else_are_refused(
    folder: Path, line: str, message: str
) -> None:
    with (folder / "jobs.sacct").open("a") as file:
        file.write(f"{line}2026-01-01T10:10:00|2026-01-01T10:20:00|300|2|COMPLETED|00:10:00\n")
    with pytest.raises(SiteError) as caught:
        jobs_in(folder)
    assert message in str(caught.value)


def test_an_organization_that_names_processors_gets_about_as_many_of_unowned_nodes(
    folder: Path,
) -> None:
    text = (folder / "who.toml").read_text().replace('nodes = ["b1"]', "processors = 6")
    (folder / "who.toml").write_text(text)
    plan = jobs_in(folder).plan
    assert plan.owners == {"a1": 0, "a2": 0, "b1": 1, "b2": 2}
    assert np.array_equal(plan.workload.owned, [8, 4, 4])
