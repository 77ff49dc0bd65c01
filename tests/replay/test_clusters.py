"""The logs of two clusters as one game, against one log that is put together by hand.

Both clusters number their jobs alike and have nodes and partitions of the same names.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pytest

from shapleyprio.config import Organization
from shapleyprio.replay.errors import LogError, WorkloadError
from shapleyprio.replay.logs.clusters import (
    claims_of_files,
    consortium_of_claims,
    pooled_consortium,
)
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.replay.logs.stored import users_after_end
from shapleyprio.replay.measures.measures import measure
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.nodes import kept_to_clusters, kept_to_partitions
from shapleyprio.replay.workloads.organizations import consortium_of
from shapleyprio.replay.workloads.workload import Consortium, Workload, workload_of
from shapleyprio.store import Store, UserAfterEnd
from tests.replay.certificate import processors_started
from tests.replay.test_bays import assert_is_ref
from tests.store.examples import BEGIN, placed_run, watermark, work_after_end

HEADER = "JobIDRaw|Account|User|Partition|Submit|Start|ElapsedRaw|AllocCPUS|NodeList|Cluster"
CLUSTERS = ("c1", "c2")
ORGANIZATIONS = {
    "c1": (
        Organization(name="physics", accounts=("physics",), nodes=("n1",)),
        Organization(name="biology", accounts=("biology",), nodes=("n2",)),
    ),
    "c2": (
        Organization(name="biology", accounts=("bio",), nodes=("n1",)),
        Organization(name="chemistry", accounts=("chem",), nodes=("n2",)),
        Organization(name="physics", accounts=("phys",), nodes=("n3",)),
    ),
}
ACCOUNTS = {"c1": ("physics", "biology"), "c2": ("phys", "bio", "chem")}
NODES = {"cpu": ("n1", "n2"), "gpu": ("n2", "n3")}
BY_HAND = (
    Organization(name="physics", accounts=("physics", "phys"), nodes=("c1-n1", "c2-n3")),
    Organization(name="biology", accounts=("biology", "bio"), nodes=("c1-n2", "c2-n1")),
    Organization(name="chemistry", accounts=("chem",), nodes=("c2-n2",)),
)
"""What the tables of both say together, where every node has its cluster in its name."""


class Row(NamedTuple):
    cluster: str
    number: int
    account: str
    partition: str
    submit: int
    start: int
    elapsed: int
    processors: int
    node: str


def rows(seed: int) -> list[Row]:
    """Jobs of both clusters, in the order in which sacct prints them."""
    random = Random(seed)
    found = []
    for cluster in CLUSTERS:
        for number in range(1, 16):
            partition = random.choice(("cpu", "cpu", "gpu") if cluster == "c2" else ("cpu",))
            submit = 1_700_000_000 + random.randrange(30)
            found.append(
                Row(
                    cluster,
                    number,
                    random.choice(ACCOUNTS[cluster]),
                    partition,
                    submit,
                    submit + random.randrange(20),
                    random.randrange(1, 15),
                    random.randrange(1, 3),
                    random.choice(NODES[partition]),
                )
            )
    return found


def line(row: Row, number: int, *, prefix: str = "", partition: str = "", cluster: str = "") -> str:
    cells = (number, row.account, "ann", partition or row.partition, row.submit, row.start)
    return "|".join(map(str, (*cells, row.elapsed, row.processors, f"{prefix}{row.node}", cluster)))


def written(path: Path, lines: list[str]) -> str:
    path.write_text("\n".join((HEADER, *lines)) + "\n")
    return str(path)


def pool_log(folder: Path, found: list[Row]) -> Log:
    """A file of each cluster."""
    return read_log(
        [
            written(
                folder / f"{cluster}.sacct",
                [line(row, row.number, cluster=cluster) for row in found if row.cluster == cluster],
            )
            for cluster in CLUSTERS
        ]
    )


def log_by_hand(folder: Path, found: list[Row], *, partitions: bool = True) -> Log:
    """One cluster, whose nodes and partitions bear the names of those they really are at."""
    lines = [
        line(
            row,
            number,
            prefix=f"{row.cluster}-",
            partition=f"{row.cluster}-{row.partition}" if partitions else row.cluster,
        )
        for number, row in enumerate(found, start=1)
    ]
    return read_log(written(folder / "by-hand.sacct", lines))


def workloads(log: Log, by_hand: Log) -> tuple[Workload, Workload]:
    members = pooled_consortium(
        [consortium_of(one, ORGANIZATIONS[one.cluster]) for one in log.clusters]
    )
    together = consortium_of(by_hand, BY_HAND)
    return (
        replace(workload_of(log, members, horizon=25), placement="least-loaded"),
        replace(workload_of(by_hand, together, horizon=25), placement="least-loaded"),
    )


def assert_same_game(ours: Workload, by_hand: Workload) -> None:
    assert ours.organizations == by_hand.organizations
    assert ours.owned.tolist() == by_hand.owned.tolist()
    for column in ("organization", "release", "processing_time", "processors", "start", "position"):
        assert getattr(ours, column).tolist() == getattr(by_hand, column).tolist(), column
    for policy in ("ref", "directcontr", "fairshare", "recorded"):
        found, expected = run_policy(ours, policy), run_policy(by_hand, policy)
        assert processors_started(found) == processors_started(expected), policy
        assert found.contribution == expected.contribution, policy
        assert measure(ours, found) == measure(by_hand, expected), policy


@pytest.mark.parametrize("seed", range(4))
def test_two_logs_are_the_game_of_the_log_that_is_put_together_by_hand(
    seed: int, tmp_path: Path
) -> None:
    found = rows(seed)
    log, by_hand = pool_log(tmp_path, found), log_by_hand(tmp_path, found)
    assert [one.cluster for one in log.clusters] == list(CLUSTERS)
    assert_same_game(*workloads(log, by_hand))


@pytest.mark.parametrize("seed", range(4))
def test_with_partitions_each_cluster_keeps_its_own_jobs(seed: int, tmp_path: Path) -> None:
    found = rows(seed)
    log, by_hand = pool_log(tmp_path, found), log_by_hand(tmp_path, found)
    plain, merged = workloads(log, by_hand)
    members = pooled_consortium(
        [consortium_of(one, ORGANIZATIONS[one.cluster]) for one in log.clusters]
    )
    ours = kept_to_partitions(log, members, plain)
    theirs = kept_to_partitions(by_hand, consortium_of(by_hand, BY_HAND), merged)
    assert ours.bays is not None
    assert set(ours.bays.named) == {"c1/cpu", "c2/cpu", "c2/gpu"}
    assert_same_game(ours, theirs)
    assert_is_ref(ours)


@pytest.mark.parametrize("seed", range(4))
def test_what_a_cluster_does_alone_adds_up_as_balances_do(seed: int, tmp_path: Path) -> None:
    found = rows(seed)
    log = pool_log(tmp_path, found)
    by_hand = log_by_hand(tmp_path, found, partitions=False)
    plain, merged = workloads(log, by_hand)
    members = pooled_consortium(
        [consortium_of(one, ORGANIZATIONS[one.cluster]) for one in log.clusters]
    )
    ours = kept_to_clusters(log, members, plain)
    together = consortium_of(by_hand, BY_HAND)
    assert_same_game(ours, kept_to_partitions(by_hand, together, merged))
    assert_is_ref(ours)

    sums = np.zeros((2, len(ours.organizations)), dtype=object)
    for one, own in zip(log.clusters, members.clusters, strict=True):
        alone = workload_of(one, own, window=plain.window, horizon=25)
        recorded = run_policy(alone, "recorded")
        assert recorded.contribution is not None
        sums += np.array([measure(alone, recorded).utilities, recorded.contribution], dtype=object)
    recorded = run_policy(ours, "recorded")
    assert recorded.contribution is not None
    assert [list(measure(ours, recorded).utilities), list(recorded.contribution)] == sums.tolist()


def test_one_export_of_both_clusters_is_that_of_each(tmp_path: Path) -> None:
    found = rows(0)
    log = pool_log(tmp_path, found)
    random = Random(1)
    mixed = [line(row, row.number, cluster=row.cluster) for row in found]
    order = sorted(mixed, key=lambda text: (random.random() < 0.5, text.rpartition("|")[2]))
    read = read_log(written(tmp_path / "both.sacct", [*order, line(found[0], 99)]))
    assert read.left_out == {"unknown_cluster": 1}
    for one, expected in zip(read.clusters, log.clusters, strict=True):
        assert one.cluster == expected.cluster
        assert sorted(one.job.tolist()) == sorted(expected.job.tolist())
    only = read_log(str(tmp_path / "both.sacct"), clusters=["c2"])
    assert (only.cluster, only.clusters, only.left_out) == ("c2", (), {"unknown_cluster": 1})
    assert sorted(only.job.tolist()) == sorted(log.clusters[1].job.tolist())
    with pytest.raises(LogError, match=r"jobs are of c1, c2; c3 is not among them"):
        read_log(str(tmp_path / "both.sacct"), clusters=["c3"])


def test_equal_numbers_are_different_jobs_unless_a_federation_gave_them(tmp_path: Path) -> None:
    row = rows(0)[0]
    ran, moved = line(row, 7, cluster="c1"), line(row, 2**26 + 7, cluster="c1")
    revoked = line(row._replace(elapsed=0), 2**26 + 7, cluster="c2")
    files = [
        written(tmp_path / "c1", [ran, moved]),
        written(tmp_path / "c2", [ran[:-2] + "c2", revoked]),
    ]
    log = read_log(files)
    assert [one.job.tolist() for one in log.clusters] == [[7, 2**26 + 7], [7]]
    assert log.left_out == {"repeated": 1}


def test_a_column_that_older_exports_lack_is_unknown_there(tmp_path: Path) -> None:
    newer = written(tmp_path / "newer", [line(rows(0)[0], 7, cluster="c1")])
    older = tmp_path / "older"
    lines = [HEADER, line(rows(0)[0], 7), line(rows(0)[1], 8)]
    older.write_text("".join(f"{text.rpartition('|')[0]}\n" for text in lines))
    for files in ([newer, str(older)], [str(older), newer]):
        log = read_log(files)
        assert sorted(log.job.tolist()) == [7, 8]
        assert (log.cluster, log.left_out) == ("c1", {"repeated": 1})


def consortium_of_files(files: dict[str, Path], log: Log) -> Consortium:
    return consortium_of_claims(claims_of_files(files, log))


def test_files_of_organizations_belong_to_clusters(tmp_path: Path) -> None:
    log = pool_log(tmp_path, rows(0))
    shared = tmp_path / "all.toml"
    shared.write_text(
        '[[organization]]\nname = "physics"\naccounts = ["physics", "phys"]\nnodes = ["n1"]\n'
    )
    own = tmp_path / "c2.toml"
    own.write_text('[[organization]]\nname = "bio"\naccounts = ["bio"]\nprocessors = 5\n')
    both = consortium_of_files({"": shared, "c2": own}, log)
    assert both.organizations == ("physics", "bio")
    assert [one.owned.tolist() for one in both.clusters] == [[int(both.owned[0]), 0], [0, 5]]
    with pytest.raises(WorkloadError, match=r"jobs are of c1, c2, and there are organizations for"):
        consortium_of_files({"": shared, "c3": own}, log)
    with pytest.raises(WorkloadError, match=r"c2: no file names its organizations"):
        consortium_of_files({"c1": shared}, log)
    with pytest.raises(WorkloadError, match=r"`processors` bio brings, but not at which cluster"):
        consortium_of_files({"": own}, log)


def test_a_cluster_may_have_jobs_of_guests_only(tmp_path: Path) -> None:
    log = pool_log(tmp_path, rows(0))
    file = tmp_path / "all.toml"
    table = '[[organization]]\nname = "biology"\naccounts = ["{}"]\nnodes = ["n1"]\n'
    file.write_text(table.format("bio"))
    both = consortium_of_files({"": file}, log)
    jobs = [int((one.organization == 0).sum()) for one in both.clusters]
    assert jobs[0] == 0 < jobs[1]
    file.write_text(table.format("nobody"))
    with pytest.raises(WorkloadError, match="c1: none of its jobs belongs to an organization"):
        consortium_of_files({"": file}, log)


def test_a_store_has_the_runs_of_all_clusters_of_a_pool(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with Store.open(url, create=True) as store:
        for cluster, owner in (("c1", "physics"), ("c2", "biology"), ("c3", "biology")):
            with store.cluster(cluster).transaction() as place:
                place.ledger.save_watermark(watermark())
                runs = {7: BEGIN + 100, 8: None, 9: BEGIN}
                place.runs.put([placed_run(n, end=end, owners=(owner,)) for n, end in runs.items()])
    log = read_log(url, clusters=["c2", "c1"])
    assert log.left_out == {"unknown_processing_time": 2, "zero_processing_time": 2}
    members = [Organization(name=name) for name in ("physics", "biology")]
    consortium = pooled_consortium([consortium_of(one, members) for one in log.clusters])
    plain = workload_of(log, consortium)
    workload = kept_to_clusters(log, consortium, plain)
    assert workload.job.tolist() == [7, 7]
    assert workload.owned.tolist() == [16, 16]
    assert workload.bays is not None
    assert workload.bays.named == {"c1": 16, "c2": 16}
    within = kept_to_partitions(log, consortium, plain).bays  # the store names no partitions
    assert within is not None
    assert within.named == workload.bays.named


def test_what_users_executed_after_ends_at_the_clusters_of_a_pool_is_added_up(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    at = {
        "c1": [work_after_end(processor_seconds=70), work_after_end(job_id=2, user="bob")],
        "c2": [
            work_after_end(processor_seconds=90, user="bob", organization="biology"),
            work_after_end(job_id=2, processor_seconds=30, end=BEGIN + 20),
            work_after_end(job_id=3, processor_seconds=35, user="bob"),
        ],
    }
    with Store.open(url, create=True) as store:
        for cluster, rows in at.items():
            with store.cluster(cluster).transaction() as place:
                place.ledger.save_watermark(watermark())
                place.runs.save_work_after_end(rows, asked_until=BEGIN + 30)
        found = users_after_end(map(store.cluster, at), 0, BEGIN + 30, most=2)
    assert found == [
        UserAfterEnd(
            user="eve", organization="physics", jobs=2, processor_seconds=100, last=BEGIN + 20
        ),
        UserAfterEnd(
            user="bob", organization="physics", jobs=2, processor_seconds=95, last=BEGIN + 10
        ),
    ]
