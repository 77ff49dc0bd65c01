"""The dashboard of the daemon."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.models.common import BigValueTextMode

from grafana import panels
from grafana.dashboard import ALL, dashboard
from grafana.panels import Query


def health() -> Dashboard:
    """Whether the daemon does what it should."""
    cycles = f"shapleyprio_cycles_total{{{ALL}}}"
    runs = f"shapleyprio_drift_runs_total{{{ALL}}}"
    return dashboard(
        "health",
        "shapleyprio: daemon health",
        "Whether the daemon sees Slurm, keeps its ledger and gets its priorities through.",
        several=None,
        rows={
            "Now": [
                panels.number(
                    "Version",
                    "The release that runs; several if daemons of several clusters differ.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query("count by (version) (shapleyprio_build_info)", "{{version}}"),
                    text=BigValueTextMode.NAME,
                ),
                panels.number(
                    "Rule",
                    "What ranked the organizations in the last cycle; directcontr also while "
                    "shapley has no estimate to rely on.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_ranking_rule_info{{{ALL}}}", "{{rule}}"),
                    text=BigValueTextMode.NAME,
                ),
                panels.number(
                    "Daemons that steer",
                    "Exactly one: with a standby, a second daemon answers but does not steer.",
                    panels.COUNT,
                    panels.ONE_IS_GOOD,
                    Query(f"sum(shapleyprio_leader and on (job, instance) {cycles})"),
                ),
                panels.number(
                    "Last good cycle",
                    "By the cluster's clock.",
                    panels.MOMENT,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_last_success_timestamp_seconds{{{ALL}}} * 1000"),
                ),
                panels.number(
                    "Ledger lag",
                    "Age of the last second up to which accounting is known to be complete.",
                    panels.SECONDS,
                    panels.DELAY,
                    Query(f"shapleyprio_ledger_lag_seconds{{{ALL}}}"),
                ),
                panels.number(
                    "Writes that failed",
                    "Priorities that Slurm refused, or showed no sign of, in the time range shown.",
                    panels.COUNT,
                    panels.NONE_IS_GOOD,
                    Query(
                        "sum(increase(shapleyprio_pushes_total"
                        f'{{{ALL},state=~"refused|unconfirmed"}}[$__range]))'
                    ),
                ),
                panels.number(
                    "Drift replayed up to",
                    "End of the last replayed window, by the cluster's clock.",
                    panels.MOMENT,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_drift_timestamp_seconds{{{ALL}}} * 1000"),
                ),
                panels.number(
                    "Replayed window",
                    "Length of the last replayed window.",
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_drift_window_seconds{{{ALL}}}"),
                ),
            ],
            "Cycles": [
                panels.graph(
                    "Cycles by outcome",
                    "Everything but ok (and dry_run) is a failure; the daemon's log says which.",
                    panels.PER_SECOND,
                    panels.NEUTRAL,
                    Query(f"sum by (outcome) (rate({cycles}[$__rate_interval]))", "{{outcome}}"),
                ),
                panels.graph(
                    "Phases of a cycle, mean duration",
                    "observe and push wait for Slurm, account and rank for the store and for us.",
                    panels.SECONDS,
                    panels.CYCLE_DURATION,
                    Query(f"{_rate('sum')} / {_rate('count')}", "{{phase}}"),
                ),
                panels.graph(
                    "Phases of a cycle, 95th percentile",
                    "One cycle in twenty took longer.",
                    panels.SECONDS,
                    panels.CYCLE_DURATION,
                    Query(
                        "histogram_quantile(0.95, sum by (phase, le) (rate("
                        f"shapleyprio_cycle_phase_duration_seconds_bucket{{{ALL}}}"
                        "[$__rate_interval])))",
                        "{{phase}}",
                    ),
                ),
                panels.graph(
                    "Retried transactions",
                    "The database rolled them back because of others, and the daemon retried them.",
                    panels.PER_SECOND,
                    panels.NEUTRAL,
                    Query(
                        "sum by (cluster)"
                        f" (rate(shapleyprio_store_conflicts_total{{{ALL}}}[$__rate_interval]))",
                        "retried",
                    ),
                ),
                panels.graph(
                    "Ledger lag",
                    "Age of the last second up to which accounting is known to be complete. It "
                    "grows while slurmctld holds records back from slurmdbd; while slurmdbd is "
                    "away every cycle fails, and it is absent.",
                    panels.SECONDS,
                    panels.DELAY,
                    Query(f"shapleyprio_ledger_lag_seconds{{{ALL}}}", "lag"),
                ),
            ],
            "Slurm": [
                panels.graph(
                    "Accounting records",
                    "seen are read, kept new or changed; quarantined and late ones do not count.",
                    panels.PER_SECOND,
                    panels.NEUTRAL,
                    Query(
                        "sum by (result)"
                        f" (rate(shapleyprio_records_total{{{ALL}}}[$__rate_interval]))",
                        "{{result}}",
                    ),
                ),
                panels.graph(
                    "Writes into Slurm",
                    "applied were found when read back, refused were not taken, unconfirmed have "
                    "not been seen yet, without_store were made while the store was away.",
                    panels.PER_SECOND,
                    panels.NEUTRAL,
                    Query(
                        "sum by (state)"
                        f" (rate(shapleyprio_pushes_total{{{ALL}}}[$__rate_interval]))",
                        "{{state}}",
                    ),
                ),
                panels.graph(
                    "Postponed writes",
                    "Left to the next cycle, because of push.most_writes or "
                    "push.most_raises_of_user. Jobs that start next are written first.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_postponed_writes{{{ALL}}}", "postponed"),
                ),
                panels.graph(
                    "Pause",
                    "How long an admin has paused steering.",
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_pause_seconds{{{ALL}}}", "paused"),
                ),
                panels.graph(
                    "Exceptions and priorities of others",
                    "Jobs that go first because an admin ordered it. With the channel association: "
                    "accounts that somebody else has set, and pending jobs without the points of "
                    "their account.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_jobs_put_first{{{ALL}}}", "jobs put first"),
                    Query(f"shapleyprio_foreign_priorities{{{ALL}}}", "{{of}}"),
                ),
                panels.graph(
                    "Jobs of unknown accounts",
                    "Waiting under accounts that Slurm's accounting does not know; they are "
                    "nobody's and get no points.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_jobs_of_unknown_accounts{{{ALL}}}", "unknown"),
                ),
                panels.graph(
                    "Pool",
                    "Age of what the other clusters of the pool have found last. What is older "
                    "than consortium.stale_after counts as it stood.",
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_pool_age_seconds{{{ALL}}}", "{{other}}"),
                ),
                panels.graph(
                    "Stale in the pool",
                    "Other clusters whose balances count as they stood (1), since they are older "
                    "than that, or are missing or in another weight.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_pool_stale{{{ALL}}}", "{{other}}"),
                ),
                panels.graph(
                    "Work after its end",
                    "Processors that jobs kept busy after their ends, until KillWait was over; "
                    "nobody pays for that. `shapleyprio history --after-end` says whose jobs.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(
                        "sum by (organization) (rate("
                        f"shapleyprio_work_after_end_processor_seconds_total{{{ALL}}}"
                        "[$__rate_interval]))",
                        "{{organization}}",
                    ),
                ),
                panels.graph(
                    "Who has work after its end",
                    "The users who have most of it, in processor-seconds of the last 24 hours.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(
                        f"shapleyprio_user_work_after_end_processor_seconds{{{ALL}}}",
                        "{{user}} ({{organization}})",
                    ),
                ),
                panels.graph(
                    "Points at submission",
                    "New jobs that have their points from push.table, and those that missed them.",
                    panels.PER_SECOND,
                    panels.NEUTRAL,
                    Query(
                        "sum by (result)"
                        f" (rate(shapleyprio_submissions_total{{{ALL}}}[$__rate_interval]))",
                        "{{result}}",
                    ),
                ),
                panels.graph(
                    "Age of the table of points",
                    "How far the last good cycle is ahead of the last write of push.table, by the "
                    "cluster's clock. Jobs get no points from a table that is too old.",
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(
                        f"shapleyprio_last_success_timestamp_seconds{{{ALL}}}"
                        f" - shapleyprio_table_timestamp_seconds{{{ALL}}}",
                        "age",
                    ),
                ),
            ],
            "Estimated contributions": [
                panels.graph(
                    "Standard error of contributions",
                    "By how much the estimated contribution φ̂ of an organization may be off, "
                    "averaged over all work done. Two with nearly the same balance "
                    "can be in the wrong order. 0: all coalitions were valued. Only the rule "
                    "shapley estimates.",
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(
                        f"sum by (organization) (shapleyprio_estimate_error_part_seconds{{{ALL}}})"
                        f" / scalar(shapleyprio_completed_parts{{{ALL}}})",
                        "{{organization}}",
                    ),
                ),
                panels.graph(
                    "Age of the estimate",
                    "How far the last good cycle is ahead of the last good estimate, by the "
                    "cluster's clock. Above estimation.longest_age directcontr ranks.",
                    panels.SECONDS,
                    panels.ESTIMATE_AGE,
                    Query(
                        f"shapleyprio_last_success_timestamp_seconds{{{ALL}}}"
                        f" - shapleyprio_estimate_timestamp_seconds{{{ALL}}}",
                        "age",
                    ),
                ),
                panels.graph(
                    "Estimates by result",
                    "Since the daemon started. Only ok is as it should be; the daemon's log says "
                    "what came of the others.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(f"sum by (result) (shapleyprio_estimates_total{{{ALL}}})", "{{result}}"),
                    width=10,
                ),
                panels.graph(
                    "Duration of an estimate",
                    "In a process of its own; a cycle waits a second for it at most.",
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_estimate_duration_seconds{{{ALL}}}", "duration"),
                    width=10,
                ),
                panels.number(
                    "Coalitions valued",
                    "For the last estimate: all of them with up to 10 organizations, else about "
                    "estimation.coalitions.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_estimate_coalitions{{{ALL}}}"),
                ),
            ],
            "Forecasts of starts": [
                panels.graph(
                    "Intervals that held",
                    "Share of the last month's intervals in which the jobs started, by how long "
                    "ahead the start was forecast. 80 % should hold.",
                    panels.SHARE,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_forecast_coverage_ratio{{{ALL}}}", "{{lead}}"),
                ),
                panels.graph(
                    "Error of the median",
                    "By how much the median was off for half of the last month's forecasts.",
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_forecast_error_seconds{{{ALL}}}", "{{lead}}"),
                ),
                panels.graph(
                    "Wait of a small job",
                    "Expected for a job of one processor and one minute, submitted now.",
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(
                        f"shapleyprio_organization_expected_wait_seconds{{{ALL}}}",
                        "{{organization}}",
                    ),
                ),
                panels.graph(
                    "Age of the forecasts",
                    "How far the last good cycle is ahead of the last forecasts, by the cluster's "
                    "clock.",
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(
                        f"shapleyprio_last_success_timestamp_seconds{{{ALL}}}"
                        f" - shapleyprio_forecast_timestamp_seconds{{{ALL}}}",
                        "age",
                    ),
                ),
                panels.graph(
                    "Forecasts by result",
                    "Since the daemon started. Only ok is as it should be; the daemon's log says "
                    "what came of the others.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(f"sum by (result) (shapleyprio_forecasts_total{{{ALL}}})", "{{result}}"),
                ),
                panels.graph(
                    "Duration of forecasts",
                    "In a process of its own; cycles do not wait for it.",
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_forecast_duration_seconds{{{ALL}}}", "duration"),
                ),
            ],
            "Live drift": [
                panels.graph(
                    "Replays by result",
                    "Since the daemon started. ok and no_jobs are as they should be; the "
                    "daemon's log says what came of the others.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(f"sum by (result) ({runs})", "{{result}}"),
                    width=10,
                ),
                panels.graph(
                    "Duration of a replay",
                    "In a process of its own; cycles do not wait for it.",
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_drift_duration_seconds{{{ALL}}}", "duration"),
                    width=10,
                ),
                panels.number(
                    "Fair is",
                    "What the last replay was held against: ref, or rand (which samples) where "
                    "there are more organizations than drift.most_organizations.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(f"shapleyprio_drift_reference_info{{{ALL}}}", "{{reference}}"),
                    text=BigValueTextMode.NAME,
                ),
            ],
        },
    )


def _rate(kind: str) -> str:
    name = f"shapleyprio_cycle_phase_duration_seconds_{kind}"
    return f"sum by (phase) (rate({name}{{{ALL}}}[$__rate_interval]))"
