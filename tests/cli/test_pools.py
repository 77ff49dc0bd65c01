"""Commands on a pool over two clusters, each with its own configuration, on one store."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from shapleyprio.common.wording import owed, signed_duration
from tests.cli.conftest import CommandLine, speaking_to
from tests.daemon.consortium import BIOLOGY, NOW, PHYSICS, Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from click.testing import Result

MONTH = "2027-01"
NAMES = ("c1", "c2")
HOUR = 3600
DOCUMENTS = Path(__file__).parents[2] / "docs"
SECONDS = 100
PROCESSORS = 12


class Sites:
    """Two clusters in the pool `all`, with a cycle behind them."""

    def __init__(self, folder: Path) -> None:
        self.slurm = {name: Cluster(name) for name in NAMES}
        self.shell = CommandLine(folder, self.slurm["c1"])
        for name in NAMES:
            self.shell.write(
                folder / f"{name}.toml",
                PHYSICS,
                BIOLOGY,
                slurm={"cluster": name},
                consortium={"name": "Northern universities"},
                pool=[{"name": "all", "clusters": list(NAMES)}],
            )

    def run(self, name: str, *arguments: str) -> Result:
        """A command at a cluster."""
        file = self.shell.folder / f"{name}.toml"
        result = self.shell.run(*arguments, "--config", str(file))
        assert result.exit_code == 0, result.output
        return result

    def cycle(self) -> None:
        for name in NAMES:
            self.run(name, "daemon", "--once")


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sites]:
    """Biology has all of c1 for a while, and physics half as long of c2, where biology waits."""
    sites = Sites(tmp_path)

    def connect(config: Any, *_: Any) -> Cluster:
        return sites.slurm[config.slurm.cluster]

    with speaking_to(connect, monkeypatch):
        sites.cycle()
        sites.slurm["c1"].fill("biology", SECONDS)
        sites.slurm["c2"].fill("physics", SECONDS // 2)
        sites.slurm["c2"].submit("biology", processors=PROCESSORS, processing_time=SECONDS)
        for slurm in sites.slurm.values():
            slurm.wait(HOUR)
        sites.cycle()
        yield sites


def worth(start: int, end: int, now: int = HOUR, processors: int = PROCESSORS) -> int:
    """Of a job on a whole cluster, when the hour is over (SPAA 2013, Eq. 3)."""
    return processors * sum(now - second for second in range(start, end))


def test_the_report_of_a_pool_is_of_all_its_clusters(sites: Sites) -> None:
    exact = []
    for name in NAMES:
        directory = sites.shell.folder / f"reports-{name}"
        printed = sites.run(name, "report", "--month", MONTH, "--output", str(directory)).stdout
        assert printed.splitlines()[-2:] == [
            str(directory / f"all-{MONTH}.{ending}") for ending in ("html", "json")
        ]
        lacks = (
            "Of this month the store holds only 2027-01-15 08:00 to 2027-01-15 09:00 UTC of c1, c2."
        )
        assert lacks in printed
        page = unescape((directory / f"all-{MONTH}.html").read_text().split("<script")[0])
        assert "How fair was January 2027? all" in page
        assert lacks in page
        read = json.loads((directory / f"all-{MONTH}.json").read_text())
        for policy in read["policies"]:
            del policy["seconds"]
        exact.append(read)
    assert exact[0] == exact[1]
    recorded = exact[0]["policies"][0]["organizations"]
    assert {one["name"]: one["utility"] for one in recorded} == {
        "physics": worth(0, SECONDS // 2),
        "biology": worth(0, SECONDS) + worth(SECONDS // 2, 3 * SECONDS // 2),
    }


def test_a_cluster_without_accounts_is_left_out_of_the_report(sites: Sites) -> None:
    sites.slurm["c1"].wait(7200)
    sites.run("c1", "daemon", "--once")
    directory = sites.shell.folder / "reports"
    printed = sites.run("c1", "report", "--month", MONTH, "--output", str(directory)).stdout
    assert "It leaves out c2: the store holds too little there." in printed
    assert "08:00 to 2027-01-15 11:00 UTC of c1." in printed


def test_history_and_ownership_are_the_clusters_own(sites: Sites) -> None:
    for name in NAMES:
        for pool in ([], ["--pool", "all"]):
            rows = json.loads(sites.run(name, "history", "--json", *pool).stdout)
            assert {row["t"] for row in rows} == {NOW, NOW + HOUR}
            listed = json.loads(sites.run(name, "ownership", "--json", *pool).stdout)
            assert listed["cluster"] == name
    scores = {
        name: {
            row["organization"]: row["score"]
            for row in json.loads(sites.run(name, "history", "--json").stdout)[:2]
        }
        for name in NAMES
    }
    sites.cycle()  # c1 had not seen c2's last cycle
    scores["c1"] = {
        row["organization"]: row["score"]
        for row in json.loads(sites.run("c1", "history", "--json").stdout)[:2]
    }
    assert scores["c1"] == scores["c2"]
    assert re.search("Pool all of Northern universities: ", sites.run("c1", "status").stdout)


# -- explain


def explained_at_c2(sites: Sites, *arguments: str) -> str:
    return sites.run("c2", "explain", "--account", "physics", *arguments).stdout


def test_explain_says_what_was_got_here_and_what_decides_in_the_pool(sites: Sites) -> None:
    """Physics, with 8 of 12 processors at each, owes at c2 less than it is owed at c1."""
    sites.slurm["c2"].fill("physics", 400)
    for slurm in sites.slurm.values():
        slurm.wait(HOUR)
    sites.cycle()
    now = 2 * HOUR
    lent = worth(50, 150, now, processors=8)
    borrowed = worth(0, 50, now, processors=4) + worth(HOUR, HOUR + 400, now, processors=4)
    own, parts = lent - borrowed, PROCESSORS * (50 + 100 + 400)
    pooled, all_parts = own + worth(0, 100, now, processors=8), parts + PROCESSORS * 100
    assert own < 0 < pooled

    found = json.loads(explained_at_c2(sites, "--json"))
    (physics,) = found["organizations"]
    assert (physics["balance"], physics["score"], physics["rank"]) == (own, pooled, 1)
    assert (found["cluster"], found["pool"]["name"]) == ("c2", "all")
    assert physics["balance_per_part"] == pytest.approx(own / parts)
    assert found["pool"]["balances_per_part"]["physics"] == pytest.approx(pooled / all_parts)

    text = explained_at_c2(sites)
    assert f"physics {owed(own / parts)} at c2, measured by" in text
    assert f"since they joined it, physics {owed(pooled / all_parts)}.\n" in text


def test_explain_says_which_cluster_of_the_pool_is_stale(sites: Sites) -> None:
    sites.slurm["c2"].wait(HOUR)
    sites.run("c2", "daemon", "--once")
    text = explained_at_c2(sites)
    assert re.search(r"points\.\nc1 is stale: its last cycle was at .*as they stood then\.\n", text)
    (other,) = json.loads(explained_at_c2(sites, "--json"))["pool"]["clusters"]
    assert (other["cluster"], other["state"]) == ("c1", "stale")


def test_status_shows_the_balance_in_the_pool_beside_that_here(
    sites: Sites,
) -> None:
    status = json.loads(sites.run("c2", "status", "--json").stdout)
    printed = sites.run("c2", "status").stdout
    assert "in the pool" in printed.splitlines()[1]
    for row in status["organizations"]:
        pooled = status["pool"]["balances_per_part"][row["organization"]]
        (line,) = re.findall(f"^ *{row['organization']} .*", printed, re.MULTILINE)
        assert f"{signed_duration(row['balance_per_part'])}  {signed_duration(pooled)}" in re.sub(
            " {2,}", "  ", line
        )


def test_the_documents_name_what_json_says_of_a_pool(sites: Sites) -> None:
    pool = json.loads(explained_at_c2(sites, "--json"))["pool"]
    (row,) = re.findall(r"^\| `pool` .*", (DOCUMENTS / "status-page.md").read_text(), re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", row))
    assert {*pool, *pool["clusters"][0]} - {"cluster"} <= named
