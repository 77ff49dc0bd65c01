from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.cli import init, main
from shapleyprio.config import Config, load_config
from shapleyprio.config.membership import membership
from shapleyprio.config.reference import sections
from shapleyprio.daemon.checking.draft import draft
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.lab.simulated import SimulatedSlurm, SimulatedSpec
from shapleyprio.slurm.layout import Layout, Partition
from tests.config.test_membership import cluster


def read(text: str) -> Config:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "draft.toml"
        path.write_text(text, encoding="utf-8")
        return load_config(path)


def partition(name: str, nodes: str, accounts: str = "") -> Partition:
    return Partition(
        name=name,
        nodes=tuple(nodes.split()),
        allow_accounts=tuple(accounts.split()),
        priority_job_factor=1,
    )


def layout(*partitions: Partition) -> Layout:
    bare = cluster(
        ["a1", "a2", "b1", "c1"], accounts={"physics": None, "bio": None, "virus": "bio"}
    )
    return replace(bare, partitions={one.name: one for one in partitions})


def drawn(*partitions: Partition) -> dict[str, tuple[str, ...]]:
    config = read(draft(layout(*partitions)))
    return {one.name: one.partitions for one in config.organizations}


def test_accounts_below_the_root_become_organizations_of_the_cluster() -> None:
    config = read(draft(layout()))
    assert config.slurm.cluster == "c"
    assert [(one.name, one.accounts) for one in config.organizations] == [
        ("bio", ("bio", "virus")),
        ("physics", ("physics",)),
    ]


def test_nodes_of_partitions_are_written_for_logs_that_do_not_show_them() -> None:
    config = read(draft(layout(partition("short", "a1 a2", "bio"), partition("bio", "a2 c1"))))
    assert [(one.name, one.nodes) for one in config.organizations] == [
        ("bio", ("a[1-2],c1",)),
        ("physics", ()),
    ]


def test_a_partition_goes_to_the_only_organization_that_may_use_it() -> None:
    found = drawn(partition("short", "a1", "bio virus"), partition("mixed", "b1", "bio physics"))
    assert found == {"bio": ("short",), "physics": ()}


def test_a_partition_goes_to_its_namesake() -> None:
    assert drawn(partition("Physics", "a1 a2")) == {"bio": (), "physics": ("Physics",)}


def test_no_node_is_given_away_twice() -> None:
    found = drawn(partition("physics", "a1 a2 b1"), partition("short", "b1", "bio"))
    assert found == {"bio": ("short",), "physics": ()}


def test_what_could_not_be_decided_stands_in_comments() -> None:
    text = draft(layout(partition("all", "a1 a2 b1"), partition("gone", "c1", "unheard")))
    assert "#   all: a[1-2],b1\n" in text
    assert "#   gone: c1 (only for unheard)\n" in text
    assert "# Nodes without an owner so far: a[1-2],b1,c1\n" in text


def test_every_key_is_explained() -> None:
    text = draft(None)
    for section in sections().values():
        for name in section.model_fields:
            assert f"\n#{name} = " in text or f"\n# {name}: " in text


def test_the_keys_that_are_commented_out_load_too() -> None:
    text = draft(None)
    keys = {name for section in sections().values() for name in section.model_fields}
    for key in keys - {"parent"}:  # which has to be in the file, too
        text = text.replace(f"\n#{key} = ", f"\n{key} = ")
    assert read(text).slurm.cluster == "mycluster"


def test_without_a_cluster_the_draft_holds_an_example() -> None:
    assert [one.name for one in read(draft(None)).organizations] == ["example"]
    assert [one.name for one in read(draft(cluster())).organizations] == ["example"]


ACCOUNTS = st.text('abAB_-."\\é', min_size=1, max_size=3)
FORESTS = st.lists(st.tuples(ACCOUNTS, st.integers(0, 9)), max_size=6).map(
    lambda rows: {
        name: rows[above % len(rows)][0] if above and rows[above % len(rows)][0] != name else None
        for name, above in rows
    }
)
HOSTS = ["n1", "n2", "n3", "m01", "m02", "login-a"]


@given(
    FORESTS,
    st.lists(
        st.tuples(ACCOUNTS, st.lists(st.sampled_from(HOSTS), max_size=4), st.lists(ACCOUNTS)),
        max_size=6,
    ),
)
def test_every_draft_loads_and_agrees_with_its_cluster(
    accounts: dict[str, str | None], partitions: list[tuple[str, list[str], list[str]]]
) -> None:
    bare = cluster(HOSTS, accounts=accounts)
    live = replace(
        bare,
        partitions={
            name: partition(name, " ".join(nodes), " ".join(users))
            for name, nodes, users in partitions
        },
    )
    config = read(draft(live))
    found = membership(config.organizations, live)
    assert found.contested == {}
    assert found.unknown == ()
    assert NOBODY not in found.accounts.values()


SLURM = SimulatedSlurm(
    SimulatedSpec(
        cluster="c1",
        nodes={"a1": 4, "b1": 4},
        partitions={"physics": ["a1"], "all": ["a1", "b1"]},
        accounts={"physics": None},
    ),
    now=0,
)


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> SimulatedSlurm:
    monkeypatch.setattr(init, "connect", lambda _: SLURM)
    return SLURM


def test_init_writes_a_file_that_loads(live: SimulatedSlurm, tmp_path: Path) -> None:
    target = tmp_path / "etc" / "shapleyprio.toml"
    done = CliRunner().invoke(main, ["init", "--config", str(target)])
    assert done.exit_code == 0, done.output
    assert load_config(target).organizations[0].partitions == ("physics",)


def test_init_leaves_a_file_alone_unless_forced(live: SimulatedSlurm, tmp_path: Path) -> None:
    target = tmp_path / "here.toml"
    target.write_text("mine")
    done = CliRunner().invoke(main, ["init", "--output", str(target)])
    assert done.exit_code == 2
    assert f"{target}: already exists; --force overwrites it" in done.stderr
    assert target.read_text() == "mine"
    assert CliRunner().invoke(main, ["init", "--output", str(target), "--force"]).exit_code == 0
    assert load_config(target)


def test_init_prints_to_standard_output(live: SimulatedSlurm) -> None:
    done = CliRunner().invoke(main, ["init", "--output", "-"])
    assert read(done.stdout).slurm.cluster == "c1"


def test_init_without_slurm_points_to_the_example(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slurm = SimulatedSlurm(
        SimulatedSpec(
            cluster="c",
            nodes={},
            partitions={},
            accounts={},
        ),
        now=0,
    )
    slurm.take_down("slurmctld")
    monkeypatch.setattr(init, "connect", lambda _: slurm)
    target = tmp_path / "x.toml"
    done = CliRunner().invoke(main, ["init", "--output", str(target)])
    assert done.exit_code == 3
    assert "--cluster-independent writes an example" in done.stderr
    arguments = ["init", "--output", str(target), "--cluster-independent"]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    assert load_config(target)


def test_init_says_so_if_the_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    target = tmp_path / "file" / "x.toml"
    done = CliRunner().invoke(main, ["init", "--output", str(target), "--cluster-independent"])
    assert done.exit_code == 2
    assert f"{target}: cannot be written" in done.stderr
