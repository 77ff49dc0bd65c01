"""What metrics show of the last cycle, changes, replay, estimate and forecasts."""

from __future__ import annotations

from collections import Counter as Counted
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import get_args

from shapleyprio.daemon.answering.changes import Change
from shapleyprio.daemon.drift.figures import alone_gains_of, drifts_of, unfairness_of
from shapleyprio.daemon.forecasting.scores import ForecastScore
from shapleyprio.daemon.pushing.by_hand import Kind
from shapleyprio.daemon.steering.report import CycleReport
from shapleyprio.fairness.pool import PartState
from shapleyprio.store import DriftRow, EstimateRow, StandingRow

BY_ORGANIZATION = {
    "contribution_part_seconds": (
        "Contribution that the ranking counts: under directcontr worth of the parts executed on "
        "its processors, under shapley an estimate of its Shapley value."
    ),
    "utility_part_seconds": "Utility: worth of the parts of its jobs.",
    "balance_per_part_seconds": (
        "Balance, spread over all work done: contribution minus utility, by the completed parts; "
        "above zero it is owed."
    ),
    "score": "Score that the rule ranks it by, the highest first; under directcontr the balance.",
    "priority_points": "Priority points that its pending jobs get.",
    "pending_jobs": "Jobs that wait.",
    "running_jobs": "Jobs that run.",
    "owned_processors": "Processors it brings, in the configured weight.",
}
"""Metric of every organization, without prefix -> its help text."""

MOST_CHANGES = 20
LONGEST_CHANGE = 200
"""Changes, and characters of each, that the metrics have."""

GAUGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    # of changes; also while cycles fail
    "change_timestamp_seconds": (
        "When something changed in the last day, as `shapleyprio changes` shows it.",
        ("kind", "what"),
    ),
    # of the last cycle
    "ledger_lag_seconds": (
        "Age of the last second up to which accounting is known to be complete.",
        (),
    ),
    "postponed_writes": ("Writes into Slurm that the last cycle left to the next.", ()),
    "pause_seconds": ("Time since the begin of the present pause; 0 without one.", ()),
    "jobs_put_first": ("Pending jobs that go first by exceptions and guarantees.", ()),
    "jobs_of_unknown_accounts": (
        "Pending jobs under accounts that Slurm's accounting does not know.",
        (),
    ),
    "ranking_rule_info": (
        "The rule that ranked the organizations; directcontr while shapley has no estimate.",
        ("rule",),
    ),
    "foreign_priorities": (
        "Accounts that somebody else has set, pending jobs that do not have the points of their "
        "account, and those at which somebody has set priority, site factor or nice.",
        ("of",),
    ),
    "pool_age_seconds": (
        "Age of another cluster's last cycle in the pool, by this cluster's clock.",
        ("other",),
    ),
    "pool_stale": (
        "Whether that cycle is too old (its last balances count), missing, or in another weight.",
        ("other",),
    ),
    "completed_parts": (
        "Parts of all jobs completed since the ledger's opening.",
        (),
    ),
    "user_work_after_end_processor_seconds": (
        "Processor-seconds of a user's jobs after their end, of jobs that ended in the last day; "
        "for the users with the most.",
        ("organization", "user"),
    ),
    "organization_oldest_pending_seconds": (
        "Wait so far of the oldest eligible pending job; absent without one.",
        ("organization", "partition"),
    ),
    "organization_union_info": (
        "The union that it stands in, by its parent; absent for one that stands alone.",
        ("organization", "parent"),
    ),
    **{f"organization_{name}": (text, ("organization",)) for name, text in BY_ORGANIZATION.items()},
    # of the replay of the last window
    "organization_drift_seconds": (
        "By how much its jobs came ahead of the fair schedule in the last window, spread over "
        "everybody's work; negative: late.",
        ("organization", "schedule"),
    ),
    "unfairness_seconds": (
        "By how much a part came too early or too late, on average, against the fair schedule.",
        ("schedule",),
    ),
    "contested_moments": (
        "Moments of the window at which the order of organizations decided what started.",
        ("schedule",),
    ),
    "out_of_turn_moments": (
        "Those of them at which something started that Ref would not have started then.",
        ("schedule",),
    ),
    "organization_alone_gain_ratio": (
        "Fraction by which its utility would rise alone; negative: it gains by the consortium.",
        ("organization",),
    ),
    "drift_reference_info": (
        "What counts as fair: ref, or rand where there are too many organizations for it.",
        ("reference",),
    ),
    "drift_window_seconds": ("Length of the last window that was replayed.", ()),
    "drift_duration_seconds": ("How long the last replay took.", ()),
    # of the last estimate that succeeded
    "estimate_timestamp_seconds": (
        "Time of the last estimate of contributions, by the cluster's clock.",
        (),
    ),
    "estimate_duration_seconds": ("How long the last estimate took.", ()),
    "estimate_coalitions": ("How many coalitions were valued for the last estimate.", ()),
    "estimate_error_part_seconds": (
        "Standard error of its estimated contribution; 0 if all coalitions were valued.",
        ("organization",),
    ),
    # of the last forecasts that succeeded
    "forecast_timestamp_seconds": (
        "Time of the last forecasts of starts, by the cluster's clock.",
        (),
    ),
    "forecast_duration_seconds": ("How long the last forecasts took.", ()),
    "organization_expected_wait_seconds": (
        "Wait that a job of one processor and a minute would have, submitted at that time.",
        ("organization",),
    ),
    "forecast_coverage_ratio": (
        "Share of the last month's intervals in which the jobs started, by how long ahead.",
        ("lead",),
    ),
    "forecast_error_seconds": (
        "Median absolute error of the last month's medians, by how long ahead.",
        ("lead",),
    ),
}
"""Metric without prefix -> its help text and its labels but for cluster."""

Found = Mapping[str, Iterable[tuple[tuple[str, ...], float | Fraction]]]
"""Metric without prefix -> values of its labels but for cluster, and what it is there."""


def of_changes(changes: Sequence[Change]) -> Found:
    """Returns what changed lately, if anything did; the oldest change comes first."""
    if not changes:
        return {}
    return {
        "change_timestamp_seconds": [
            ((change.kind, change.what[:LONGEST_CHANGE]), change.at)
            for change in changes[-MOST_CHANGES:]
        ]
    }


def of_drift(
    rows: Sequence[DriftRow], turns: Mapping[str, tuple[int, int]], seconds: float
) -> Found:
    """Returns what a replay found.

    Args:
        rows: of all organizations and schedules.
        turns: schedule -> contested moments, and those of them that were out of turn.
        seconds: that it took.
    """
    return {
        "organization_drift_seconds": drifts_of(rows).items(),
        "unfairness_seconds": [((name,), sum_) for name, sum_ in unfairness_of(rows).items()],
        "contested_moments": [((name,), contested) for name, (contested, _) in turns.items()],
        "out_of_turn_moments": [((name,), out) for name, (_, out) in turns.items()],
        "organization_alone_gain_ratio": [
            ((name,), gain) for name, gain in alone_gains_of(rows).items()
        ],
        "drift_reference_info": [((rows[0].reference,), 1)],
        "drift_window_seconds": [((), rows[0].t - rows[0].begin)],
        "drift_duration_seconds": [((), seconds)],
    }


def of_estimate(rows: Sequence[EstimateRow], seconds: float) -> Found:
    """Returns how exact an estimate is, how old, and what it cost."""
    return {
        "estimate_timestamp_seconds": [((), rows[0].t)],
        "estimate_duration_seconds": [((), seconds)],
        "estimate_coalitions": [((), rows[0].coalitions)],
        "estimate_error_part_seconds": [((row.organization,), row.error) for row in rows],
    }


def of_forecasts(
    t: int, seconds: float, waits: Mapping[str, int], scores: Sequence[ForecastScore]
) -> Found:
    """Returns how old forecasts are, what they cost and say, and how good those before were."""
    return {
        "forecast_timestamp_seconds": [((), t)],
        "forecast_duration_seconds": [((), seconds)],
        "organization_expected_wait_seconds": [((name,), wait) for name, wait in waits.items()],
        "forecast_coverage_ratio": [((score.lead,), score.coverage) for score in scores],
        "forecast_error_seconds": [((score.lead,), score.error) for score in scores],
    }


def of_cycle(last: CycleReport) -> Found:
    """Returns what a cycle found."""
    plan, ranked = last.plan, last.ranked
    rows = {row.organization: _values_of(row) for row in ranked.standings}
    found: Found = {
        "ledger_lag_seconds": [((), last.accounted.lag_seconds)],
        "postponed_writes": [((), plan.postponed)],
        "pause_seconds": [((), 0 if plan.pause is None else max(last.t - plan.pause.since, 0))],
        "jobs_put_first": [((), plan.first.jobs)],
        "jobs_of_unknown_accounts": [((), last.jobs.of_unknown_accounts)],
        "ranking_rule_info": [((ranked.rule,), 1)],
        "foreign_priorities": [
            (("accounts",), len(plan.foreign.targets)),
            (("jobs",), len(plan.foreign.jobs)),
            *(((kind,), len(plan.foreign.by_hand.get(kind, ()))) for kind in get_args(Kind)),
        ],
        "organization_oldest_pending_seconds": [
            ((one.organization, one.partition), last.t - one.since)
            for one in last.jobs.pending_jobs
        ],
        "completed_parts": [((), parts) for parts in {row.all_parts for row in ranked.standings}],
        "user_work_after_end_processor_seconds": [
            ((one.organization, one.user), one.processor_seconds) for one in last.users_after_end
        ],
        **{
            f"organization_{name}": [((who,), values[name]) for who, values in rows.items()]
            for name in BY_ORGANIZATION
        },
    }
    return {**found, **_of_unions(ranked.standings), **_of_pool(last)}


def _of_unions(standings: Sequence[StandingRow]) -> Found:
    """Returns who stands in which union; none where all stand alone."""
    members = Counted(row.head for row in standings)
    found = [((row.organization, row.head), 1) for row in standings if members[row.head] > 1]
    return {"organization_union_info": found} if found else {}


def _of_pool(report: CycleReport) -> Found:
    """Returns metrics of the other clusters in the pool; none for a cluster in no pool."""
    members = [part for part in report.ranked.pool if part.state is not PartState.LEFT]
    if not members:
        return {}
    return {
        "pool_age_seconds": [
            ((part.cluster,), report.t - part.t) for part in members if part.t is not None
        ],
        "pool_stale": [((part.cluster,), part.state is not PartState.CURRENT) for part in members],
    }


def _values_of(row: StandingRow) -> dict[str, float | Fraction]:
    """Returns metric of `BY_ORGANIZATION` -> its value."""
    return {
        "contribution_part_seconds": row.contribution,
        "utility_part_seconds": row.utility,
        "balance_per_part_seconds": row.balance_per_part or 0,
        "score": row.score,
        "priority_points": row.priority,
        "pending_jobs": row.pending,
        "running_jobs": row.running,
        "owned_processors": row.processors,
    }
