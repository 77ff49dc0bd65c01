from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.common.errors import ConfigError, Remedy
from shapleyprio.config import Organization, load_config
from shapleyprio.fairness.runs import split
from shapleyprio.replay.errors import LogError, WorkloadError
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.replay.workloads.dealing import deal
from shapleyprio.replay.workloads.layout import LoggedNode, LogLayout
from shapleyprio.replay.workloads.log import UNKNOWN, Log
from shapleyprio.replay.workloads.nodes import kept_to_partitions, most_in_use, nodes_of_partitions
from shapleyprio.replay.workloads.organizations import (
    claimed_by,
    consortium_of,
    load_organizations,
)
from shapleyprio.replay.workloads.workload import Consortium, workload_of
from shapleyprio.slurm.text.values import hosts
from tests.daemon.checking.test_check import BIOLOGY, PHYSICS, config, found
from tests.replay.test_workload import log_of, owners_in, placed_on

Claims = dict[str, dict[str, Any]]
REPOSITORY = Path(__file__).parents[2]
P: dict[str, Any] = {"processors": 1}


def organizations(**claims: dict[str, Any]) -> list[Organization]:
    return [Organization(name=name, **keys) for name, keys in claims.items()]


def applied(log: Log, **claims: dict[str, Any]) -> Consortium:
    return consortium_of(log, organizations(**claims))


# whose jobs


def test_accounts_and_partitions_that_the_file_leaves_out_count_for_nobody(tmp_path: Path) -> None:
    log = log_of(
        [0] * 4,
        account=["a", "a", "test", "a"],
        user=["u", "u", "u", "u"],
        partition=["batch", "debug", "batch", None],
    )
    file = tmp_path / "o.toml"
    file.write_text(
        '[fairness]\nleave_out_accounts = ["test"]\nleave_out_partitions = ["debug"]\n'
        '[[organization]]\nname = "a"\naccounts = ["a"]\nusers = ["u"]\nprocessors = 1\n'
    )
    assert consortium_of(*claimed_by(file, log)).organization.tolist() == [0, UNKNOWN, UNKNOWN, 0]


def test_an_account_outranks_a_user_a_group_and_a_queue_in_this_order() -> None:
    log = log_of(
        [0] * 5,
        account=["a", "x", "x", "x", None],
        user=["b", "b", "x", "x", None],
        group=["c", "c", "c", "x", None],
        queue=["d", "d", "d", "d", "x"],
    )
    claims: Claims = {
        "queues": {"queues": ["d"]},
        "groups": {"groups": ["c"]},
        "users": {"users": ["b"]},
        "accounts": {"accounts": ["a"]},
    }
    consortium = consortium_of(
        log, organizations(**{name: keys | P for name, keys in claims.items()})
    )
    assert consortium.organizations == ("queues", "groups", "users", "accounts")
    assert consortium.organization.tolist() == [3, 2, 1, 0, UNKNOWN]


def test_the_numbers_of_a_log_can_be_given_as_numbers_and_as_text() -> None:
    log = log_of([0] * 3, format="swf", user=["7", "8", "-1"])
    consortium = applied(log, a={"users": [7]} | P, b={"users": ["8", -1]} | P)
    assert consortium.organization.tolist() == [0, 1, 1]


def test_accounts_below_an_organizations_are_nobodys_unless_listed() -> None:
    log = log_of([0, 0], account=["physics", "astro"])
    consortium = applied(log, physics={"accounts": ["physics"], "sub_accounts": True} | P)
    assert consortium.organization.tolist() == [0, UNKNOWN]


def test_an_organization_of_partitions_alone_has_their_jobs_where_no_accounts_are_named() -> None:
    log = log_of([0] * 3, user=["1", "2", "3"], partition=["p", "p", "q"])
    claims: Claims = {"a": {"partitions": ["p"]} | P, "b": {"users": [2], "partitions": ["q"]} | P}
    assert applied(log, **claims).organization.tolist() == [0, 1, UNKNOWN]


def test_where_accounts_are_named_the_jobs_of_a_partition_are_not_its_owners() -> None:
    log = log_of([0, 0], account=["a", "x"], partition=["p", "p"])
    claims: Claims = {"a": {"accounts": ["a"]} | P, "lender": {"partitions": ["p"]} | P}
    assert applied(log, **claims).organization.tolist() == [0, UNKNOWN]


def test_in_a_stored_log_the_stored_organization_decides() -> None:
    log = log_of([0] * 3, format="store", organization=["b", "gone", None], account=["a", "a", "a"])
    claims: Claims = {"a": {"accounts": ["a"]} | P, "b": P}
    assert applied(log, **claims).organization.tolist() == [1, UNKNOWN, UNKNOWN]


def test_organizations_without_any_job_are_refused() -> None:
    log = log_of([0], account=["a"], user=["u"])
    expected = r"jobs\.log: none of its jobs belongs .* it has accounts and users; compare"
    with pytest.raises(WorkloadError, match=expected):
        applied(log, physics={"accounts": ["physics"]} | P)
    expected = "none of its jobs belongs to an organization: it names no organizations$"
    with pytest.raises(WorkloadError, match=expected):
        applied(log_of([0], format="store", organization=[None]), physics=P)


# whose processors


def on_nodes(
    nodes: list[str | None],
    processors: list[int],
    *,
    start: list[int] | None = None,
    partition: list[str | None] | None = None,
) -> Log:
    """Jobs of account a in partition p that take 10 s."""
    jobs = len(nodes)
    return log_of(
        [0] * jobs,
        start=start,
        processors=processors,
        account=["a"] * jobs,
        nodes=nodes,
        partition=partition or ["p"] * jobs,
    )


def brought(log: Log, **claims: dict[str, Any]) -> dict[str, int]:
    """What organizations without jobs bring, beside one that has account a and no nodes."""
    consortium = applied(log, a={"accounts": ["a"]}, **claims)
    return dict(zip(consortium.organizations[1:], consortium.owned.tolist()[1:], strict=True))


def test_a_node_counts_what_its_jobs_held_at_one_time() -> None:
    log = on_nodes(["n1", "n1", "n1"], [4, 3, 2], start=[0, 9, 10])
    assert brought(log, b={"nodes": ["n1"]}) == {"b": 7}


def test_a_job_that_ends_makes_room_for_one_that_starts_at_the_same_second() -> None:
    log = on_nodes(["n1", "n1"], [4, 4], start=[10, 0])
    assert brought(log, b={"nodes": ["n1"]}) == {"b": 4}


def test_nodes_may_be_busy_at_different_times() -> None:
    log = on_nodes(["n1", "n2"], [4, 8], start=[0, 50])
    assert brought(log, b={"nodes": ["n[1-3]"]}) == {"b": 12}


def test_a_job_is_in_equal_parts_on_its_nodes() -> None:
    log = on_nodes(["n[1-3]"], [8])
    assert brought(log, b={"nodes": ["n1"]}, c={"nodes": ["n[2-3]"]}) == {"b": 3, "c": 5}


def test_a_node_is_in_every_partition_whose_jobs_ran_there() -> None:
    log = on_nodes(["n1", "n[1-2]", "n3"], [2, 4, 8], partition=["p", "black", "q"])
    assert brought(log, b={"partitions": ["p"]}, c={"partitions": ["black"]}) == {"b": 4, "c": 2}
    assert brought(log, c={"partitions": ["black"]}, b={"partitions": ["p"]}) == {"c": 6, "b": 0}


def test_naming_a_node_outranks_the_partition() -> None:
    log = on_nodes(["n[1-2]"], [4])
    assert brought(log, b={"partitions": ["p"]}, c={"nodes": ["n2"]}) == {"b": 2, "c": 2}


def test_what_an_organization_says_outranks_what_nodes_show() -> None:
    log = on_nodes(["n[1-2]"], [4])
    claims: Claims = {
        "b": {"nodes": ["n1"], "processors": 0},
        "c": {"nodes": ["n2"], "processors": 9},
    }
    assert brought(log, **claims) == {"b": 0, "c": 9}


def test_jobs_with_an_unknown_start_or_unknown_nodes_size_no_node() -> None:
    log = on_nodes(["n1", "n1", None], [1, 8, 8], start=[0, UNKNOWN, 0])
    assert brought(log, b={"nodes": ["n1"]}) == {"b": 1}


def test_the_owners_of_the_nodes_are_those_whose_processors_were_got() -> None:
    log = on_nodes(["n[1-3]", None, "n1", "n4"], [8, 2, 1, 1])
    consortium = applied(log, a={"accounts": ["a"], "nodes": ["n[2-3]"]}, b={"nodes": ["n1"]})
    assert consortium.placed is not None
    assert consortium.placed.owners.names == ("a", "b")
    assert owners_in(consortium.placed) == [{"a": 5, "b": 3}, {None: 2}, {"b": 1}, {None: 1}]


def test_a_list_of_nodes_that_cannot_be_read_is_reported() -> None:
    with pytest.raises(LogError, match=r"jobs\.log: NodeList: 'n\[1-' is not a list of hosts; cor"):
        applied(on_nodes(["n[1-"], [1]), a={"accounts": ["a"]})


def test_the_store_shows_owners_and_their_processors() -> None:
    log = log_of(
        [0, 5, 30],
        format="store",
        organization=["a", "a", "b"],
        placed=placed_on([{"b": 2, "gone": 1, "": 3}, {"b": 3, "a": 1}, {"b": 4}]),
    )
    consortium = applied(log, a={}, b={}, c={"processors": 7})
    assert consortium.owned.tolist() == [1, 5, 7]
    assert consortium.placed is not None
    assert owners_in(consortium.placed) == [{None: 4, "b": 2}, {"a": 1, "b": 3}, {"b": 4}]
    log = replace(log, owned={"a": 20, "c": 30, "gone": 40})
    assert applied(log, a={}, b={}, c={"processors": 7}).owned.tolist() == [20, 5, 7]


def test_without_nodes_it_is_not_known_whose_processors_were_got() -> None:
    log = log_of([0], format="swf", user=["1"])
    consortium = applied(log, a={"users": [1], "processors": 3}, b={"processors": 0})
    assert consortium.owned.tolist() == [3, 0]
    assert consortium.placed is None


@pytest.mark.parametrize(
    ("system_processors", "expected"),
    [
        (None, r"so the processors of b, c are unknown; add `processors = N` to"),
        (70, r"so the processors of b, c are unknown \(all together have 70\); add `processors"),
    ],
)
def test_without_nodes_every_organization_must_say_what_it_brings(
    system_processors: int | None, expected: str
) -> None:
    log = log_of([0], format="swf", user=["1"], system_processors=system_processors)
    with pytest.raises(WorkloadError, match=expected):
        applied(log, a={"users": [1], "processors": 3}, b={}, c={"users": [2]})


def test_nodes_without_any_start_show_no_processors() -> None:
    log = on_nodes(["n1"], [4], start=[UNKNOWN])
    with pytest.raises(WorkloadError, match="does not say on which nodes"):
        applied(log, a={"accounts": ["a"], "nodes": ["n1"]})


NODES = [None, "n1", "n2", "n[1-2]", "n[1-3]", "n3,m1"]
PLACED_JOB = st.tuples(
    st.sampled_from(NODES), st.integers(1, 9), st.integers(0, 20), st.integers(1, 8)
)


@given(
    st.lists(PLACED_JOB, min_size=1, max_size=15).filter(lambda jobs: any(on for on, *_ in jobs))
)
def test_every_node_counts_the_most_of_any_second(
    jobs: list[tuple[str | None, int, int, int]],
) -> None:
    nodes, processors, start, processing_time = map(list, zip(*jobs, strict=True))
    log = log_of(
        [0] * len(jobs),
        start=start,
        processing_time=processing_time,
        processors=processors,
        account=["a"] * len(jobs),
        nodes=nodes,
    )
    held = [
        split(n, hosts("", on), {}) if on else {} for on, n in zip(nodes, processors, strict=True)
    ]
    expected = {
        node: max(
            sum(
                parts.get(node, 0)
                for parts, begin, length in zip(held, start, processing_time, strict=True)
                if begin <= second < begin + length
            )
            for second in range(30)
        )
        for node in ("n1", "n2", "n3", "m1")
    }
    assert brought(log, **{node: {"nodes": [node]} for node in expected}) == expected
    consortium = applied(log, a={"accounts": ["a"]}, n={"nodes": ["n[1-3]"]})
    assert consortium.placed is not None
    totals = [sum(parts.values()) for parts in owners_in(consortium.placed)]
    assert totals == processors


def test_one_owner_is_counted_apart_from_the_next() -> None:
    log = log_of([0, 0, 5], processors=[3, 4, 2])
    held = placed_on([{"a": 3}, {"b": 4}, {"a": 2, "b": 0}])
    assert most_in_use(log, held).tolist() == [5, 4]


# the file


def test_a_file_of_organizations_alone_is_enough(tmp_path: Path) -> None:
    file = tmp_path / "o.toml"
    file.write_text('[[organization]]\nname = "a"\nusers = [1, "2"]\nprocessors = 0\n')
    assert load_organizations(file) == (Organization(name="a", users=("1", "2"), processors=0),)


def test_other_tables_of_the_file_are_held_to_the_rules_of_the_daemon(tmp_path: Path) -> None:
    file = tmp_path / "o.toml"
    file.write_text('[push]\nchannel = "fax"\n[[organization]]\nname = "a"\n')
    with pytest.raises(ConfigError, match=r"o\.toml:2: push\.channel: 'fax' is not"):
        load_organizations(file)


def test_a_missing_file_of_organizations_shows_the_other_way(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"o\.toml: no such file") as caught:
        load_organizations(tmp_path / "o.toml")
    assert caught.value.remedy is Remedy.DEAL_USERS


def test_the_daemon_pays_no_attention_to_what_only_replays_read() -> None:
    only_replays = {"users": ["u"], "groups": ["g"], "queues": ["q"], "processors": 3}
    assert found(config(PHYSICS | only_replays, BIOLOGY)) == found(config(PHYSICS, BIOLOGY)) == {}


# real logs

TRACES = REPOSITORY.parent / "shared" / "traces"
CONDO = REPOSITORY / "docs" / "examples" / "pozidriv.toml"


def test_the_example_of_a_condo_is_a_configuration_of_the_daemon_too() -> None:
    assert load_config(CONDO).slurm.cluster == "pozidriv"


def trace(name: str) -> Log:
    if not (TRACES / name).exists():
        pytest.skip(f"the log {name} is not here")
    return read_log(str(TRACES / name))


def test_a_condo_cluster() -> None:
    log = trace("xdmod-pozidriv.sacct.gz")
    consortium = consortium_of(log, load_organizations(CONDO))
    assert dict(zip(consortium.organizations, consortium.owned.tolist(), strict=True)) == {
        "calla": 392,
        "taifl": 58,
        "caste": 224,
        "field": 120,
        "ibech": 2,
        "center": 432,
    }
    assert UNKNOWN not in consortium.organization
    assert consortium.placed is not None
    assert UNKNOWN not in consortium.placed.owners.codes
    assert int(consortium.placed.processors.sum()) == int(log.processors.sum())

    assert (most_in_use(log, consortium.placed) <= consortium.owned).all()
    partition = log.labels["partition"]
    for job, owners in enumerate(owners_in(consortium.placed)):
        if partition.names[partition.codes[job]] != "black":
            account = consortium.organizations[consortium.organization[job]]
            assert owners == {account: log.processors[job]}


def test_a_grid_whose_partitions_are_the_organizations() -> None:
    log = trace("METACENTRUM-2009-2.swf.gz")
    sites = {f"site{n}": {"partitions": [str(n)], "processors": 10 * n} for n in range(1, 15)}
    consortium = applied(log, **sites)
    assert consortium.owned.tolist() == [10 * n for n in range(1, 15)]
    partition = log.labels["partition"]
    assert [f"site{partition.names[code]}" for code in partition.codes] == [
        consortium.organizations[index] for index in consortium.organization
    ]


def test_users_of_a_real_log_are_dealt_out_with_all_their_jobs() -> None:
    log = trace("LPC-EGEE-2004-1.2-cln.swf.gz")
    dealt = deal(log, 5, shares="zipf", processors=70, seed=1)
    pairs = set(zip(log.labels["user"].codes.tolist(), dealt.organization.tolist(), strict=True))
    assert len(pairs) == len(log.labels["user"].names) == 54
    assert {organization for _, organization in pairs} == set(range(5))


# with a layout beside the log


def with_layout(log: Log, nodes: dict[str, LoggedNode], **parents: str | None) -> Log:
    return replace(log, layout=LogLayout(nodes=nodes, parents=parents))


def test_accounts_below_count_where_the_tree_is_known() -> None:
    log = log_of([0] * 5, account=["lab", "desk", "gone", "test", "bio"])
    tree = {"physics": None, "lab": "physics", "desk": "lab", "test": "lab", "bio": None}
    claims = organizations(
        physics={"accounts": ["physics", "gone"], **P},
        biology={"accounts": ["bio"], "sub_accounts": False, **P},
    )
    left_out = {"account": ("test",)}
    found = consortium_of(with_layout(log, {}, **tree), claims, left_out)
    assert found.organization.tolist() == [0, 0, 0, UNKNOWN, 1]
    assert consortium_of(log, claims, left_out).organization.tolist()[:2] == [UNKNOWN, UNKNOWN]


def test_nodes_have_the_size_and_partitions_of_the_layout_also_where_nothing_ran() -> None:
    log = log_of([0, 0], account=["a", "a"], nodes=["p1", "old"], partition=["shared", "shared"])
    nodes = {
        "p1": LoggedNode(8, ("physics", "shared")),
        "p2": LoggedNode(4, ("physics",)),
        "x": LoggedNode(2, ("shared",)),
    }
    claims: Claims = {
        "physics": {"accounts": ["a"], "partitions": ["physics"]},
        "guests": {"partitions": ["shared"]},
    }
    found = applied(with_layout(log, nodes), **claims)
    assert found.owned.tolist() == [12, 2 + 1]
    assert found.placed is not None
    assert owners_in(found.placed) == [{"physics": 1}, {"guests": 1}]


def test_a_log_without_nodes_has_those_of_the_layout() -> None:
    log = with_layout(log_of([0], account=["a"]), {"p1": LoggedNode(8, ("physics",))})
    found = applied(log, a={"accounts": ["a"], "partitions": ["physics"]})
    assert (found.owned.tolist(), found.placed) == ([8], None)
    workload = workload_of(log, found)
    with pytest.raises(WorkloadError, match="does not name the nodes and partitions"):
        kept_to_partitions(log, found, workload)


def test_jobs_keep_to_the_partitions_of_the_layout() -> None:
    log = log_of([0, 0], account=["a", "b"], nodes=["p1", "p1"], partition=["shared", "lost"])
    nodes = {"p1": LoggedNode(8, ("shared",)), "x": LoggedNode(2, ("shared", "other"))}
    assert nodes_of_partitions(with_layout(log, nodes)) == {
        "shared": {"p1", "x"},
        "other": {"x"},
        "lost": {"p1"},
    }
