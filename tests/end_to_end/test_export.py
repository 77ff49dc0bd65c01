"""What a daemon saw on a real Slurm, exported, anonymized and replayed: the same to the unit."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from shapleyprio.cli import main
from tests.end_to_end.consortium import CLUSTER, GUESTS, MEMBERS, NODES, Consortium

pytestmark = pytest.mark.real_slurm

SPEED = 60


def answer(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(main, [*arguments, "--json", "-"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def in_order(found: dict[str, Any]) -> list[Any]:
    """What a replay found of each policy and organization, without names."""
    return [
        (
            *(policy[key] for key in ("policy", "p_tot", "unfairness", "out_of_turn")),
            *(
                (one["utility"], one["contribution"], one["parts"])
                for one in policy["organizations"]
            ),
        )
        for policy in found["policies"]
    ]


def members(file: Path) -> dict[str, str]:
    with tarfile.open(file) as tar:
        return {one.name: tar.extractfile(one).read().decode() for one in tar}  # type: ignore[union-attr]


def rows(file: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in members(file)[name].splitlines()]


def executed(file: Path) -> list[tuple[Any, ...]]:
    names = ("job", "start", "begin", "end", "account", "nodes", "allocations")
    return [tuple(row[name] for name in names) for row in rows(file, "runs.jsonl")]


def test_an_anonymized_export_of_what_slurm_did_is_replayed_as_the_store_itself(
    consortium: Consortium,
) -> None:
    cluster = consortium.cluster
    consortium.configure(poll_seconds=30)
    with consortium.daemon() as daemon:
        for number in range(4):
            for name in ("alpha", "alpha-lab", "beta", GUESTS):
                cluster.submit(name, 60 + 30 * number, partition=MEMBERS[number % 3], processors=2)
        consortium.until(lambda: not cluster.run("squeue", "-h"), what="all jobs to end")
        consortium.await_settled()
        consortium.await_cycles()
        assert daemon.end() == 0

    plain, hidden, live = (consortium.directory / name for name in ("plain", "hidden", "live"))
    consortium.succeed("export", str(plain))
    said = consortium.succeed("export", str(hidden), "--anonymize", "--shift-time")
    consortium.succeed("export", str(live), "--live")
    assert "the file still says" in said

    whose = ("--organizations", str(consortium.config_file), "--cluster", CLUSTER)
    known = answer("replay", consortium.url(), *whose)
    assert known["policies"][-1]["unfairness"] > 0
    assert sum(one["jobs"] for one in known["organizations"]) == 12
    for file in (plain, hidden):
        assert in_order(answer("replay", str(file))) == in_order(known)
    assert executed(live) == executed(plain)

    tree = {row["name"]: row["parent"] for row in rows(plain, "accounts.jsonl")}
    assert tree["alpha-desk"] == "alpha-lab"
    assert tree["alpha-lab"] == "alpha"
    sizes = {
        row["name"]: (row["processors"], row["partitions"]) for row in rows(live, "nodes.jsonl")
    }
    assert sizes == {node: (2, ["all", name]) for name, (node,) in NODES.items()}
    (ledger,) = json.loads(members(hidden)["manifest.json"])["ledgers"]
    assert ledger["releases"][0][1] == consortium.slurm.layout().version
    for text in members(hidden).values():
        for name in (*MEMBERS, *tree, *sizes, CLUSTER):
            assert json.dumps(name) not in text
