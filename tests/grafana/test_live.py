"""Every query of every dashboard, put to a Prometheus that reads a daemon on a real Slurm.

All of it is what `shapleyprio demo --watch` starts, at the addresses that it prints.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import psutil
import pytest

from grafana.generate import DASHBOARDS
from shapleyprio.config import load_config
from shapleyprio.fairness.pool import ClusterBalances
from shapleyprio.fairness.worth import NOTHING
from shapleyprio.lab.demo.consortium import CLUSTER, MEMBERS
from shapleyprio.lab.testbed.machine import TestbedError
from shapleyprio.lab.testbed.processes import wait_until
from shapleyprio.store import Store
from tests.grafana.asked import Asked, all_asked, committed
from tests.grafana.exposition import metrics_and_labels
from tests.lab.demo.test_demo import DEMO
from tests.processes import processes_mentioning

pytestmark = pytest.mark.real_slurm

ASKED = list(all_asked())
ORGANIZATIONS = {member.name for member in MEMBERS}
OF_SOME = ("alone_gain", "oldest_pending")
"""Metrics that not every organization has at any time."""

RANGE_SECONDS = 60
HISTOGRAMS = ("phase_duration_seconds", "wait_seconds")
PATIENCE_SECONDS = 240
"""On a machine that is busy besides; it is some 40 on one that is not."""


class Watched:
    """The running demo, and what its Prometheus answers."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._output = directory / "output"
        with self._output.open("w") as output:
            self._process = subprocess.Popen(
                [*DEMO, "--watch", "--speed", "20", "--directory", str(directory / "d")],
                stdout=output,
                stderr=output,
            )

    def address(self, name: str) -> str | None:
        """What is printed behind a name."""
        found = re.search(rf"^{name}: (http://\S+)/", self.said(), re.MULTILINE)
        return None if found is None else found[1]

    def said(self) -> str:
        return self._output.read_text()

    def ask(self, path: str, **parameters: str) -> Any:
        """What Prometheus answers."""
        address = self.address("Prometheus")
        assert address is not None
        with urlopen(f"{address}/api/v1/{path}?{urlencode(parameters)}", timeout=60) as response:
            answer = json.load(response)
        assert answer["status"] == "success"
        return answer["data"]

    def knows(self, metric: str) -> bool:
        """Whether it has two values of the metric at least, so that it can show a rate."""
        counted = self.ask("query", query=f"count_over_time({metric}[{RANGE_SECONDS}s]) > 1")
        return bool(counted["result"])

    def let_it_write_a_table_and_be_in_a_pool(self) -> None:
        """Makes the daemon write the table of points as well, and count another cluster's work.

        The last organization becomes a part of the first.
        """
        file = self.directory / "d" / "shapleyprio.toml"
        found = ClusterBalances(
            cluster="other",
            since=0,
            t=int(time.time()),
            weight="cpus",
            all_parts=0,
            balances=dict.fromkeys(ORGANIZATIONS, NOTHING),
        )
        with (
            Store.open(load_config(file).store.url) as store,
            store.cluster(found.cluster).transaction() as transaction,
        ):
            transaction.pools.save_balances("all", found)
        table = f'[push]\ntable = "{file.with_name("points")}"\n'
        pool = f'[[pool]]\nname = "all"\nclusters = ["{CLUSTER}", "{found.cluster}"]\n'
        of_the_last = f'{file.read_text()}\nparent = "{min(ORGANIZATIONS)}"\n'
        file.write_text(f"{table}\n{of_the_last}\n{pool}")
        self._daemon().send_signal(signal.SIGHUP)

    def let_a_job_go_on_after_its_end(self) -> None:
        """Submits one that goes on until KillWait is over."""
        script = "trap '' TERM CONT; scancel $SLURM_JOB_ID; while :; do :; done"
        words = ("--priority=4000000000", f"--account={min(ORGANIZATIONS)}", "--output=/dev/null")
        environment = self._daemon().environ()
        subprocess.run(["sbatch", *words, f"--wrap={script}"], env=environment, check=True)

    def _daemon(self) -> psutil.Process:
        words = [
            "shapleyprio",
            "daemon",
            "--config",
            str(self.directory / "d" / "shapleyprio.toml"),
        ]
        (daemon,) = (
            process
            for process in psutil.process_iter(["cmdline"])
            if (process.info["cmdline"] or [])[-len(words) :] == words
        )
        return daemon

    def running(self) -> bool:
        return self._process.poll() is None

    def end(self) -> int:
        """Ctrl-C."""
        if self.running():
            self._process.send_signal(signal.SIGINT)
        return self._process.wait(PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def watched(
    private_slurm_programs: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Watched]:
    if shutil.which("prometheus") is None:
        pytest.skip("Prometheus is not installed (Debian's package prometheus)")
    demo = Watched(tmp_path_factory.mktemp("w"))
    missing = {name for name in metrics_and_labels() if not name.endswith(HISTOGRAMS)}
    prepared = False

    def everything_came() -> bool:
        assert demo.running(), demo.said()
        nonlocal prepared
        if demo.address("Prometheus") is not None:
            if not prepared and demo.knows("shapleyprio_cycles_total"):
                demo.let_a_job_go_on_after_its_end()
                demo.let_it_write_a_table_and_be_in_a_pool()
                prepared = True
            missing.difference_update({name for name in missing if demo.knows(name)})
        time.sleep(1)
        return not missing

    try:
        try:
            wait_until(everything_came, real_seconds=PATIENCE_SECONDS, what="metrics")
        except TestbedError as error:
            raise TestbedError(f"{error}: {missing}; the demo said: {demo.said()}") from error
        yield demo
    finally:
        demo.end()


def filled_in(expression: str) -> str:
    """As Grafana would ask, with all organizations chosen, or the first where it must be one."""
    values = {
        "$__rate_interval": f"{RANGE_SECONDS}s",
        "$__range": f"{RANGE_SECONDS}s",
        "$cluster": CLUSTER,
        '="$organization"': f'="{min(ORGANIZATIONS)}"',
        "$organization": f"({'|'.join(sorted(ORGANIZATIONS))})",
    }
    for variable, value in values.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression
    return expression


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_a_query_returns_data(watched: Watched, asked: Asked) -> None:
    expression = filled_in(asked.expression)
    if asked.instant:
        series = watched.ask("query", query=expression)["result"]
        points = [[row["value"]] for row in series]
    else:
        now = time.time()
        span = {"start": str(now - RANGE_SECONDS), "end": str(now), "step": "1"}
        series = watched.ask("query_range", query=expression, **span)["result"]
        points = [row["values"] for row in series]
    assert series
    assert any(not math.isnan(float(value)) for values in points for _, value in values)
    if "by (parent)" in expression:
        assert {row["metric"]["parent"] for row in series} == {min(ORGANIZATIONS)}
    elif "by (organization)" in expression and not any(one in expression for one in OF_SOME):
        one_alone = 'organization="$organization"' in asked.expression
        expected = {min(ORGANIZATIONS)} if one_alone else ORGANIZATIONS
        shown = {row["metric"]["organization"] for row in series}
        # an organization without a pending job has no oldest one
        assert shown <= expected if "oldest_pending" in expression else shown == expected


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_variables_offer_what_there_is(watched: Watched, name: str) -> None:
    offered = {"cluster": {CLUSTER}, "organization": ORGANIZATIONS}
    for variable in committed(name)["templating"]["list"]:
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            assert asked is not None
            series = watched.ask("series", **{"match[]": filled_in(asked[1])})
            assert {row[asked[2]] for row in series} == offered[variable["name"]]


def test_the_status_page_answers_where_it_is_said_to(watched: Watched) -> None:
    address = watched.address("status page")
    assert address is not None
    with urlopen(f"{address}/", timeout=60) as page:
        text = page.read().decode()
    assert [name for name in ORGANIZATIONS if name not in text] == []


def test_ctrl_c_ends_everything_well(watched: Watched) -> None:
    assert watched.end() == 0, watched.said()
    assert "priorities put back as they were found" in watched.said()
    assert "everything is stopped, no process is left" in watched.said()
    assert processes_mentioning(watched.directory) == []
