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
    WAITED,
    dashboard,
    each,
    late,
    of_unions,
    oldest,
    share_of,
    waited,
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
                    "By how much a part of work came too early or too late, on average, in the "
                    "last replayed window, against the fair schedule Ref.",
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
                    "What it earned minus what it got, spread over everybody's work. Above zero it "
                    "is owed, below zero it owes; the highest is served first. Under directcontr "
                    "it earns by what its processors did for all jobs, under shapley by an "
                    "estimate of its Shapley value.",
                    panels.SECONDS,
                    panels.OWED,
                    Query(f"sort_desc({each('balance_per_part_seconds')})", "{{organization}}"),
                ).data_links([TO_DETAIL]),
                panels.graph(
                    "Balance over time",
                    "The same over time. At the zero line nobody owes anybody.",
                    panels.SECONDS,
                    panels.OWED,
                    Query(each("balance_per_part_seconds"), "{{organization}}"),
                ).data_links([TO_DETAIL]),
            ],
            "Unions: faculties with their departments": [
                panels.bars(
                    "Balance of unions",
                    "Of each faculty, what it and its departments earned together minus what they "
                    "got, spread over everybody's work. Above zero it is owed; the highest is "
                    "served first.",
                    panels.SECONDS,
                    panels.OWED,
                    Query(
                        f"sort_desc({of_unions(each('balance_per_part_seconds', ALL))})",
                        "{{parent}}",
                    ),
                ),
                panels.bars(
                    "Unions late or ahead, last window",
                    f"In the last replayed window, spread over everybody's work. {SIGN}",
                    panels.SECONDS,
                    panels.DRIFT,
                    Query(
                        f"sort_desc({of_unions(late(f'{ALL},{RECORDED}'))})",
                        "{{parent}}",
                    ),
                ),
            ],
            "Waits": [
                panels.graph(
                    "Median wait",
                    f"Within what time half of the jobs started. {WAITED}",
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(waited("0.5", "organization"), "{{organization}}"),
                    width=8,
                ).data_links([TO_DETAIL]),
                panels.graph(
                    "Nine in ten started within",
                    WAITED,
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(waited("0.9", "organization"), "{{organization}}"),
                    width=8,
                ).data_links([TO_DETAIL]),
                panels.graph(
                    "Oldest pending job",
                    "Wait so far of the eligible job that has waited longest.",
                    panels.SECONDS,
                    panels.NEUTRAL,
                    Query(oldest("organization"), "{{organization}}"),
                    width=8,
                ).data_links([TO_DETAIL]),
            ],
            "How far from fair": [
                panels.bars(
                    "Late or ahead, last window",
                    f"In the last replayed window, spread over everybody's work. {SIGN}",
                    panels.SECONDS,
                    panels.DRIFT,
                    Query(
                        f"sort_desc({late(f'{SOME},{RECORDED}')})",
                        "{{organization}}",
                    ),
                ).data_links([TO_DETAIL]),
                panels.graph(
                    "Late or ahead over time",
                    f"Spread over everybody's work; each point is one window. {SIGN}",
                    panels.SECONDS,
                    panels.DRIFT,
                    Query(late(f"{SOME},{RECORDED}"), "{{organization}}"),
                ).data_links([TO_DETAIL]),
                panels.graph(
                    "Unfairness of what happened, and of what could have",
                    "Sum over the organizations of |drift|: time by which a part of work came "
                    f"too early or too late on average. {SCHEDULES}",
                    panels.SECONDS,
                    panels.DELAY,
                    Query(f"shapleyprio_unfairness_seconds{{{ALL}}}", "{{schedule}}"),
                ),
                panels.graph(
                    "Out of turn",
                    "Of the moments at which the order of the organizations decided what started, "
                    "those at which something started that the fair rule would not have started "
                    f"then. {SCHEDULES}",
                    panels.SHARE,
                    panels.NEUTRAL,
                    Query(
                        f"shapleyprio_out_of_turn_moments{{{ALL}}}"
                        f" / clamp_min(shapleyprio_contested_moments{{{ALL}}}, 1)",
                        "{{schedule}}",
                    ),
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
                        "balance": (
                            Query(each("balance_per_part_seconds")),
                            panels.SECONDS,
                        ),
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
