"""A real condo cluster whose accounts are faculties, and their users departments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from shapleyprio.cli import main
from shapleyprio.fairness.shapley import shapley
from shapleyprio.replay.coalitions.contributions import all_coalitions
from shapleyprio.replay.coalitions.estimate import estimate
from shapleyprio.replay.coalitions.first_come import values_of
from shapleyprio.replay.coalitions.game import Game, game_of
from shapleyprio.replay.logs.clusters import claims_of_files, consortium_of_claims
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.replay.workloads.choices import ALL_CLUSTERS
from shapleyprio.replay.workloads.workload import workload_of
from tests.replay.traces import trace

SITE = {
    "calla": (["croutons", "chapti"], ["reebu", "turdo"]),
    "taifl": (["brioche"], ["honbu"]),
    "caste": (["cornbread"], []),
    "field": (["bannock"], []),
    "center": (["barm", "black"], []),
}
"""Account -> its partitions, and the users that are departments of its own; the center has all
accounts that bring no nodes."""

UNIONS = (0, 0, 0, 1, 1, 2, 3, 4)


@pytest.fixture
def organizations(tmp_path: Path) -> Path:
    """The configuration: a faculty has the jobs of users that are no department."""
    tables = []
    for faculty, (partitions, departments) in SITE.items():
        groups = ["balsh", "ibech", "savwa"] if faculty == "center" else [faculty]
        tables.append({"name": faculty, "partitions": partitions, "groups": groups})
        tables += [{"name": user, "parent": faculty, "users": [user]} for user in departments]
    file = tmp_path / "organizations.toml"
    file.write_text(
        "".join(
            "[[organization]]\n" + "".join(f"{key} = {value!r}\n" for key, value in table.items())
            for table in tables
        )
    )
    return file


def merged(game: Game) -> Game:
    """The same game with each union as one organization."""
    members = np.eye(max(UNIONS) + 1, dtype=np.int64)[list(UNIONS)]
    return replace(
        game,
        organization=np.array(UNIONS)[game.organization],
        owned=game.owned @ members,
        unions=None,
    )


def test_faculties_get_what_they_would_without_departments(organizations: Path) -> None:
    """Kept whole, a department's job might pass one that its faculty's would wait behind."""
    log = read_log(str(trace("xdmod-pozidriv.sacct.gz")))
    consortium = consortium_of_claims(claims_of_files({ALL_CLUSTERS: organizations}, log))
    workload = workload_of(log, consortium, wide="expand")
    assert workload.unions == UNIONS
    assert len(workload.job) == 10_673
    game = game_of(workload)
    found = estimate(game, budget=1, most_starts=0).contribution
    faculties = shapley(values_of(merged(game), all_coalitions(5))[:, 0].tolist())
    sums = [
        sum(share for share, union in zip(found, UNIONS, strict=True) if union == one)
        for one in range(5)
    ]
    assert sums == list(faculties)


def test_all_of_it_is_audited(organizations: Path) -> None:
    log = str(trace("xdmod-pozidriv.sacct.gz"))
    result = CliRunner().invoke(main, ["audit", log, "--organizations", str(organizations)])
    assert result.exit_code == 0, result.output
    assert "10,673 jobs of 8 organizations on 1,228 processors" in result.stdout
    assert "center came off worst: it was 5.2 h late" in result.stdout
