"""An owner's guarantee under hostile jobs of others: kept if these are short, else broken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress

import pytest

from shapleyprio.daemon.ranking.guarantees import AHEAD
from tests.end_to_end.consortium import ALL_CPUS, CPUS_PER_NODE, Consortium, clear

pytestmark = pytest.mark.real_slurm

SPEED = 60
MINUTE = 60
GUARANTEE = 20 * MINUTE
DEBT_SECONDS = 30 * MINUTE
"""For which gamma has had all nodes, so that by the rule it comes last for long."""


@pytest.fixture
def indebted(consortium: Consortium) -> Iterator[Consortium]:
    """Gamma comes last by the rule, and everybody has a guarantee."""
    work = consortium.cluster.submit("gamma", DEBT_SECONDS, processors=ALL_CPUS)
    consortium.until(lambda: not consortium.state(work), what="gamma's work to end")
    consortium.configure(poll_seconds=60, guarantee=f"{GUARANTEE}s")
    yield consortium
    consortium.close()
    clear(consortium.cluster)


HISTORY = ("history", "--json", "--job")


def submit(consortium: Consortium, account: str, seconds: int, tasks: int = 1) -> int:
    extra = () if tasks == 1 else (f"--array=1-{tasks}",)
    return consortium.cluster.submit(account, seconds, processors=CPUS_PER_NODE, extra=extra)


def became(consortium: Consortium) -> dict[str, int]:
    """What the metrics say of gamma's guarantees; nothing if they are too slow for the clock."""
    found: list[tuple[str, str]] = []
    with suppress(OSError):
        found = re.findall(
            r'shapleyprio_guarantees_total\{.*organization="gamma",result="(\w+)"\} (\d+)',
            consortium.metrics(),
        )
    return {result: int(number) for result, number in found}


def test_it_is_kept_under_short_jobs_of_others_though_the_rule_puts_its_owner_last(
    indebted: Consortium,
) -> None:
    hostile = [submit(indebted, name, 2 * MINUTE, tasks=60) for name in ("alpha", "beta")]
    indebted.until(lambda: indebted.state(hostile[1]) != "", what="the others' jobs")
    job = submit(indebted, "gamma", 5 * MINUTE)
    with indebted.daemon() as daemon:
        indebted.until(lambda: bool(indebted.points()), what="a cycle")
        assert indebted.order()[-1] == "gamma"
        found: dict[str, int] = {}

        def is_kept() -> bool:
            found.update(became(indebted))
            return found.get("kept") == 1

        indebted.until(is_kept, what="the job to start")
        waiting = indebted.waiting()
        assert all(array in waiting for array in hostile)
        assert found == {"asked": 1, "kept": 1, "broken": 0}
        assert indebted.order()[-1] == "gamma"  # what it uses is charged as ever
        assert daemon.end() == 0
    why = [push["reason"] for push in json.loads(indebted.succeed(*HISTORY, str(job)))]
    assert "put first by fairness.guarantee: gamma uses 0 of its 2 processors in" in why[0]
    (begin,) = [
        int(start) - int(submitted)
        for number, submitted, start in indebted.accounted("JobIDRaw", "Submit", "Start")
        if number == str(job)
    ]
    assert GUARANTEE <= begin <= 2 * GUARANTEE


def test_it_is_asked_for_ahead_where_others_may_hold_all_nodes_for_longer(
    indebted: Consortium,
) -> None:
    indebted.configure(poll_seconds=60, guarantee=f"{GUARANTEE}s", guarantee_ahead=True)
    held = [submit(indebted, name, 6 * GUARANTEE) for name in ("alpha", "beta", "beta")]
    for job in held:
        indebted.await_start(job)
    job = submit(indebted, "gamma", MINUTE)
    with indebted.daemon() as daemon:
        indebted.until(lambda: became(indebted).get("asked") == 1, what="a cycle")
        explained = " ".join(indebted.run("explain", str(job)).stdout.split())
        assert AHEAD in explained
        assert indebted.order()[-1] == "gamma"
        assert max(indebted.waiting().values(), key=lambda one: one.priority).job_id == job
        indebted.cancel(*held)
        indebted.await_start(job)
        assert daemon.end() == 0


def test_it_is_broken_and_counted_where_others_hold_all_nodes_for_longer(
    indebted: Consortium,
) -> None:
    for name in ("alpha", "beta", "beta"):
        indebted.await_start(submit(indebted, name, 6 * GUARANTEE))
    job = submit(indebted, "gamma", MINUTE)
    with indebted.daemon() as daemon:
        indebted.until(lambda: bool(indebted.points()), what="a cycle")
        indebted.until(
            lambda: became(indebted) == {"asked": 2, "kept": 0, "broken": 1}, what="the metrics"
        )
        explained = " ".join(indebted.run("explain", str(job)).stdout.split())
        assert "It goes before all others since" in explained
        assert "gamma uses 0 of its 2 processors in partition" in explained
        status = indebted.run("status").stdout  # it may find the last cycle old on this clock
        assert "1 job of gamma goes before all others by fairness.guarantee" in status
        assert daemon.end() == 0
