from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.config import Organization
from shapleyprio.config.membership import Membership, Unknown, claims_of, membership
from shapleyprio.fairness.tenure import LEFT_OUT, NOBODY
from shapleyprio.lab.simulated import DEFAULT_SETTINGS
from shapleyprio.slurm.layout import Layout, Node, Partition


def cluster(
    nodes: Sequence[str] = (),
    partitions: Mapping[str, Sequence[str]] | None = None,
    accounts: Mapping[str, str | None] | None = None,
) -> Layout:
    return Layout(
        cluster="c",
        version="24.11.5",
        nodes={name: Node(name=name, tres={"cpu": 4}) for name in nodes},
        partitions={
            name: Partition(name=name, nodes=tuple(on), allow_accounts=(), priority_job_factor=1)
            for name, on in (partitions or {}).items()
        },
        accounts=accounts or {},
        qos_priorities={},
        enforces_accounts=True,
        settings=DEFAULT_SETTINGS,
    )


def of(layout: Layout, **claims: dict[str, Any]) -> Membership:
    return membership([Organization(name=name, **keys) for name, keys in claims.items()], layout)


NODES = ["a1", "a2", "b1"]


def test_nodes_belong_to_who_names_them_by_host_list() -> None:
    found = of(cluster(NODES), a={"nodes": ["a[1-2]"]})
    assert found.nodes == {"a1": "a", "a2": "a", "b1": NOBODY}


def test_nodes_belong_to_who_names_their_partition() -> None:
    found = of(cluster(NODES, {"p": ["a1", "a2"]}), a={"partitions": ["p"]})
    assert found.nodes == {"a1": "a", "a2": "a", "b1": NOBODY}


def test_a_named_node_beats_a_named_partition_without_a_contest() -> None:
    layout = cluster(NODES, {"all": NODES})
    found = of(layout, a={"partitions": ["all"]}, b={"nodes": ["b1"]})
    assert found.nodes == {"a1": "a", "a2": "a", "b1": "b"}
    assert found.contested == {}


def test_a_contested_node_is_held_by_the_first_and_reported() -> None:
    layout = cluster(NODES, {"all": NODES, "p": ["a1"]})
    found = of(layout, b={"partitions": ["p"]}, a={"partitions": ["all"]})
    assert found.nodes["a1"] == "b"
    assert found.contested == {"a1": ("b", "a")}
    found = of(layout, b={"nodes": ["b1"]}, a={"nodes": ["b1", "b1"]})
    assert found.contested == {"b1": ("b", "a")}


def test_naming_a_node_twice_is_no_contest() -> None:
    layout = cluster(NODES, {"p": ["a1"], "q": ["a1"]})
    assert of(layout, a={"partitions": ["p", "q"], "nodes": ["a1", "a[1-2]"]}).contested == {}


TREE = {"top": None, "mid": "top", "low": "mid", "lowest": "low", "other": None}


def test_accounts_below_a_claimed_one_come_along() -> None:
    found = of(cluster(accounts=TREE), a={"accounts": ["top"]})
    assert found.accounts == {"other": NOBODY} | dict.fromkeys(["top", "mid", "low", "lowest"], "a")


def test_the_nearest_claim_wins() -> None:
    found = of(cluster(accounts=TREE), a={"accounts": ["top"]}, b={"accounts": ["low"]})
    assert [found.accounts[name] for name in TREE] == ["a", "a", "b", "b", NOBODY]


@pytest.mark.parametrize("below", [True, False])
def test_without_sub_accounts_only_the_account_itself_is_claimed(*, below: bool) -> None:
    found = of(
        cluster(accounts=TREE),
        a={"accounts": ["top"], "sub_accounts": below},
        b={"accounts": ["mid"], "sub_accounts": False},
    )
    rest = "a" if below else NOBODY
    assert [found.accounts[name] for name in TREE] == ["a", "b", rest, rest, NOBODY]


def test_accounts_in_a_circle_or_without_their_parent_end_no_program() -> None:
    tree = {"x": "y", "y": "x", "z": "gone"}
    found = of(cluster(accounts=tree), a={"accounts": ["gone"]})
    assert found.accounts == {"x": NOBODY, "y": NOBODY, "z": "a"}


def test_what_slurm_does_not_know_is_listed() -> None:
    found = of(
        cluster(NODES), a={"accounts": ["x"], "partitions": ["y"], "nodes": ["a[1-4]", "z9"]}
    )
    assert found.unknown == (
        Unknown("a", "account", "x"),
        Unknown("a", "partition", "y"),
        Unknown("a", "node", "a[3-4],z9"),
    )


NAMES = st.sampled_from("uvwxyz")
FORESTS = st.lists(st.integers(-1, 5), min_size=6, max_size=6).map(
    lambda parents: {
        name: "uvwxyz"[parent] if -1 < parent < index else None
        for index, (name, parent) in enumerate(zip("uvwxyz", parents, strict=True))
    }
)
CLAIMS = st.lists(
    st.tuples(st.sets(NAMES, max_size=2), st.booleans(), st.sets(NAMES), st.sets(NAMES)),
    max_size=4,
)


@given(FORESTS, CLAIMS)
def test_every_account_has_the_holder_a_walk_up_the_tree_finds(
    parents: dict[str, str | None], claims: list[tuple[set[str], bool, set[str], set[str]]]
) -> None:
    organizations = [
        Organization(name=str(number), accounts=tuple(sorted(accounts)), sub_accounts=below)
        for number, (accounts, below, _, _) in enumerate(claims)
    ]

    def holder(account: str | None, asked: str) -> str:
        if account is None:
            return NOBODY
        for one in organizations:
            if account in one.accounts and (one.sub_accounts or account == asked):
                return one.name
        return holder(parents[account], asked)

    found = membership(organizations, cluster(accounts=parents))
    assert found.accounts == {account: holder(account, account) for account in parents}


@given(CLAIMS, st.lists(st.sets(NAMES), min_size=6, max_size=6))
def test_every_node_has_one_owner_who_claims_it(
    claims: list[tuple[set[str], bool, set[str], set[str]]], in_partitions: list[set[str]]
) -> None:
    partitions = {
        name.upper(): sorted(on) for name, on in zip("uvwxyz", in_partitions, strict=True)
    }
    organizations = [
        Organization(
            name=str(number),
            nodes=tuple(sorted(nodes)),
            partitions=tuple(sorted(name.upper() for name in named)),
        )
        for number, (_, _, nodes, named) in enumerate(claims)
    ]
    found = membership(organizations, cluster("uvwxyz", partitions))
    for node, owner in found.nodes.items():
        by_name = [one.name for one in organizations if node in one.nodes]
        by_partition = [
            one.name
            for one in organizations
            if any(node in partitions[name] for name in one.partitions)
        ]
        claimants = by_name or by_partition
        assert owner == (claimants[0] if claimants else NOBODY)
        assert found.contested.get(node, ()) == (tuple(claimants) if len(claimants) > 1 else ())
    assert found.unknown == ()


def test_an_account_is_left_out_with_those_below_that_nobody_claims() -> None:
    parents = {"test": None, "nightly": "test", "paid": "test", "below": "paid", "guest": None}
    organizations = [Organization(name="a", accounts=("paid",))]
    found = membership(organizations, cluster(accounts=parents), ["test", "tset"])
    assert found.accounts == {
        "test": LEFT_OUT,
        "nightly": LEFT_OUT,
        "paid": "a",
        "below": "a",
        "guest": NOBODY,
    }
    assert found.unknown == (Unknown(LEFT_OUT, "account", "tset"),)
    assert dict(claims_of(organizations, found.accounts).accounts) == {
        **found.accounts,
        "test": NOBODY,
        "nightly": NOBODY,
    }


def test_an_account_below_one_of_an_organization_can_be_left_out() -> None:
    parents = {"physics": None, "test": "physics", "nightly": "test"}
    found = membership(
        [Organization(name="a", accounts=("physics",))], cluster(accounts=parents), ["test"]
    )
    assert found.accounts == {"physics": "a", "test": LEFT_OUT, "nightly": LEFT_OUT}


def test_partitions_take_part_unless_they_are_left_out() -> None:
    layout = cluster("a", {"batch": "a", "test": "a"})
    found = membership([Organization(name="a", partitions=("test",))], layout, (), ["test", "tst"])
    assert found.partitions == {"batch": NOBODY, "test": LEFT_OUT}
    assert found.nodes == {"a": "a"}
    assert found.unknown == (Unknown(LEFT_OUT, "partition", "tst"),)
