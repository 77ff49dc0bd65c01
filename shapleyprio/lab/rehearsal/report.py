"""The answer of a rehearsal as a page for an admin and a board, and as JSON and CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any, TextIO

import numpy as np

from shapleyprio.common.output import inert_cell
from shapleyprio.common.wording import HOUR, dates, duration, percent, whole
from shapleyprio.lab.rehearsal.answer import GROUPS, Answer, RehearsedRun, WaitRow
from shapleyprio.lab.rehearsal.arms import TODAY
from shapleyprio.lab.rehearsal.jobs import Days
from shapleyprio.replay.policies import RECORDED
from shapleyprio.replay.policies.registry import title_of
from shapleyprio.replay.results import as_float
from shapleyprio.reports import replay_sections
from shapleyprio.reports.html.comparisons import SPREAD, spread
from shapleyprio.reports.html.encodings import colors_of
from shapleyprio.reports.html.page import Cell, Front, Page, Section, Table, columns_of, versions
from shapleyprio.reports.replay_page import about, choice_of, reading
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


JOB_COLUMNS = ("job", "organization", "account", "user", "partition", "qos", "processors")


def answer_as_json(answer: Answer, days: Days, *, speed: int) -> dict[str, Any]:
    """Returns everything but single jobs as values that JSON knows; times are seconds."""
    site, workload = answer.jobs.plan.site, answer.jobs.plan.workload
    return {
        "versions": {
            "shapleyprio": version("shapleyprio"),
            "slurm": next((run.trace.slurm_version for run in answer.runs if run.trace), None),
        },
        "site": {
            "nodes": len(site.conf.nodes),
            "processors": sum(node.processors for node in site.conf.nodes.values()),
            "partitions": list(site.conf.partitions),
            "left_out": dict(answer.jobs.plan.left_out),
        },
        "days": {"begin": days.begin, "since": days.since, "until": days.until},
        "speed": speed,
        "jobs": answer.all_jobs.jobs,
        "left_out": dict(workload.left_out),
        "other_partition": answer.jobs.other_partition,
        "trust": answer.trust,
        "runs": [_run_as_json(answer, run) for run in answer.runs],
        "waits": {
            group: [_row_as_json(answer, row) for row in answer.rows(group)] for group in GROUPS
        },
    }


def _run_as_json(answer: Answer, run: RehearsedRun) -> dict[str, Any]:
    result, trace, delays = run.result, run.trace, run.delays
    organizations = answer.jobs.plan.workload.organizations
    return {
        "run": run.name,
        "settings": None if trace is None else dict(trace.arm.settings),
        "mean_wait": float(run.waits.mean()),
        "utilization": as_float(result.measures.utilization),
        "unfairness": as_float(result.unfairness),
        "drifts": None
        if result.drifts is None
        else dict(zip(organizations, map(float, result.drifts), strict=True)),
        "contested": None if result.turns is None else result.turns.contested,
        "out_of_turn": None if result.turns is None else result.turns.out_of_turn,
        "delays": None if delays is None else asdict(delays),
        "faults": list(run.faults),
        "real_seconds": None if trace is None else round(trace.real_seconds, 1),
    }


def _row_as_json(answer: Answer, row: WaitRow) -> dict[str, Any]:
    names = [run.name for run in answer.runs]
    return {
        "name": row.name,
        "jobs": row.jobs,
        "mean_wait": dict(zip(names, row.means, strict=True)),
        "each": dict(zip(names, row.each, strict=True)),
    }


def write_waits(file: TextIO, answer: Answer) -> None:
    """Writes a row for each job that counts: what it is, its release, and its wait in each arm.

    Seconds; the release since the epoch. A job that has not started has its wait so far, and of
    several runs of an arm the mean counts.
    """
    jobs = answer.jobs
    workload = jobs.plan.workload
    table = csv.writer(file, lineterminator="\n")
    table.writerow([*JOB_COLUMNS, "release", *(f"wait {run.name}" for run in answer.runs)])
    columns = [run.waits.astype(int).tolist() for run in answer.runs]
    for row, job in enumerate(jobs.counted.nonzero()[0].tolist()):
        named = jobs.plan.jobs[job]
        names = (workload.organizations[int(workload.organization[job])], *named[:4])
        table.writerow(
            [
                int(workload.job[job]),
                *map(inert_cell, names),
                int(workload.processors[job]),
                int(workload.release[job]) + workload.window.start,
                *(column[row] for column in columns),
            ]
        )
