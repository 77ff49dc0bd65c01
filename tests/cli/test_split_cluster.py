"""What commands, metrics and the page show of a cluster that pools split."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs

import pytest
from click.testing import CliRunner
from prometheus_client import generate_latest
from sqlalchemy import text

from shapleyprio.cli import main
from shapleyprio.cli.answers import Answers, explained
from shapleyprio.cli.offline import monthly
from shapleyprio.common.errors import ConfigError, ReplayError
from shapleyprio.daemon.answering.inquiries import Inquiry
from shapleyprio.daemon.ledgers import segment_meant, stored_cluster, stored_ledgers
from shapleyprio.daemon.serving import Site
from shapleyprio.daemon.serving.overview import Overviews
from shapleyprio.daemon.serving.page import render
from shapleyprio.daemon.serving.questions import Askers, Questions
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.slurm.access import CommandLineAccess
from shapleyprio.store import Store
from tests.cli.conftest import CommandLine, speaking_to
from tests.daemon.pools.test_split_clusters import (
    CPU_NODES,
    CPU_OF,
    CPU_POOL,
    GPU_NODES,
    GPU_OF,
    GPU_POOL,
    MEMBERS,
    Cluster,
    Steered,
    both,
    split,
)
from tests.daemon.serving.sites import HOST, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result

    from shapleyprio.cli.options.types import Month
    from shapleyprio.slurm.port import Slurm

LEDGERS = ["c1/cpu", "c1/gpu"]


def work(slurm: Cluster) -> None:
    """A job of physics waits for GPUs, one of biology for CPUs and one for GPUs."""
    for account, processors, partition in (
        ("biology", 8, "cpu"),
        ("physics", 32, "gpu"),
        ("biology", 1, "cpu"),
        ("physics", 1, "gpu"),
        ("biology", 1, "gpu"),
    ):
        slurm.submit(account, processors=processors, processing_time=10**5, partition=partition)
    slurm.advance(slurm.now + 50)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Steered]:
    """After a cycle."""
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}", create=True) as store:
        cluster = both(store)
        work(cluster.slurm)
        cluster.run()
        yield cluster


@pytest.fixture
def steered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line of that cluster, after a cycle of the daemon."""
    slurm = Cluster("c1", {**CPU_NODES, **GPU_NODES}, {**CPU_OF, **GPU_OF})
    work(slurm)
    shell = CommandLine(tmp_path, cast("Any", slurm))
    shell.write(shell.file, *MEMBERS, pool=[CPU_POOL, GPU_POOL])
    with speaking_to(slurm.connect, monkeypatch):
        result = shell.run("daemon", "--once")
        assert result.exit_code == 0, result.output
        yield shell


@pytest.fixture
def asked(steered: CommandLine) -> Iterator[str]:
    """Where a daemon of that cluster can be asked."""
    url = f"unix:{steered.folder / 'socket'}"
    address = f"{HOST}:{free_port()}"
    metrics, service = {"address": address}, {"socket": str(steered.folder / "socket")}
    configured = split(metrics=metrics, service=service)
    access = CommandLineAccess(timeout_seconds=5)
    with steered.store() as store:
        answers = Answers(
            store.cluster("c1"),
            lambda _: cast("Slurm", steered.slurm),
            lambda: configured,
            lambda _: None,
        )
        site = Site(
            Metrics("c1/cpu").registry,
            store.cluster("c1"),
            lambda _: [],
            lambda _: Questions(Askers(access), answers),
        )
        site.open(configured)
        yield url
        site.close()


def test_commands_read_each_pool_or_the_one_that_is_meant(cluster: Steered) -> None:
    store, configured = cluster.store, split()
    assert store.clusters() == LEDGERS
    assert [one.cluster for one in stored_ledgers(configured, store)] == LEDGERS
    assert [one.cluster for one in stored_ledgers(configured, store, "gpu")] == ["c1/gpu"]
    assert stored_cluster(configured, store, "cpu").cluster == "c1/cpu"
    with pytest.raises(ConfigError, match="c1 is in cpu, gpu; name one of them"):
        stored_cluster(configured, store)
    with pytest.raises(ConfigError, match="c1 is not in pool 'tape'; it is in cpu, gpu"):
        segment_meant(configured, "c1", "tape")


def test_explain_goes_by_the_pool_of_the_job(cluster: Steered) -> None:
    ledgers = stored_ledgers(split(), cluster.store)

    def first_line(job: int) -> str:
        inquiry = Inquiry("explain", "job", str(job))
        return explained(split(), ledgers, cluster.slurm, inquiry).lines[0]

    assert [first_line(job) for job in (3, 4, 5)] == ["Pool cpu:", "Pool gpu:", "Pool gpu:"]
    of_user = Inquiry("explain", "account", "biology")
    lines = explained(split(), ledgers, cluster.slurm, of_user).lines
    assert [line for line in lines if line.startswith("Pool ")] == ["Pool cpu:", "Pool gpu:"]


@pytest.mark.parametrize("way", ["store", "daemon"])
def test_status_shows_all_pools_or_the_one_that_is_meant(
    steered: CommandLine, asked: str, way: str
) -> None:
    def run(*arguments: str) -> Result:
        if way == "store":
            return steered.run("status", *arguments)
        return CliRunner().invoke(main, ["status", *arguments, "--url", asked])

    def shown(*arguments: str) -> list[str]:
        result = run(*arguments)
        assert result.exit_code == 0, result.output
        return re.findall("^c1[^,]*", result.stdout, flags=re.MULTILINE)

    assert shown() == LEDGERS
    assert shown("--pool", "gpu") == ["c1/gpu"]
    assert json.loads(run("--pool", "cpu", "--json").stdout)["cluster"] == "c1/cpu"
    refused = run("--pool", "tape")
    assert refused.exit_code == 2
    (line,) = refused.stderr.splitlines()
    assert line.endswith("--pool: c1 is not in pool 'tape'; it is in cpu, gpu")


def test_without_slurm_a_job_is_explained_by_each_pool(steered: CommandLine) -> None:
    of_one = json.loads(steered.run("explain", "4", "--json").stdout)
    assert (of_one["cluster"], of_one["pool"]["name"], of_one["rank"]) == ("c1/gpu", "gpu", 2)
    steered.slurm.take_down("slurmctld")
    result = steered.run("explain", "4")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "It is not known in which pool job 4 waits."
    assert [line for line in lines if line.startswith("Pool ")] == ["Pool cpu:", "Pool gpu:"]
    assert (
        "That is rank 1 of 2 and gives its jobs 200000 points." in lines[: lines.index("Pool gpu:")]
    )
    assert (
        "That is rank 2 of 2 and gives its jobs 100000 points." in lines[lines.index("Pool gpu:") :]
    )
    found = json.loads(steered.run("explain", "4", "--json").stdout)["pools"]
    assert [(one["pool"]["name"], one["rank"], one["slurm_away"]) for one in found] == [
        ("cpu", 1, "slurmctld does not answer"),
        ("gpu", 2, "slurmctld does not answer"),
    ]
    of_account = steered.run("explain", "--account", "biology")
    assert "Account biology had 1 job running; its pending jobs are not known." in of_account.stdout
    strange = steered.run("explain", "99")
    assert (strange.exit_code, len(strange.stderr.splitlines())) == (3, 1)
    assert "slurmctld does not answer" in strange.stderr


def test_history_and_ownership_are_of_the_pool_that_is_meant(steered: CommandLine) -> None:
    def rows(*arguments: str) -> Any:
        result = steered.run(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    for pool, waiting, nodes in (("cpu", 0, {"a1", "b1"}), ("gpu", 1, {"g1", "g2"})):
        standings = rows("history", "--pool", pool)
        pending = {row["organization"]: row["pending"] for row in standings}
        assert pending == {"physics": waiting, "biology": 1}
        assert [row["number"] for row in rows("history", "--pool", pool, "--cycles")] == [1]
        assert len(rows("history", "--pool", pool, "--pushes")) == 3  # in Slurm there is one queue
        assert rows("history", "--pool", pool, "--drift") == []
        listed = rows("ownership", "--pool", pool)
        assert listed["cluster"] == f"c1/{pool}"
        assert {one["name"] for one in listed["tenures"] if one["kind"] == "node"} == nodes
    for command in (["history"], ["ownership"], ["ownership", "recount", "--since", "always"]):
        result = steered.run(*command)
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert line.endswith("--pool: c1 is in cpu, gpu; name one of them")


def test_writes_are_the_clusters_and_need_no_pool(steered: CommandLine) -> None:
    (push,) = json.loads(steered.run("history", "--job", "3", "--json").stdout)
    assert push["key"] == "3"
    result = steered.run("history", "--pushes", "--json")
    assert (result.exit_code, len(json.loads(result.stdout))) == (0, 3)
    assert steered.run("history", "--pushes", "--pool", "tape").exit_code == 2


def test_ownership_is_corrected_in_one_pool_alone(steered: CommandLine) -> None:
    def balances(pool: str) -> dict[str, int]:
        found = json.loads(steered.run("history", "--pool", pool, "--json").stdout)
        last = max(row["cycle"] for row in found)
        return {row["organization"]: row["score"] for row in found if row["cycle"] == last}

    before = {pool: balances(pool) for pool in ("cpu", "gpu")}
    set_ = ["ownership", "set", "g2", "physics", "--since", "always", "--pool"]
    assert steered.run(*set_, "cpu").exit_code == 2
    for arguments in ([], ["--yes"]):
        result = steered.run(*set_, "gpu", *arguments)
        assert result.exit_code == 0, result.output
    steered.run("daemon", "--once")
    assert balances("cpu") == before["cpu"]
    assert set(balances("gpu").values()) == {0} != set(before["gpu"].values())


def test_each_pool_has_a_report_of_its_own(steered: CommandLine) -> None:
    directory = steered.folder / "reports"
    result = steered.run("report", "--month", "2027-01", "--output", str(directory))
    assert result.exit_code == 0, result.output
    names = sorted(file.name for file in directory.iterdir())
    assert names == [
        f"c1-{pool}-2027-01.{ending}" for pool in ("cpu", "gpu") for ending in ("html", "json")
    ]


def test_a_pool_with_nothing_of_a_month_stops_no_others_report(
    steered: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def report_of(ledgers: set[str]) -> Result:
        written: list[str] = []

        def read(_store: Store, _month: Month, ledger: str) -> str:
            if ledger not in ledgers:
                raise ReplayError("holds nothing of 2027-01")
            return ledger

        def write(*arguments: Any, **_options: Any) -> None:
            written.append(arguments[-1])

        monkeypatch.setattr(monthly, "read_month", read)
        monkeypatch.setattr(monthly, "_write_report", write)
        result = steered.run("report", "--month", "2027-01", "--output", "r")
        assert set(written) == ledgers
        return result

    result = report_of({"c1/cpu"})
    assert result.exit_code == 0, result.output
    assert result.stderr == "shapleyprio: c1/gpu: holds nothing of 2027-01\n"
    assert report_of(set()).exit_code == 2


@pytest.mark.parametrize("way", ["store", "daemon"])
def test_a_pool_that_has_just_been_added_hides_no_other(
    steered: CommandLine, asked: str, way: str
) -> None:
    with steered.store() as store, store.cluster("c1/gpu").transaction() as rows:
        for table in ("standing", "cycle"):
            rows.history._connection.execute(text(f"DELETE FROM {table} WHERE cluster = 'c1/gpu'"))

    def run(*arguments: str) -> Result:
        if way == "store":
            return steered.run("status", *arguments)
        return CliRunner().invoke(main, ["status", *arguments, "--url", asked])

    result = run()
    assert result.exit_code == 1, result.output
    assert "no cycle on cluster c1/gpu has succeeded yet" in result.stdout.splitlines()
    first, second = json.loads(run("--json").stdout)["pools"]
    assert (first["cluster"], second["cluster"]) == ("c1/cpu", "c1/gpu")
    assert second["error"] == "no cycle on cluster c1/gpu has succeeded yet"
    alone = run("--pool", "gpu")
    assert (alone.exit_code, len(alone.stderr.splitlines())) == (4, 1)


def test_metrics_have_each_ledger_as_a_cluster_of_its_own(cluster: Steered) -> None:
    metrics = Metrics("c1/cpu")
    metrics.leads = lambda: True
    for ledger, report in cluster.run().items():
        metrics.of(ledger).publish(report)
    shown = generate_latest(metrics.registry).decode()
    assert 'shapleyprio_leader{cluster="c1"} 1.0' in shown
    for ledger, processors in (("c1/cpu", 4), ("c1/gpu", 2)):
        labels = f'{{cluster="{ledger}",organization="physics"}}'
        assert f"shapleyprio_organization_owned_processors{labels} {processors}.0" in shown
    assert shown.count("# TYPE shapleyprio_organization_score ") == 1
    metrics.of("c1/gpu").publish_failure("slurm_refused")
    metrics.withdraw_others({"c1/gpu"})
    assert "shapleyprio_organization_score" not in generate_latest(metrics.registry).decode()


def test_the_page_shows_one_pool_and_leads_to_the_others(cluster: Steered) -> None:
    overviews = Overviews(cluster.lease.store, lambda: None)
    overviews.ledgers = LEDGERS
    assert overviews.latest().cluster == "c1/cpu"
    assert overviews.latest("no such").cluster == "c1/cpu"
    gpus = overviews.latest("gpu")
    assert (gpus.cluster, gpus.as_json()["other_ledgers"]) == ("c1/gpu", ["c1/cpu"])
    page = render(gpus)
    assert "Fairness on c1/gpu" in page
    assert '<a href="?pool=cpu">c1/cpu</a>' in page


@pytest.mark.parametrize("pool", ["", "cpu", "gpu"])
def test_the_page_of_a_pool_leads_to_its_own_json(cluster: Steered, pool: str) -> None:
    overviews = Overviews(cluster.lease.store, lambda: None)
    overviews.ledgers = LEDGERS
    shown = overviews.latest(pool)
    (link,) = re.findall(r'<a href="api/status([^"]*)"', render(shown))
    (meant,) = parse_qs(link.removeprefix("?")).get("pool", [""])
    assert overviews.latest(meant).cluster == shown.cluster
