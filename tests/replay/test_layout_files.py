"""What Slurm prints of nodes and accounts, as far as a log needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.layout_files import read_accounts, read_nodes, with_layout
from shapleyprio.replay.workloads.layout import LoggedNode
from tests.replay.test_workload import log_of

if TYPE_CHECKING:
    from pathlib import Path

N1 = "NodeName=n1 Arch=x86_64 CPUTot=8 State=IDLE Partitions=b,a CfgTRES=cpu=8,mem=4000M"
N2 = "NodeName=n2 CPUTot=4 State=DOWN Reason=Partitions=x"
TREE = """Cluster|Account|User|Share
c|root||1
c| root|root|1
c| physics||1
c|  physics|ann|1
c|  lab||1
c|   desk||1
c| biology||1
d|root||1
d| other||1
"""
TABLE = """   Cluster    Account ParentName       User
---------- ---------- ---------- ----------
         c       root
         c    physics       root
         c    physics                   ann
         c        lab    physics
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "printed"


@pytest.mark.parametrize("text", [f"{N1}\n{N2}\n", f"{N1}\n{N2}".replace(" ", "\n   ")])
def test_nodes_are_read_with_a_line_for_each_or_several(file: Path, text: str) -> None:
    file.write_text(text.replace("Reason", "Partitions=(null) Reason"))
    assert read_nodes(file) == {"n1": LoggedNode(8, ("a", "b")), "n2": LoggedNode(4)}


@pytest.mark.parametrize("separator", ["|", "  "])
def test_nodes_are_read_from_sinfo_too(file: Path, separator: str) -> None:
    rows = [
        ("NODELIST", "NODES", "PARTITION", "CPUS"),
        ("n1", "1", "a*", "8"),
        ("n1", "1", "b", "8"),
    ]
    file.write_text("Wed Nov 25 16:16:57 2026\n" + "\n".join(map(separator.join, rows)) + "\n")
    assert read_nodes(file) == {"n1": LoggedNode(8, ("a", "b"))}


def test_accounts_are_read_from_a_tree_of_one_cluster(file: Path) -> None:
    file.write_text(TREE.replace("biology", "c++"))
    expected = {"physics": None, "lab": "physics", "desk": "lab", "c++": None}
    assert read_accounts(file, "c") == expected
    assert read_accounts(file, "d") == {"other": None}


def test_trees_of_several_clusters_are_not_mixed(file: Path) -> None:
    file.write_text(f"{TREE}d|  physics||1\n")
    assert read_accounts(file, "d") == {"other": None, "physics": "other"}
    with pytest.raises(LogError, match=r":11: account physics is below other, and .* below root; "):
        read_accounts(file)


def test_accounts_are_read_from_a_table_with_their_parents(file: Path) -> None:
    file.write_text(TABLE)
    assert read_accounts(file, "c") == {"physics": None, "lab": "physics"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TABLE.replace(" physics", "physics+"), ":4: a name is cut off; give what"),
        (TABLE.replace("ParentName", "    Shares"), "does not give the parent of account root"),
        (
            TREE.replace("| ", "|").replace("| ", "|"),
            ":4: does not give the parent of account physics",
        ),
        (TREE.replace("c|", "e|"), "names no account of cluster c"),
        ("Cluster|Account|ParentName\nc|root|\nc\n", ":3: has no account"),
        ("c|physics|root\n", "no line names account; give what"),
    ],
)
def test_accounts_without_their_parents_are_refused(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(LogError, match=r"; give what `sacctmgr -P show assoc format=") as raised:
        read_accounts(file, "c")
    assert message in str(raised.value)


def test_a_bar_in_a_reason_separates_nothing_where_blanks_do(file: Path) -> None:
    file.write_text("NODELIST PARTITION CPUS REASON\nn1 a 4 bad|dimm\n")
    assert read_nodes(file)["n1"].processors == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NodeName=n1 CPUTot=many\n", "CPUTot: 'many'"),
        ("NODELIST PARTITION STATE\nn1 a idle\n", "no line names nodelist, partition, cpus"),
        ("NODELIST PARTITION CPUS\nn1 a 4+\n", ":2: CPUS: '4+'"),
        ("NODELIST PARTITION CPUS\n", "names no node"),
        ("NODELIST PARTITION CPUS\nn1 a 4\nn2 a\n", ":3: has no cpus"),
    ],
)
def test_nodes_without_their_sizes_are_refused(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(LogError, match=r"; give what `scontrol show nodes -o` prints") as raised:
        read_nodes(file)
    assert message in str(raised.value)


def test_files_are_for_clusters_that_the_log_has(file: Path) -> None:
    file.write_text(N1)
    log = log_of([0])
    assert with_layout(log, {"": file}, {}).layout.nodes.keys() == {"n1"}
    with pytest.raises(LogError, match="has no jobs of elsewhere, whose nodes"):
        with_layout(log, {"elsewhere": file}, {})
