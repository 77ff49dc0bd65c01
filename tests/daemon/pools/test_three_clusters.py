"""The operations manual's commands for three clusters, run on three hosts with one store."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from shapleyprio.lab.testbed.processes import wait_until
from tests.daemon import head_node, played_daemon
from tests.daemon.steering.test_two_head_nodes import MANUAL, PATIENCE_SECONDS, URL, Heads
from tests.store.servers import Databases

SECTION = MANUAL.partition("\n## Three clusters\n")[2].partition("\n## ")[0]
(CONFIGURED,) = re.findall(r"^```toml\n(.*?)^```$", SECTION, flags=re.MULTILINE | re.DOTALL)
(COMMANDS,) = re.findall(r"^```sh\n(.*?)^```$", SECTION, flags=re.MULTILINE | re.DOTALL)
CLUSTERS = ("c1", "c2", "c3")
STATUS = "runuser -u shapleyprio -- shapleyprio status\n"


@pytest.fixture
def url(databases: Databases, database: str) -> Iterator[str]:
    with databases.empty(database) as url:
        yield url


@pytest.fixture
def hosts(url: str) -> Iterator[Heads]:  # they end before their database does
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="clusters-")))
        hosts = Heads(folder, stack, CLUSTERS)
        stack.callback(hosts.kill_all)
        yield hosts


def configure(hosts: Heads, cluster: str, url: str) -> None:
    """Writes the manual's configuration for a cluster, and what only it can know."""
    manuals = CONFIGURED.replace(URL, url)
    assert manuals != CONFIGURED
    (hosts.folder / cluster / head_node.NAME).write_text(
        manuals.replace('cluster = "c1"', f'cluster = "{cluster}"')
        + '[service]\npoll_interval = "1s"\nnew_jobs_interval = "off"\n'
        f'socket = "off"\n[metrics]\naddress = "{head_node.DOCUMENTED}"\n'
        '[fairness]\nrule = "directcontr"\nleave_out_accounts = ["guest"]\n'
        '[drift]\ninterval = "off"\n'
        '[[organization]]\nname = "physics"\naccounts = ["physics"]\npartitions = ["pa"]\n'
        '[[organization]]\nname = "biology"\naccounts = ["biology"]\npartitions = ["pb"]\n'
    )


def others_that_count(hosts: Heads, cluster: str) -> set[str]:
    """Other clusters that counted in its last cycle, as its metrics say."""
    text = head_node.metrics((hosts.folder / cluster / "address").read_text())
    return set(re.findall(r'^shapleyprio_pool_stale\{.*other="(.*)"\} 0', text, re.MULTILINE))


def test_the_manuals_commands_put_three_clusters_into_a_pool(hosts: Heads, url: str) -> None:
    assert COMMANDS.endswith(STATUS)
    for cluster in CLUSTERS:
        configure(hosts, cluster, url)
        hosts.environment = {played_daemon.CLUSTER: cluster}
        printed = [
            hosts.run(line, on=cluster) for line in COMMANDS.removesuffix(STATUS).splitlines()
        ]
        assert "0 errors, 0 warnings" in printed[1]
        assert f"{cluster}, " in printed[2]
        assert "a dry run, nothing is written or kept" in printed[2]
    for cluster in CLUSTERS:
        others = [name for name in CLUSTERS if name != cluster]
        wait_until(
            lambda: others_that_count(hosts, cluster) == set(others),  # noqa: B023  # called at once
            real_seconds=PATIENCE_SECONDS,
            what=f"{cluster} to count {others}",
        )
        said = re.search(
            r"^Pool all of Northern universities: .* and those at (.*)\.$",
            hosts.run(STATUS, on=cluster),
            re.MULTILINE,
        )
        assert said is not None
        assert re.findall(r"\b(c\d) \(", said[1]) == others
