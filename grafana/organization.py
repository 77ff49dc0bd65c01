"""The dashboard of one organization."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from grafana import panels
from grafana.dashboard import (
    BY_ORGANIZATION,
    RECORDED,
    SCHEDULES,
    SIGN,
    WAITED,
    dashboard,
    each,
    late,
    oldest,
    per_part,
    share_of,
    waited,
)
from grafana.panels import Query

SHARES = {
    "owned_processors": "of the processors",
    "contribution_part_seconds": "of the contributions (φ)",
    "utility_part_seconds": "of the work got (ψ)",
}

ONE = 'cluster="$cluster",organization="$organization"'
"""Not as a regular expression: names of organizations may have any characters."""


def organization() -> Dashboard:
    """Everything about one organization."""
    return dashboard(
        "organization",
        "shapleyprio: organization",
        "What one organization brings, gets and is owed, and what it would have elsewhere.",
        several=False,
        rows={
            "$organization": [
                panels.number(
                    "Balance",
                    "What it earned minus what it got, spread over everybody's work; above zero it "
                    "is owed.",
                    panels.SECONDS,
                    panels.OWED,
                    Query(_its("balance_per_part_seconds")),
                ),
                panels.number(
                    "Late or ahead",
                    f"In the last replayed window, spread over everybody's work. {SIGN}",
                    panels.SECONDS,
                    panels.DRIFT,
                    Query(late(f"{ONE},{RECORDED}")),
                ),
                panels.number(
                    "Gain by leaving",
                    "How much more it would have had alone in the last replayed window. Negative: "
                    "it gains by the consortium.",
                    panels.SHARE,
                    panels.ALONE,
                    Query(_its("alone_gain_ratio")),
                ),
                panels.number(
                    "Priority",
                    "Points that its waiting jobs get in Slurm.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(_its("priority_points")),
                ),
                panels.number(
                    "Waiting and running jobs",
                    "As the last cycle found them.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(_its("pending_jobs"), "waiting"),
                    Query(_its("running_jobs"), "running"),
                ),
                panels.number(
                    "Processors",
                    "What it brings, in the configured weight.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(_its("owned_processors")),
                ),
            ],
            "Give and take": [
                panels.graph(
                    "Contribution and utility",
                    "What it is worth to the others (φ: under directcontr the worth of the work "
                    "done on its processors, under shapley an estimate of its Shapley value), and "
                    "worth of the work that its jobs got (ψ). A processor second counts its age, "
                    "up to the horizon; both are spread over all work. The gap is the balance.",
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(per_part("contribution_part_seconds", ONE), "contribution φ"),
                    Query(per_part("utility_part_seconds", ONE), "utility ψ"),
                ),
                panels.graph(
                    "Balance over time",
                    "Above the zero line it is owed, below it owes.",
                    panels.SECONDS,
                    panels.OWED,
                    Query(_its("balance_per_part_seconds"), "owed"),
                ),
                panels.graph(
                    "Share of nodes against use",
                    "What it brings, what it contributed and what its jobs got, each as part "
                    "of the sum over all organizations.",
                    panels.SHARE,
                    panels.NEUTRAL,
                    *(Query(share_of(metric, ONE), name) for metric, name in SHARES.items()),
                ),
                panels.graph(
                    "Jobs",
                    "How many of its jobs wait and run.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(_its("pending_jobs"), "waiting"),
                    Query(_its("running_jobs"), "running"),
                ),
            ],
            "Waits": [
                panels.graph(
                    "Waits by partition",
                    f"Within what time half of its jobs, and nine in ten, started. {WAITED}",
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(waited("0.5", "partition", ONE), "{{partition}}, half"),
                    Query(waited("0.9", "partition", ONE), "{{partition}}, 90 %"),
                ),
                panels.graph(
                    "Oldest pending job by partition",
                    "Wait so far of the eligible job that has waited longest.",
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(oldest("partition", ONE), "{{partition}}"),
                ),
                panels.graph(
                    "Guarantee",
                    "Jobs in an hour that went before all others by its guarantee, and those for "
                    "which it was kept or broken.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(
                        f"sum by (result) (increase(shapleyprio_guarantees_total{{{ONE}}}[1h]))",
                        "{{result}}",
                    ),
                ),
            ],
            "Against the fair schedule, and alone": [
                panels.graph(
                    "Late or ahead over time",
                    f"In each replayed window, spread over everybody's work. {SIGN} {SCHEDULES}",
                    panels.SECONDS,
                    panels.DRIFT,
                    Query(f"-{BY_ORGANIZATION}drift_seconds{{{ONE}}}", "{{schedule}}"),
                ),
                panels.graph(
                    "Gain by leaving",
                    "How much more it would have had alone. Below zero it gains by the consortium.",
                    panels.SHARE,
                    panels.ALONE,
                    Query(_its("alone_gain_ratio"), "gain"),
                ),
            ],
        },
    )


def _its(metric: str, wanted: str = ONE) -> str:
    return each(metric, wanted)
