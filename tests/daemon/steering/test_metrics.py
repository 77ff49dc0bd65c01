"""What Prometheus reads: present after a good cycle, absent after a bad one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from shapleyprio.daemon.accounting.tally import AccountedSoFar, Tally
from shapleyprio.daemon.answering.changes import Change
from shapleyprio.daemon.pushing.push import PushCounts
from shapleyprio.daemon.steering.gauges import BY_ORGANIZATION, GAUGES
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.daemon.steering.report import FAILURES, CycleReport
from tests.daemon.consortium import BIOLOGY, FIRST, LAST, NAME, NOW, PHYSICS, Service, config

LONER = {"name": "chemistry", "accounts": ["chem"]}
"""An organization that stands alone."""

PHASES = ("account", "observe", "rank", "push")

if TYPE_CHECKING:
    from collections.abc import Mapping

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
NAMES = {
    "shapleyprio_records": "counter",
    "shapleyprio_pushes": "counter",
    "shapleyprio_cycles": "counter",
    "shapleyprio_store_conflicts": "counter",
    "shapleyprio_submissions": "counter",
    "shapleyprio_table_timestamp_seconds": "gauge",
    "shapleyprio_cycle_phase_duration_seconds": "histogram",
    "shapleyprio_last_success_timestamp_seconds": "gauge",
    "shapleyprio_ledger_lag_seconds": "gauge",
    "shapleyprio_postponed_writes": "gauge",
    "shapleyprio_pause_seconds": "gauge",
    "shapleyprio_jobs_put_first": "gauge",
    "shapleyprio_guarantees": "counter",
    "shapleyprio_jobs_of_unknown_accounts": "gauge",
    "shapleyprio_work_after_end_processor_seconds": "counter",
    "shapleyprio_user_work_after_end_processor_seconds": "gauge",
    "shapleyprio_completed_parts": "gauge",
    "shapleyprio_ranking_rule_info": "gauge",
    "shapleyprio_foreign_priorities": "gauge",
    "shapleyprio_drift_runs": "counter",
    "shapleyprio_estimates": "counter",
    "shapleyprio_forecasts": "counter",
    "shapleyprio_drift_timestamp_seconds": "gauge",
    "shapleyprio_build_info": "gauge",
    "shapleyprio_organization_wait_seconds": "histogram",
    "shapleyprio_organization_oldest_pending_seconds": "gauge",
    **{f"shapleyprio_organization_{name}": "gauge" for name in BY_ORGANIZATION},
}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(NAME)


def exposed(metrics: Metrics) -> Samples:
    """What is exposed, as Prometheus reads it."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(generate_latest(metrics.registry).decode())
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    wanted: Mapping[str, str] = {"cluster": NAME, **labels}
    return exposed(metrics).get((f"shapleyprio_{name}", frozenset(wanted.items())))


def test_names_and_kinds(metrics: Metrics, service: Service) -> None:
    service.slurm.fill("guest")
    service.slurm.submit("physics", processing_time=9)
    metrics.publish(service.run())
    text = generate_latest(metrics.registry).decode()
    families = {family.name: family.type for family in text_string_to_metric_families(text)}
    created = {name for name in families if name.endswith("_created")}
    assert {name: families[name] for name in families.keys() - created} == NAMES
    for family in text_string_to_metric_families(text):
        assert family.name in created or family.documentation.endswith(".")


def test_a_good_cycle_shows_every_organizations_standing(
    metrics: Metrics, service: Service
) -> None:
    service.slurm.fill("biology")
    service.slurm.submit("physics", processing_time=9)
    service.slurm.wait(10)
    metrics.publish(service.run())
    answer = {
        name: [
            value(metrics, f"organization_{name}", organization=organization)
            for organization in ("physics", "biology")
        ]
        for name in BY_ORGANIZATION
    }
    assert answer == {
        "contribution_part_seconds": [8 * 55, 4 * 55],
        "utility_part_seconds": [0, 12 * 55],
        "balance_per_part_seconds": [8 * 55 / 120, -8 * 55 / 120],
        "score": [8 * 55, -8 * 55],
        "priority_points": [FIRST, LAST],
        "pending_jobs": [1, 0],
        "running_jobs": [0, 1],
        "owned_processors": [8, 4],
    }
    assert value(metrics, "completed_parts") == 120
    assert value(metrics, "last_success_timestamp_seconds") == NOW + 10
    assert value(metrics, "ledger_lag_seconds") == 0


def test_who_stands_in_which_union_is_told_where_there_are_unions(
    metrics: Metrics, service: Service
) -> None:
    metrics.publish(service.run())
    assert not [name for name, _ in exposed(metrics) if "union" in name]
    service.restart(config(PHYSICS, {**BIOLOGY, "parent": "physics"}, LONER))
    metrics.publish(service.run())
    unions = {
        (dict(labels)["organization"], dict(labels)["parent"]): number
        for (name, labels), number in exposed(metrics).items()
        if name == "shapleyprio_organization_union_info"
    }
    assert unions == {("physics", "physics"): 1, ("biology", "physics"): 1}


def test_waits_are_counted_once_by_organization_and_partition(
    metrics: Metrics, service: Service
) -> None:
    service.slurm.fill("biology", 100)
    service.slurm.submit("physics", partition="pa", processing_time=500)
    service.slurm.submit("guest", partition="pa", processing_time=500)
    service.slurm.wait(70)
    metrics.publish(service.run())
    place = {"organization": "physics", "partition": "pa"}
    assert value(metrics, "organization_oldest_pending_seconds", **place) == 70
    service.slurm.wait(60)
    for _ in range(2):
        service.slurm.wait(10)
        metrics.publish(service.run())
    assert value(metrics, "organization_oldest_pending_seconds", **place) is None
    buckets = {
        le: value(metrics, "organization_wait_seconds_bucket", le=le, **place)
        for le in ("60.0", "300.0", "+Inf")
    }
    assert buckets == {"60.0": 0, "300.0": 1, "+Inf": 1}
    assert value(metrics, "organization_wait_seconds_sum", **place) == 100
    waited = [dict(labels) for name, labels in exposed(metrics) if "wait_seconds" in name]
    assert {labels["organization"] for labels in waited} == {"physics", "biology"}


def test_what_a_failed_cycle_would_have_reported_is_absent(
    metrics: Metrics, service: Service
) -> None:
    metrics.publish(service.run())
    metrics.publish_failure("slurm_unavailable")
    assert not [name for name, _ in exposed(metrics) if "organization" in name or "lag" in name]
    assert value(metrics, "cycles_total", outcome="slurm_unavailable") == 1
    assert value(metrics, "last_success_timestamp_seconds") == NOW
    metrics.publish(service.run())
    assert value(metrics, "organization_priority_points", organization="physics") == FIRST
    assert value(metrics, "cycles_total", outcome="ok") == 2


def test_a_table_that_was_never_written_is_as_old_as_can_be(
    metrics: Metrics, service: Service
) -> None:
    report = service.run()
    shown = []
    for written in (None, NOW, None):
        metrics.publish(replace(report, keeps_table=True, table_written=written))
        shown.append(value(metrics, "table_timestamp_seconds"))
    assert shown == [0, NOW, NOW]
    metrics.publish(report)
    assert value(metrics, "table_timestamp_seconds") is None


def test_who_steers_no_more_shows_what_it_counted_alone(metrics: Metrics, service: Service) -> None:
    metrics.publish(service.run())
    metrics.withdraw()
    shown = {name for name, _ in exposed(metrics)}
    assert "shapleyprio_cycles_total" in shown
    assert not [name for name in shown if name.endswith("timestamp_seconds")]
    assert not shown & {f"shapleyprio_{name}" for name in GAUGES}


def test_nothing_is_left_of_a_ledger_that_is_no_more(metrics: Metrics, service: Service) -> None:
    service.slurm.submit("physics", processing_time=9)
    metrics.publish(service.run())
    metrics.publish_changes([Change(at=NOW, kind="upgrade", what="Slurm 1 to 2")])
    metrics.of(f"{NAME}/gpu").publish_failure("slurm_refused")
    metrics.withdraw_others({f"{NAME}/gpu"})
    clusters = {dict(labels).get("cluster") for _, labels in exposed(metrics)}
    assert clusters == {None, f"{NAME}/gpu"}  # what has none is the version
    metrics.of(NAME)
    assert value(metrics, "cycles_total", outcome="ok") == 0


def test_nothing_but_that_nothing_was_done_is_claimed_before_the_first_cycle(
    metrics: Metrics,
) -> None:
    answer = {
        name: count for (name, _), count in exposed(metrics).items() if "_created" not in name
    }
    assert {name for name, count in answer.items() if count} == {"shapleyprio_build_info"}
    assert answer.keys() - {"shapleyprio_build_info"} == {
        f"shapleyprio_{what}_total"
        for what in (
            *("records", "pushes", "cycles", "submissions", "store_conflicts"),
            *("drift_runs", "estimates", "forecasts"),
        )
    }


def test_every_outcome_of_a_cycle_is_there_from_the_first_on(metrics: Metrics) -> None:
    for outcome in ("ok", "dry_run", *FAILURES.values(), "lease_lost", "defect"):
        assert value(metrics, "cycles_total", outcome=outcome) == 0


def test_a_dry_run_is_counted_as_one(metrics: Metrics, service: Service) -> None:
    metrics.publish(service.run(dry_run=True), dry_run=True)
    assert value(metrics, "cycles_total", outcome="dry_run") == 1
    assert value(metrics, "cycles_total", outcome="ok") == 0


def test_counters_add_up(metrics: Metrics) -> None:
    report = CycleReport(
        number=1,
        accounted=AccountedSoFar(
            tally=Tally(seen=9, kept=5, unstarted=1, quarantined=1, late=1, withdrawn=1)
        ),
        pushed=PushCounts(applied=3, refused=2, unconfirmed=1),
        seconds=dict.fromkeys(PHASES, 0.5),
    )
    metrics.publish(report)
    metrics.publish(replace(report, number=2))
    results = {"seen": 18, "kept": 10, "unstarted": 2, "quarantined": 2, "late": 2, "withdrawn": 2}
    for result, count in results.items():
        assert value(metrics, "records_total", result=result) == count
    for state, count in {"applied": 6, "refused": 4, "unconfirmed": 2}.items():
        assert value(metrics, "pushes_total", state=state) == count
    for phase in PHASES:
        assert value(metrics, "cycle_phase_duration_seconds_count", phase=phase) == 2
        assert value(metrics, "cycle_phase_duration_seconds_sum", phase=phase) == 1


def test_the_phases_of_a_cycle_are_those_measured(service: Service) -> None:
    assert tuple(service.run().seconds) == PHASES
