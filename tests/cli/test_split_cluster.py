"""What commands, metrics and the page show of a cluster that pools split."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client import generate_latest

from shapleyprio.cli.answering import explained
from shapleyprio.cli.common import segment_meant, stored_cluster, stored_ledgers
from shapleyprio.config import ConfigError
from shapleyprio.service.inquiries import Inquiry
from shapleyprio.service.metrics import Metrics
from shapleyprio.serving.overview import Overviews
from shapleyprio.serving.page import render
from shapleyprio.store import Store
from tests.service.test_split_clusters import Steered, both, split

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEDGERS = ["c1/cpu", "c1/gpu"]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Steered]:
    """After a cycle; a job of physics waits for GPUs, one of biology for CPUs and one for GPUs."""
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}", create=True) as store:
        cluster = both(store)
        for account, processors, partition in (
            ("biology", 8, "cpu"),
            ("physics", 32, "gpu"),
            ("biology", 1, "cpu"),
            ("physics", 1, "gpu"),
            ("biology", 1, "gpu"),
        ):
            cluster.slurm.submit(
                account, processors=processors, processing_time=10**5, partition=partition
            )
        cluster.wait(50)
        cluster.run()
        yield cluster


def test_commands_read_each_pool_or_the_one_that_is_meant(cluster: Steered) -> None:
    store, configured = cluster.store, split()
    assert store.clusters() == LEDGERS
    assert [one.cluster for one in stored_ledgers(configured, store)] == LEDGERS
    assert [one.cluster for one in stored_ledgers(configured, store, "gpu")] == ["c1/gpu"]
    assert stored_cluster(configured, store, "cpu").cluster == "c1/cpu"
    with pytest.raises(ConfigError, match="c1 is in cpu, gpu; name the one that is meant"):
        stored_cluster(configured, store)
    with pytest.raises(ConfigError, match="c1 is in no pool 'tape'; it is in cpu, gpu"):
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


def test_metrics_have_each_ledger_as_a_cluster_of_its_own(cluster: Steered) -> None:
    metrics = Metrics("c1/cpu")
    metrics.leads = lambda: True
    for ledger, report in cluster.run().items():
        metrics.of(ledger).publish(report)
    text = generate_latest(metrics.registry).decode()
    assert 'shapleyprio_leader{cluster="c1"} 1.0' in text
    for ledger, processors in (("c1/cpu", 4), ("c1/gpu", 2)):
        labels = f'{{cluster="{ledger}",organization="physics"}}'
        assert f"shapleyprio_organization_owned_processors{labels} {processors}.0" in text
    assert text.count("# TYPE shapleyprio_organization_score ") == 1
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
