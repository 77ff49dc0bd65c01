"""When jobs will start, in plain words."""

from __future__ import annotations

from shapleyprio.common.wording import clock_minute, count, duration
from shapleyprio.daemon.answering.explain_facts import Prospect
from shapleyprio.daemon.answering.what_if import WhatIf
from shapleyprio.daemon.forecasting.messages import LimitCost
from shapleyprio.slurm.reasons import lack_of
from shapleyprio.store import LATER, ForecastRow

WAITS = {
    "turn": "it waits for its turn",
    "processors": "it waits for processors",
    "reservation": "by its time limit it may run into a reservation of all nodes",
    "limit": "jobs like it that are ahead of it have met a limit",
}
"""What a job waits for that lacks nothing else, in words."""


def sentences_on_start(prospect: Prospect | None) -> list[str]:
    """Says when a job probably starts; nothing without a forecast or a reason why there is none."""
    if prospect is None:
        return []
    lacks = None if prospect.reason is None else lack_of(prospect.reason).in_words
    if prospect.forecast is None:
        if lacks is None:
            return []
        return [f"Its start is not forecast: {lacks} ({prospect.reason})."]
    waits = lacks or WAITS[prospect.waits_for]
    sentences = [_on_interval(prospect.forecast), _on_hour(prospect.forecast, waits)]
    return sentences if prospect.cost is None else [*sentences, _on_limit(prospect.cost)]


def _on_limit(cost: LimitCost) -> str:
    return (
        f"Nine in ten of its user's last {cost.jobs} similar jobs ran for at most "
        f"{duration(cost.limit)}: with that time limit it would start about "
        f"{duration(cost.sooner)} sooner."
    )


def sentences_on_what_if(found: WhatIf) -> list[str]:
    """Says when a job would start that is submitted now."""
    job = found.job
    sentences = [
        f"Suppose that a job of account {found.account} is submitted now, for at most "
        f"{duration(job.limit)} on {count(job.processors, 'processor')} of partition "
        f"{job.partition}."
    ]
    if found.organization is None:
        sentences.append("It counts for no organization, so the jobs of all others go first.")
    waits, age = WAITS[found.forecast.waits_for], f", {duration(found.age)} ago"
    return [*sentences, _on_interval(found.forecast), _on_hour(found.forecast, waits, age)]


def _on_interval(found: ForecastRow) -> str:
    def moment(second: int) -> str:
        return clock_minute(second, found.t)

    if found.early == LATER or found.median == LATER:
        return "It probably does not start in the next four weeks."
    half = f"in half of all cases by {moment(found.median)}"
    if found.late == LATER:
        return f"It probably starts after {moment(found.early)}, {half}."
    early, late = moment(found.early), moment(found.late)
    if early == late:
        return f"It probably starts at {early}."
    return f"It probably starts between {early} and {late}, {half}."


def _on_hour(found: ForecastRow, waits: str, age: str = "") -> str:
    return (
        f"The chance that it does within an hour is {found.within_hour}%, as of "
        f"{clock_minute(found.t, found.t)}{age}; {waits}."
    )
