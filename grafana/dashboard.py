"""What all dashboards share: their variables, and how organizations are queried."""

from __future__ import annotations

from itertools import count

from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    Row,
)
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import (
    AnnotationQuery,
    DashboardCursorSync,
    DashboardLinkType,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from grafana import panels
from grafana.panels import Panel

TAG = "shapleyprio"
BY_ORGANIZATION = "shapleyprio_organization_"

ALL = 'cluster="$cluster"'
SOME = 'cluster="$cluster",organization=~"$organization"'
"""The organizations that are chosen, all of them to begin with."""

RECORDED = 'schedule="recorded"'
SCHEDULES = (
    "recorded is what happened, directcontr and fairshare what that rule and Slurm's fair "
    "share would have made of the same jobs."
)
WAITED = (
    "Of the jobs that started in the day before, from eligible to start; estimated from how many "
    "waited up to 10 s, 1 min, 5 min and so on."
)
SIGN = "Above zero: its jobs came later than in the fair schedule Ref; below: sooner."
TO_DETAIL = DashboardLink("Show ${__field.labels.organization} in detail").url(
    "/d/shapleyprio-organization?${datasource:queryparam}&${cluster:queryparam}"
    "&var-organization=${__field.labels.organization}"
)


def share_of(metric: str, wanted: str = SOME) -> str:
    """Each organization's part of the sum over all organizations."""
    name = BY_ORGANIZATION + metric
    return f"sum by (organization) ({name}{{{wanted}}}) / scalar(sum({name}{{{ALL}}}))"


def per_part(metric: str, wanted: str = SOME) -> str:
    """Each organization's worth by the completed parts of all: seconds on average."""
    return f"{each(metric, wanted)} / scalar(shapleyprio_completed_parts{{{ALL}}})"


def late(wanted: str = SOME) -> str:
    """By how much later than in the fair schedule; a drift has the other sign."""
    return f"-{each('drift_seconds', wanted)}"


def each(metric: str, wanted: str = SOME) -> str:
    """One series for each organization, with no label besides."""
    return f"sum by (organization) ({BY_ORGANIZATION}{metric}{{{wanted}}})"


def of_unions(series: str) -> str:
    """The sum over each union's members of a series by organization; none for who stands alone."""
    of = f"on (organization) group_left (parent) {BY_ORGANIZATION}union_info{{{ALL}}}"
    return f"sum by (parent) ({series} * {of})"


def waited(part: str, by: str, wanted: str = SOME) -> str:
    """Within what time that part of the jobs started that did so in a day."""
    buckets = f"rate({BY_ORGANIZATION}wait_seconds_bucket{{{wanted}}}[1d])"
    return f"histogram_quantile({part}, sum by ({by}, le) ({buckets}))"


def oldest(by: str, wanted: str = SOME) -> str:
    """For how long the oldest pending job has waited that could start."""
    return f"max by ({by}) ({BY_ORGANIZATION}oldest_pending_seconds{{{wanted}}})"


def dashboard(
    uid: str, title: str, description: str, *, several: bool | None, rows: dict[str, list[Panel]]
) -> Dashboard:
    """A dashboard with the variables that all have.

    Args:
        uid: after "shapleyprio-"; also the file's name.
        title: in Grafana's lists.
        description: what it answers.
        several: whether several organizations can be chosen; None without that variable.
        rows: heading -> panels from left to right.
    """
    made = (
        Dashboard(title)
        .uid(f"{TAG}-{uid}")
        .description(description)
        .tags([TAG])
        .time("now-24h", "now")
        .refresh("1m")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(
            DashboardLink("shapleyprio")
            .type(DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .include_vars(True)
            .keep_time(True)
        )
        .with_variable(DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_names("cluster", "Cluster", "shapleyprio_cycles_total"))
    )
    if several is not None:
        metric = f'{BY_ORGANIZATION}owned_processors{{cluster="$cluster"}}'
        chosen = _names("organization", "Organization", metric)
        if several:
            everything = VariableOption(selected=True, text=["All"], value=["$__all"])
            chosen.multi(True).include_all(True).current(everything)
        made.with_variable(chosen)
    made.annotation(_Made(Changes()))
    numbers = count(1)
    for heading, row in rows.items():
        made.with_row(Row(heading).id(next(numbers)))
        for panel in row:
            made.with_panel(panel.id(next(numbers)))
    return made


class Changes(AnnotationQuery):
    """Marks what changed, where the value of the metric says."""

    def __init__(self) -> None:
        super().__init__(
            name="Changes",
            datasource=panels.SOURCE,
            enable=True,
            icon_color="purple",
            expr=f"1000 * shapleyprio_change_timestamp_seconds{{{ALL}}}",
        )

    def to_json(self) -> dict[str, object]:
        """Adds what Grafana knows of queries to Prometheus alone."""
        own = {
            "useValueForTime": True,
            "textFormat": "{{what}}",
            "tagKeys": "kind",
            "titleFormat": "",
            "step": "60s",
        }
        return super().to_json() | own


class _Made(Builder[AnnotationQuery]):
    """Builds an annotation that is made already."""

    def __init__(self, annotation: AnnotationQuery) -> None:
        self._annotation = annotation

    def build(self) -> AnnotationQuery:
        """Returns it."""
        return self._annotation


def _names(label: str, title: str, metric: str) -> QueryVariable:
    query = {"query": f"label_values({metric}, {label})", "refId": label}
    return (
        QueryVariable(label)
        .label(title)
        .datasource(panels.SOURCE)
        .query(dict(query))
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
    )
