"""The page about a rehearsal, for an admin and a board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shapleyprio.common.wording import HOUR, dates, duration, percent, whole
from shapleyprio.lab.rehearsal.answer import GROUPS, Answer, RehearsedRun
from shapleyprio.lab.rehearsal.arms import TODAY
from shapleyprio.lab.rehearsal.jobs import Days
from shapleyprio.replay.policies import RECORDED
from shapleyprio.replay.policies.titles import title_of
from shapleyprio.reports import replay_sections
from shapleyprio.reports.front import about, reading
from shapleyprio.reports.html.colors import colors_of
from shapleyprio.reports.html.comparisons import SPREAD, spread
from shapleyprio.reports.html.page import Cell, Front, Page, Section, Table, columns_of
from shapleyprio.reports.html.provenance import versions
from shapleyprio.reports.replay_page import choice_of
from shapleyprio.reports.replayed import Replayed


def rehearsal_page(answer: Answer, *, days: Days, speed: int, command: str) -> Page:
    """Makes the page.

    Args:
        answer: what came out.
        days: that were rehearsed.
        speed: cluster seconds per real second.
        command: that repeats it.
    """
    jobs = answer.jobs
    workload = replace(jobs.plan.workload, start=jobs.started)
    results = [run.result for run in answer.runs]
    fair = [] if answer.fair is None else [answer.fair]
    replayed = Replayed(jobs.log, workload, [*fair, *results])
    return Page(
        title="Your cluster's own jobs under other configurations",
        verdict=verdict(answer),
        sections=(
            waits(answer),
            groups(answer),
            replay_sections.comparison(replayed),
            replay_sections.waits(replayed),
            replay_sections.lending(replayed),
            replay_sections.utilization(replayed),
            clock(answer),
            left_out(answer),
        ),
        parameters={
            "log": jobs.log.source,
            "slurm.conf": str(jobs.plan.site.conf.file),
            "days": dates(days.since, days.until),
            "warm-up": duration(days.since - days.begin),
            "speed": whole(speed),
            "jobs left out": workload.left_out_in_words or "none",
            "versions": versions(),
        },
        organizations=replayed.colors,
        choice=choice_of(replayed),
        command=command,
        front=Front(
            about=about(jobs.log, workload),
            reading=reading("ref", replayed.policies),
            advice=(),
            caveats=caveats(answer),
        ),
    )


def verdict(answer: Answer) -> str:
    """Returns the outcome in one sentence."""
    means = [
        f"{duration(mean)} {'in' if run.name == RECORDED else 'under'} {title_of(run.name)}"
        for run, mean in zip(answer.runs, answer.all_jobs.means, strict=True)
    ]
    return f"Jobs waited {', '.join(means)} on average."


def caveats(answer: Answer) -> tuple[str, ...]:
    """Returns what the figures do not say."""
    trust = answer.trust
    known = (
        f"{title_of(TODAY).capitalize()} in the rehearsal, jobs waited {percent(trust, sign='+')} "
        "compared with what really happened: the rehearsal can be trusted to that extent."
        if trust is not None
        else "Nothing says how far the rehearsal can be trusted: today's configuration was not run."
    )
    doubts = [f"Doubtful: {fault}." for run in answer.runs for fault in run.faults]
    return (
        known,
        _chance(answer),
        "The fair schedule is a simulation, which knows of no partitions, limits or memory.",
        "What was not taken over of the configuration is listed at the end.",
        *doubts,
    )


def _chance(answer: Answer) -> str:
    """Returns how much is chance."""
    spreads = [
        f"{title_of(run.name)} {duration(min(each))} to {duration(max(each))}"
        for run, each in zip(answer.runs, answer.all_jobs.each, strict=True)
        if len(each) > 1
    ]
    if not spreads:
        return "One run of each arm: small groups of jobs differ from run to run."
    return f"Mean waits from run to run: {', '.join(spreads)}; small groups differ more."


def waits(answer: Answer) -> Section:
    """Shows how long jobs waited in each run."""
    titles = {run.name: title_of(run.name) for run in answer.runs}
    found: list[list[Cell]] = [
        [titles[run.name], float(run.waits.mean()), *_percentiles(run)] for run in answer.runs
    ]
    return Section(
        title="How long did jobs wait?",
        note="The mark is the median; half of the jobs are within the bar, nine in ten within the "
        "line. The axis is logarithmic beyond a minute.",
        chart=spread(
            "runs",
            columns_of(
                ("policy", *(f"p{percent}" for percent in SPREAD)),
                ((row[0], *row[2:]) for row in found),
            ),
            title="from release to start",
            colors=colors_of(list(titles.values())),
            choice=None,
            of="policy",
        ),
        table=Table(
            headings=(
                *("configuration", "mean, s"),
                *("median, s" if p == 50 else f"{p} %, s" for p in SPREAD),
            ),
            rows=found,
        ),
    )


def _percentiles(run: RehearsedRun) -> list[float]:
    found: list[float] = np.percentile(run.waits, SPREAD).tolist()
    return found


def groups(answer: Answer) -> Section:
    """Shows the mean waits of groups of jobs."""
    rows: list[list[Cell]] = [
        [group, row.name, row.jobs, *map(_hours, row.means, row.each)]
        for group in GROUPS
        for row in answer.rows(group)
    ]
    names = (f"{title_of(run.name)}, h" for run in answer.runs)
    return Section(
        title="Who waited how long?",
        note="Mean waits by organization, partition, size of the job and account; in brackets the "
        "least and the most of several runs.",
        chart=None,
        table=Table(headings=("by", "", "jobs", *names), rows=rows),
    )


def _hours(mean: float, each: Sequence[float]) -> Cell:
    """Returns hours, with the least and the most of several runs."""
    if len(each) == 1:
        return round(mean / HOUR, 3)
    return f"{mean / HOUR:.3f} [{min(each) / HOUR:.3f} to {max(each) / HOUR:.3f}]"


def clock(answer: Answer) -> Section:
    """Shows by how much the accelerated clock was too fast."""
    rows: list[list[Cell]] = [
        [title_of(run.name), d.submission, d.start, d.prompt, d.length]
        for run in answer.runs
        if (d := run.delays) is not None
    ]
    return Section(
        title="Was the clock slow enough?",
        note="Seconds of the cluster's clock by which jobs were submitted late, started late "
        "though enough processors were idle (the median, and of how many jobs), and lasted too "
        "long. Beyond 15 s a run is doubtful: lower --speed.",
        chart=None,
        table=Table(
            headings=("configuration", "submitted, s", "started, s", "of jobs", "too long, s"),
            rows=rows,
        ),
    )


def left_out(answer: Answer) -> Section:
    """Lists what was not taken over, and what the arms changed."""
    rows: list[list[Cell]] = [[what, effect] for what, effect in answer.jobs.plan.left_out.items()]
    for run in answer.runs:
        if run.trace is not None and run.trace.arm.settings:
            settings = run.trace.arm.settings.items()
            words = " ".join(f"{key}={value}" for key, value in settings)
            rows.append([f"{title_of(run.name)} changes", words])
    return Section(
        title="What differs from your cluster?",
        note="Settings that were not taken over, and those that an arm has of its own.",
        chart=None,
        table=Table(headings=("setting", "effect"), rows=rows or [["nothing", ""]]),
    )
