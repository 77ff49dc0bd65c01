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
ACCOUNTS = """Cluster|Account|ParentName|User
c|root||
c|root||root
c|physics|root|
c|physics||ann
c|lab|physics|
c|desk|lab|
c|biology|root|
d|root||
d|other|root|
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "printed"


@pytest.mark.parametrize("text", [f"{N1}\n{N2}\n", f"{N1}\n{N2}".replace(" ", "\n   ")])
def test_nodes_are_read_with_a_line_for_each_or_several(file: Path, text: str) -> None:
    file.write_text(text.replace("Reason", "Partitions=(null) Reason"))
    assert read_nodes(file) == {"n1": LoggedNode(8, ("a", "b")), "n2": LoggedNode(4)}


def test_accounts_are_read_with_their_parents_of_one_cluster(file: Path) -> None:
    file.write_text(ACCOUNTS.replace("biology", "c++"))
    expected = {"physics": None, "lab": "physics", "desk": "lab", "c++": None}
    assert read_accounts(file, "c") == expected
    assert read_accounts(file, "d") == {"other": None}


def test_accounts_of_several_clusters_are_not_mixed(file: Path) -> None:
    file.write_text(f"{ACCOUNTS}d|physics|other|\n")
    assert read_accounts(file, "d") == {"other": None, "physics": "other"}
    with pytest.raises(LogError, match=r":11: account physics is below other, and .* below root; "):
        read_accounts(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            ACCOUNTS.replace("physics|root", "physics|"),
            ":4: does not give the parent of account phy",
        ),
        (ACCOUNTS.replace("ParentName", "Share"), "no line names account, parentname; give what"),
        (ACCOUNTS.replace("c|", "e|"), "names no account of cluster c"),
        ("Cluster|Account|ParentName\nc|root|\nc\n", ":3: has no account"),
        ("c|physics|root\n", "no line names account, parentname; give what"),
    ],
)
def test_accounts_without_their_parents_are_refused(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(LogError, match=r"; give what `sacctmgr -P show assoc format=") as raised:
        read_accounts(file, "c")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NodeName=n1 CPUTot=many\n", "CPUTot: 'many'"),
        ("NODELIST PARTITION STATE\nn1 a idle\n", "names no node"),
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
