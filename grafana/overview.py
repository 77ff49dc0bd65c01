"""The dashboard of the whole consortium."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from grafana import panels
from grafana.dashboard import (
    ALL,
    BY_ORGANIZATION,
    RECORDED,
    SCHEDULES,
    SIGN,
    SOME,
    TO_DETAIL,
    dashboard,
    each,
    share_of,
)
from grafana.panels import Query

GAINS = f"{BY_ORGANIZATION}alone_gain_ratio{{{ALL}}}"

SHARES = {
    "share of the processors": Query(share_of("owned_processors")),
    "share of the contributions (φ)": Query(share_of("contribution_part_seconds")),
    "share of the work got (ψ)": Query(share_of("utility_part_seconds")),
}


def overview() -> Dashboard:
    """Who is owed, who owes, and how far from fair it all is."""
    return dashboard(
        "overview",
        "shapleyprio: overview",
        "Who is owed, who owes, how far from fair it is, and who uses more than it brings.",
        several=True,
        rows={
            "Now": [
                panels.number(
                    "Unfairness",
                    "By how many seconds, on average, a part of work came too early or too late in "
                    "the last replayed window, against the fair schedule Ref.",
                    panels.SECONDS,
                    panels.DELAY,
                    Query(f"shapleyprio_unfairness_seconds{{{ALL},{RECORDED}}}"),
                ),
                panels.number(
                    "Organizations worse off than alone",
                    "How many would have got more from their own processors alone than they got in "
                    "the consortium, in the last replayed window.",
                    panels.COUNT,
                    panels.NONE_IS_GOOD,
                    Query(f"count({GAINS} > 0) or 0 * count({GAINS})"),
                ),
                panels.number(
                    "Waiting jobs",
                    "Jobs of all organizations that wait, as the last cycle found them.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(f"sum({BY_ORGANIZATION}pending_jobs{{{ALL}}})"),
                ),
                panels.number(
                    "Running jobs",
                    "Jobs of all organizations that run, as the last cycle found them.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(f"sum({BY_ORGANIZATION}running_jobs{{{ALL}}})"),
                ),
                panels.number(
                    "Processors",
                    "What all organizations bring together, in the configured weight.",
                    panels.COUNT,
                    panels.NEUTRAL,
                    Query(f"sum({BY_ORGANIZATION}owned_processors{{{ALL}}})"),
                ),
                panels.number(
                    "Cycles that failed",
                    "In the time range shown. While cycles fail nothing is written, and the "
                    "organizations' figures are absent.",
                    panels.COUNT,
                    panels.NONE_IS_GOOD,
                    Query(
                        f'sum(increase(shapleyprio_cycles_total{{{ALL},outcome!~"ok|dry_run"}}'
                        "[$__range]))"
                    ),
                ),
            ],
            "Who is owed, who owes": [
                panels.bars(
                    "Balance",
                    "Contribution φ minus utility ψ: what it is worth to the others, less what its "
                    "jobs got anywhere. Above zero it is owed, below zero it owes; the highest is "
                    "served first. Under directcontr φ counts what its processors did for all "
                    "jobs, under shapley it is an estimate of the Shapley value.",
                    panels.PART_SECONDS,
                    panels.OWED,
                    Query(f"sort_desc({each('balance_part_seconds')})", "{{organization}}"),
                ).data_links([TO_DETAIL]),
                panels.graph(
                    "Balance over time",
                    "Contribution φ minus utility ψ. The zero line is where nobody owes anybody.",
                    panels.PART_SECONDS,
                    panels.OWED,
                    Query(each("balance_part_seconds"), "{{organization}}"),
                ).data_links([TO_DETAIL]),
            ],
            "How far from fair": [
                panels.bars(
                    "Drift in the last window",
                    f"(ψ − ψ of Ref) / everybody's parts of work, in the last replay. {SIGN}",
                    panels.SECONDS,
                    panels.DRIFT,
                    Query(
                        f"sort_desc({each('drift_seconds', f'{SOME},{RECORDED}')})",
                        "{{organization}}",
                    ),
                ).data_links([TO_DETAIL]),
                panels.graph(
                    "Drift over time",
                    f"(ψ − ψ of Ref) / parts of everybody's work; each point is one replay. {SIGN}",
                    panels.SECONDS,
                    panels.DRIFT,
                    Query(each("drift_seconds", f"{SOME},{RECORDED}"), "{{organization}}"),
                ).data_links([TO_DETAIL]),
                panels.graph(
                    "Unfairness of what happened, and of what could have",
                    "Sum over the organizations of |drift|: seconds by which a part of work came "
                    f"too early or too late on average. {SCHEDULES}",
                    panels.SECONDS,
                    panels.DELAY,
                    Query(f"shapleyprio_unfairness_seconds{{{ALL}}}", "{{schedule}}"),
                ),
                panels.bars(
                    "What each would gain by leaving",
                    "How much more of its own processors' time, weighted like ψ, it would have "
                    "had alone in the last replayed window. Negative: it gains by the consortium.",
                    panels.SHARE,
                    panels.ALONE,
                    Query(f"sort_desc({each('alone_gain_ratio')})", "{{organization}}"),
                ).data_links([TO_DETAIL]),
            ],
            "Nodes against use": [
                panels.grouped_bars(
                    "Share of nodes against use",
                    "What each brings, what it contributed, and what its jobs got, each as "
                    "part of the sum over all organizations.",
                    panels.SHARE,
                    SHARES,
                ),
                panels.rows(
                    "Organizations",
                    "Everything the last cycle found. Points are what the waiting jobs get in "
                    "Slurm: the more, the sooner.",
                    {
                        "owns": (SHARES["share of the processors"], panels.SHARE),
                        "got": (SHARES["share of the work got (ψ)"], panels.SHARE),
                        "balance": (Query(each("balance_part_seconds")), panels.PART_SECONDS),
                        "score": (Query(each("score")), panels.COUNT),
                        "points": (Query(each("priority_points")), panels.COUNT),
                        "waiting": (Query(each("pending_jobs")), panels.COUNT),
                        "running": (Query(each("running_jobs")), panels.COUNT),
                    },
                    width=12,
                ),
            ],
        },
    )
