"""By how much an organization was late or ahead in a window is one number, wherever it stands."""

from __future__ import annotations

import json
import re
from contextlib import closing
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from shapleyprio.cli import main
from shapleyprio.common.wording import clock_time, delay, duration
from shapleyprio.config import load_config
from shapleyprio.daemon.drift.live import LiveDrift
from shapleyprio.daemon.serving.overview import Overviews
from shapleyprio.daemon.serving.page import render
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.store import Store
from tests.daemon.consortium import NAME, NOW

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine

RULES = ("directcontr", "shapley")
CHANNEL = "site_factor"
BEGIN = "2027-01-15T08:00:00Z"
MONTH = "2027-01"
HOURS = 2


@pytest.fixture(params=RULES)
def lived(request: pytest.FixtureRequest, shell: CommandLine) -> CommandLine:
    """Biology floods the cluster for hours, and physics waits for its own nodes again and again."""
    shell.configure(fairness={"rule": request.param, "since": BEGIN}, push={"channel": CHANNEL})
    shell.slurm.cancel(1)
    for hour in range(HOURS):
        for _ in range(3):
            shell.slurm.submit("biology", processors=8, processing_time=1800 + 60 * hour)
        shell.slurm.submit("physics", processors=6, processing_time=1500)
        for seconds in (600, 3000):
            shell.slurm.wait(seconds)
            assert shell.run("daemon", "--once").exit_code == 0
    return shell


def replayed(shell: CommandLine) -> Metrics:
    """The daemon's own replay of the last window, stored and published."""
    metrics = Metrics(NAME)
    with closing(Store.open(shell.url)) as store:
        drift = LiveDrift(store.cluster(NAME), shell.url, metrics)
        drift.replay(load_config(shell.file))
        assert drift.trouble == ""
    return metrics


def facts(shell: CommandLine, *command: str) -> Any:
    result = shell.run(*command)
    assert result.exit_code in {0, 1}, result.output  # the simulated clock is not the machine's
    return json.loads(result.stdout)


def of_audit(found: dict[str, Any]) -> dict[str, float]:
    recorded = found["policies"][0]
    assert recorded["policy"] == "recorded"
    return {one["name"]: one["drift"] for one in recorded["organizations"]}


def test_every_surface_has_the_same_number_for_a_window(lived: CommandLine) -> None:
    metrics = replayed(lived)
    rule = load_config(lived.file).fairness.rule
    status = facts(lived, "status", "--json")
    begin, end = status["drift"]["begin"], status["drift"]["end"]
    numbers = {one["organization"]: one["drift_seconds"] for one in status["organizations"]}
    assert (begin, end) == (NOW, NOW + 10 + HOURS * 3600)  # all that there is, in one month
    assert min(map(abs, numbers.values())) > 60
    assert len(set(numbers.values())) == 2

    found: dict[str, dict[str, float]] = {}
    found["metrics"] = {
        name: metrics.registry.get_sample_value(
            "shapleyprio_organization_drift_seconds",
            {"cluster": NAME, "organization": name, "schedule": "recorded"},
        )
        or 0.0
        for name in numbers
    }
    found["explain"] = {
        name: facts(lived, "explain", "--account", name, "--json")["organizations"][0][
            "drift_seconds"
        ]
        for name in numbers
    }
    history = facts(lived, "history", "--drift", "--json")
    assert {(one["begin"], one["t"]) for one in history} == {(begin, end)}
    found["drift"] = {one["organization"]: one["drift_seconds"]["recorded"] for one in history}
    with closing(Store.open(lived.url)) as store:
        overview = Overviews(store.cluster(NAME), lambda: None).latest()
    lines = overview.as_json()["drift"]["organizations"]
    found["page"] = {name: line[-1][1] for name, line in lines.items()}
    since, until = (clock_time(second).replace(" ", "T") for second in (begin, end))
    audit = ("audit", lived.url, "--organizations", str(lived.file))
    audited = CliRunner().invoke(main, [*audit, "--since", since, "--until", until, "--json"])
    assert audited.exit_code == 0, audited.output
    found["audit"] = of_audit(json.loads(audited.stdout))
    reports = lived.folder / "reports"
    printed = lived.run("report", "--month", MONTH, "--output", str(reports))
    assert printed.exit_code == 0, printed.output
    found["report"] = of_audit(json.loads((reports / f"{NAME}-{MONTH}.json").read_text()))
    assert found == dict.fromkeys(found, numbers)

    # people read the same words everywhere, and which window they are about
    words = {name: delay(-seconds) for name, seconds in numbers.items()}
    against = f"the fair schedule (ref) of the {duration(end - begin)} to {clock_time(end)}"
    shown = lived.run("status").stdout
    page = unescape(re.sub(r"<[^>]+>", " ", render(overview)))
    for text in (shown, page):
        assert f"Late or ahead: against {against}, spread over everybody's work" in text
        assert f"The rule {rule} has steered since {clock_time(NOW + 610)}" in text
    whole = (reports / f"{NAME}-{MONTH}.html").read_text()
    written = unescape(whole.split("<script")[0])
    assert f"before, the rule {rule} by the channel {CHANNEL} since" in printed.stdout
    assert f"{clock_time(NOW + 610)}" in written
    latest = min(numbers, key=numbers.__getitem__)
    assert f"{latest} came off worst: it was {words[latest]}." in printed.stdout
    for name, late in words.items():
        for text in (shown, page, whole):
            assert late in text
        explained = lived.run("explain", "--account", name).stdout
        assert f"Against {against}, {name} was {late}, spread over everybody's work." in explained
