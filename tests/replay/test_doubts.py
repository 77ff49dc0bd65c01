"""What is odd about a log and the organizations given for it is said, unless it is allowed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from shapleyprio.common.errors import Remedy
from shapleyprio.config import Organization
from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.logs.clusters import consortium_of_claims
from shapleyprio.replay.workloads.doubts import guesses_sizes, refuse_nonsense, refuse_unknown
from shapleyprio.replay.workloads.layout import LoggedNode, LogLayout
from shapleyprio.replay.workloads.organizations import Claimed
from shapleyprio.replay.workloads.workload import Window, workload_of
from tests.replay.test_workload import log_of

if TYPE_CHECKING:
    from shapleyprio.replay.workloads.choices import Doubt
    from shapleyprio.replay.workloads.log import Log

JOBS: dict[str, Any] = {
    "account": ["a", "a", "b"],
    "nodes": ["n1", "n1", "n2"],
    "partition": ["pa", "pa", "pb"],
}
A: dict[str, Any] = {"accounts": ["a"], "partitions": ["pa"]}
B: dict[str, Any] = {"accounts": ["b"], "partitions": ["pb"]}


def judge(
    *logs: Log,
    allowed: tuple[Doubt, ...] = (),
    left_out: dict[str, Any] | None = None,
    window: Window | None = None,
    **claims: dict[str, Any],
) -> None:
    organizations = [Organization(name=name, **keys) for name, keys in claims.items()]
    found = [Claimed(log, organizations, left_out or {}) for log in logs]
    consortium = consortium_of_claims(found)
    refuse_unknown(found, consortium, allowed)
    workload = workload_of(logs[0], consortium, window=window)
    refuse_nonsense(found, consortium, workload, allowed)


def doubted(message: str, doubt: Doubt, log: Log, **claims: Any) -> None:
    """Only that is wrong, and allowing it is enough."""
    with pytest.raises(WorkloadError, match=message) as raised:
        judge(log, **claims)
    assert raised.value.bound == doubt
    judge(log, allowed=(doubt,), **claims)


def test_a_log_that_has_all_is_not_doubted() -> None:
    judge(log_of([0, 10, 0], **JOBS), A=A, B=B)
    judge(log_of([0, 10, 0], **JOBS), A=A, B=B, lender={"processors": 3}, guest={"accounts": ["x"]})


def test_a_partition_that_never_occurs_is_unseen_unless_nodes_are_named() -> None:
    log, odd = log_of([0, 10, 0], **JOBS), {**B, "partitions": ["pb", "pc"]}
    doubted("partition pc of B never occurs", "unseen", log, A=A, B=odd)
    judge(log, A=A, B={**odd, "nodes": ["n2"]})
    judge(log, A=A, B={**odd, "processors": 1})
    known = replace(log, layout=LogLayout(nodes={"n3": LoggedNode(1, ("pc",))}))
    judge(known, A=A, B=odd)


def test_a_node_that_never_occurs_is_unseen() -> None:
    log = log_of([0, 10, 0], **JOBS)
    odd = {**B, "nodes": ["n[2-4]"]}
    doubted(r"nodes n\[3-4\] of B never occur", "unseen", log, A=A, B=odd)


def test_an_account_is_missed_only_where_nobody_claims_others() -> None:
    log, odd = log_of([0, 10, 0], **JOBS), {**B, "accounts": ["beta"]}
    doubted(
        "account beta of B never occurs, and no organization claims b", "unseen", log, A=A, B=odd
    )
    judge(log, A=A, B={**B, "accounts": ["b", "beta"]})
    judge(log, A=A, B=odd, left_out={"account": ("b",)})
    judge(replace(log, layout=LogLayout(parents={"beta": None})), A=A, B=odd)


def test_who_claims_nodes_and_brings_none_is_doubted() -> None:
    log = log_of([0, 10, 0], **JOBS)
    doubted(
        "late brings no processors", "no-processors", log, A=A, B=B, late={"partitions": ["pb"]}
    )


def test_most_jobs_of_nobody_are_doubted_within_the_window() -> None:
    twice: dict[str, Any] = {kind: [*names, names[-1]] for kind, names in JOBS.items()}
    log = log_of([0, 10, 10, 10], **twice)
    a = {**A, "partitions": ["pa", "pb"]}
    judge(log, A=a)  # a half
    judge(log, A=a, window=Window(start=0, length=5))
    late = Window(start=5, length=10)
    doubted("2 of 3 jobs belong to no organization", "no-organization", log, A=a, window=late)
    judge(log, A=a, window=late, left_out={"account": ("b",)})
    doubted(
        r"2 of 3 jobs belong to no organization; most are of account b \(2\)",
        "no-organization",
        log_of([0, 0, 0], **{**JOBS, "account": ["a", "b", "b"]}),
        A=a,
    )


def test_more_work_than_processors_is_doubted() -> None:
    log = log_of([0, 0, 5], **{**JOBS, "nodes": ["n1", "n2", "n2"]})
    judge(log, A={**A, "processors": 1}, B={**B, "processors": 1}, allowed=("utilization",))
    message = r"used 200.0% of the 1 processors .*; correct the `processors` of A"
    window = Window(start=0, length=5)
    claims = {"A": {**A, "processors": 1}, "B": B | {"partitions": []}}
    doubted(message, "utilization", log, window=window, **claims)


def test_what_was_given_is_not_asked_for() -> None:
    log = log_of([0, 0, 0], **JOBS)
    nodes = {"n1": LoggedNode(1), "n2": LoggedNode(1)}
    given = replace(log, layout=LogLayout(nodes=nodes, parents={"x": None}))
    for one, of_nodes, of_accounts in (
        (log, Remedy.GIVE_NODES, Remedy.GIVE_ACCOUNTS),
        (given, Remedy.ALLOW, Remedy.ALLOW),
    ):
        with pytest.raises(WorkloadError, match=r"nodes n9 of A never occur") as raised:
            judge(one, A={**A, "nodes": ["n9"]}, B=B)
        assert raised.value.remedy == of_nodes
        with pytest.raises(WorkloadError, match=r"account y of B never occurs") as raised:
            judge(one, A=A, B={**B, "accounts": ["y"]})
        assert raised.value.remedy == of_accounts


def test_who_has_processors_elsewhere_in_a_pool_is_not_doubted() -> None:
    here = log_of([0, 10, 0], **JOBS)
    there = log_of([0], account=["a"], nodes=["x1"], partition=["px"])
    pools = {**A, "partitions": ["pa", "px"]}
    with pytest.raises(WorkloadError, match="partition py of B never occurs"):
        judge(here, there, A=pools, B={**B, "partitions": ["pb", "py"]})


def test_a_store_is_not_doubted() -> None:
    log = log_of([0, 0, 0], organization=["A", None, None])
    judge(replace(log, owned={"A": 1}), A={"processors": 1, "accounts": ["never"]})


def test_sizes_are_guessed_where_only_jobs_show_them() -> None:
    log = log_of([0, 10, 0], **JOBS)
    known = replace(log, layout=LogLayout(nodes={"n1": LoggedNode(1)}))
    one = [Organization(name="A", **A)]
    assert guesses_sizes([Claimed(log, one, {})])
    assert not guesses_sizes([Claimed(known, one, {})])
    assert not guesses_sizes([Claimed(log, [Organization(name="A", processors=2)], {})])
