"""What an admin does with sacct's text and the file of `init`: right processors, or a loud stop."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

from shapleyprio.cli import main
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import ClusterSpec
from shapleyprio.replay.logs.column_names import ASK
from shapleyprio.replay.workloads.layout import ASK_ACCOUNTS, ASK_NODES

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.real_slurm

SPEC = ClusterSpec(
    name="alone",
    partitions={"physics": ("p1", "p2"), "biology": ("b1",), "shared": ("p1", "p2", "b1")},
    cpus={"p1": 8, "p2": 8, "b1": 8},
    speed=1,
)
LOG, NODES, ACCOUNTS = "year.sacct", "nodes", "accounts"
SECONDS = 2
PATIENCE_SECONDS = 120
PLAIN = "".join(
    f'[[organization]]\nname = "{name}"\naccounts = ["{name}"]\npartitions = ["{name}"]\n'
    for name in ("physics", "biology")
)
"""As admins write it, and right for the daemon."""


class Printed(NamedTuple):
    """What the admin has of the cluster: all jobs ran in the partition `shared`, on one node."""

    folder: Path
    organizations: str
    """What `init` has written."""

    def replayed(self, organizations: str, *arguments: str) -> Result:
        file = self.folder / "organizations.toml"
        file.write_text(organizations)
        words = ["replay", str(self.folder / LOG), "--organizations", str(file), *arguments]
        return CliRunner().invoke(main, [*words, "--json", "-"])

    def stops(self, message: str, organizations: str, *arguments: str) -> None:
        result = self.replayed(organizations, *arguments)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        assert message in result.stderr.splitlines()[-1]

    def answers(self, organizations: str, *arguments: str) -> dict[str, Any]:
        result = self.replayed(organizations, *arguments)
        assert result.exit_code == 0, result.output
        answer: dict[str, Any] = json.loads(result.stdout)
        return answer

    def given(self, nodes: str = NODES, accounts: str = ACCOUNTS) -> tuple[str, ...]:
        return (
            *("--nodes", str(self.folder / nodes)),
            *("--accounts", str(self.folder / accounts)),
        )


@pytest.fixture(scope="module")
def printed(prepared_database: Path) -> Iterator[Printed]:
    """Jobs of physics' laboratory and of biology, and what Slurm prints of them."""
    with (
        tempfile.TemporaryDirectory(prefix="slurm-") as folder,
        PrivateSlurm(Path(folder, "c"), SPEC, prepared=prepared_database) as slurm,
    ):
        slurm.add_accounts({"physics": None, "biology": None, "lab": "physics"})
        for account in ("lab", "lab", "lab", "biology"):
            slurm.submit(account, SECONDS, partition="shared", nodelist="b1")
        slurm.wait_until(
            lambda: not slurm.run("squeue", "-h"), real_seconds=PATIENCE_SECONDS, what="the ends"
        )
        utc = ("env", "TZ=UTC")
        day = f"--starttime={datetime.now(UTC) - timedelta(days=1):%Y-%m-%d}"

        def ended() -> bool:
            return slurm.run(*utc, *ASK.split(), day).count("COMPLETED") == 4

        slurm.wait_until(ended, real_seconds=PATIENCE_SECONDS, what="their records")
        time.sleep(1)
        for name, command in {
            LOG: (*utc, *ASK.split(), day),
            NODES: ASK_NODES.split(),
            ACCOUNTS: ASK_ACCOUNTS.split(),
            "flat": ("sacctmgr", "-P", "show", "assoc"),
        }.items():
            Path(folder, name).write_text(slurm.run(*command))
        drawn = slurm.run(sys.executable, "-m", "shapleyprio", "init", "--output", "-")
        yield Printed(Path(folder), drawn)


def sizes(answer: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Organization -> its processors and jobs."""
    return {one["name"]: (one["processors"], one["jobs"]) for one in answer["organizations"]}


RIGHT = {"biology": (8, 1), "physics": (16, 3)}


def test_a_partition_without_jobs_stops_the_replay_until_the_nodes_are_given(
    printed: Printed,
) -> None:
    message = "partition physics of physics never occurs, so its nodes are not known; give --nodes"
    printed.stops(message, PLAIN)
    printed.stops(message, PLAIN, *printed.given()[2:])


def test_a_log_whose_jobs_are_of_accounts_below_stops_until_the_tree_is_given(
    printed: Printed,
) -> None:
    nodes = printed.given()[:2]
    printed.stops(
        "account physics of physics never occurs, and no organization claims lab", PLAIN, *nodes
    )
    message = "3 of 4 jobs belong to no organization; most are of account lab (3); give --accounts"
    printed.stops(message, PLAIN, *nodes, "--allow", "unseen")
    allowed = ("--allow", "unseen", "--allow", "no-organization")
    assert sizes(printed.answers(PLAIN, *nodes, *allowed)) == {
        "physics": (16, 0),
        "biology": (8, 1),
    }


def test_with_nodes_and_accounts_as_slurm_prints_them_all_is_right(printed: Printed) -> None:
    answer = printed.answers(PLAIN, *printed.given())
    assert sizes(answer) == RIGHT
    assert all(policy["utilization"] < 1 for policy in answer["policies"])


def test_what_init_writes_is_right_with_the_nodes_alone(printed: Printed) -> None:
    assert '"lab"' in printed.organizations
    printed.stops("nodes p[1-2] of physics never occur", printed.organizations)
    assert sizes(printed.answers(printed.organizations, *printed.given()[:2])) == RIGHT


@pytest.mark.parametrize(
    ("nodes", "accounts", "message"),
    [
        (ACCOUNTS, ACCOUNTS, f"names no node; give what `{ASK_NODES}`"),
        (NODES, "flat", f"no line names account, parentname; give what `{ASK_ACCOUNTS}`"),
        (NODES, NODES, "no line names account, parentname"),
    ],
)
def test_what_lacks_sizes_or_parents_is_refused(
    printed: Printed, nodes: str, accounts: str, message: str
) -> None:
    printed.stops(message, PLAIN, *printed.given(nodes, accounts))
