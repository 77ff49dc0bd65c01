"""The work of `shapleyprio rehearse`: read, run the arms, show and write what came out."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import click
from rich.console import Console

from shapleyprio.cli.offline.workloads import OUT_OF_TURN, complain, out_of_turn
from shapleyprio.cli.options.json_output import write_json
from shapleyprio.cli.options.reporting import publish
from shapleyprio.cli.shown.progress import progress_bars
from shapleyprio.cli.shown.tables import FittingTable, standard_output, table_of
from shapleyprio.common.output import whole_file
from shapleyprio.common.wording import DAY, dates, duration, listed, percent, whole
from shapleyprio.config.keys import ServiceSection
from shapleyprio.daemon.accounting.cluster_clock import AccountingError
from shapleyprio.lab.cli.parameters import RehearseParameters
from shapleyprio.lab.cli.trial_progress import watching
from shapleyprio.lab.cli.trialling import install
from shapleyprio.lab.experiment.keeping import KeptResults
from shapleyprio.lab.experiment.logs import checksum
from shapleyprio.lab.rehearsal.answer import Answer, RehearsedRun, answer_of
from shapleyprio.lab.rehearsal.arms import ARMS, USUAL_ARMS, SiteArm, changed
from shapleyprio.lab.rehearsal.jobs import Days, SiteJobs, last_days, site_jobs
from shapleyprio.lab.rehearsal.report import answer_as_json, rehearsal_page, write_waits
from shapleyprio.lab.rehearsal.running import Kept, named_runs, run_arms
from shapleyprio.lab.rehearsal.site import read_site
from shapleyprio.lab.testbed.machine import state_directory
from shapleyprio.lab.trial.running import Conditions, Trace
from shapleyprio.lab.trial.steering import Pace
from shapleyprio.replay.logs.columns import second_of
from shapleyprio.replay.logs.files import files_of
from shapleyprio.replay.logs.reading import read_log, zone_of
from shapleyprio.replay.policies.registry import title_of

SEED = 0
SHOWN = ("organization", "partition", "size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A rehearsal that is read.

    Attributes:
        days: to rehearse.
        jobs: of these days.
        runs: name -> arm, each as often as it is to be run.
        kept: where they are kept; None for nowhere.
    """

    days: Days
    jobs: SiteJobs
    runs: Mapping[str, SiteArm]
    kept: Kept | None


def rehearse(parameters: RehearseParameters) -> None:
    """Runs a rehearsal and shows its answer.

    Raises:
        ReplayError, ConfigError: what was given does not make one.
        SlurmError: an arm could not be run.
        AccountingError: they were, but their numbers are doubtful.
    """
    prepared = prepare(parameters)
    traces = {} if prepared.kept is None else prepared.kept.traces(prepared.runs)
    missing = {name: arm for name, arm in prepared.runs.items() if name not in traces}
    announce(prepared, missing)
    if missing:
        install()
        traces |= _run(parameters, prepared, missing)
    by_arm: dict[str, list[Trace]] = {}
    for name, arm in prepared.runs.items():
        by_arm.setdefault(arm.name, []).append(traces[name])
    cores = len(os.sched_getaffinity(0))
    answer = answer_of(prepared.jobs, list(by_arm.values()), seed=SEED, cores=cores)
    _write_and_show(parameters, prepared, answer)
    if faults := [fault for run in answer.runs for fault in run.faults]:
        raise AccountingError("\n".join(faults))


def prepare(parameters: RehearseParameters) -> Prepared:
    """Reads the site and its jobs.

    Raises:
        ReplayError, ConfigError: they do not make a rehearsal.
    """
    site = read_site(parameters.slurm_conf, parameters.associations, parameters.qos)
    named = parameters.arms or USUAL_ARMS
    arms = [ARMS[name] for name in named]
    arms += [changed(number, text) for number, text in enumerate(parameters.changes, start=1)]
    with progress_bars() as bar:
        log = read_log(
            parameters.log, time_zone=parameters.time_zone, progress=bar("reading", None)
        )
    complain(log)
    zone, since = zone_of(parameters.time_zone), parameters.since
    days = last_days(
        log,
        round(parameters.days * DAY),
        since=None if since is None else second_of(since, zone),
        warm_up=parameters.warm_up,
    )
    jobs = site_jobs(log, site, parameters.organizations, days, max_nodes=parameters.max_nodes)
    return Prepared(
        days=days,
        jobs=jobs,
        runs=named_runs(arms, parameters.repeat),
        kept=_kept(parameters, days, site.conf.files),
    )


def _kept(parameters: RehearseParameters, days: Days, conf_files: Sequence[Path]) -> Kept | None:
    if parameters.keep is None:
        return None
    results = KeptResults(parameters.keep, asked_as="rehearsal")
    results.make()
    site = (*conf_files, parameters.associations, parameters.qos)
    given = (*site, parameters.organizations, *map(Path, files_of(parameters.log)))
    inputs = {
        "files": [checksum(file) for file in given if file is not None],
        "time_zone": parameters.time_zone,
        "days": [days.begin, days.since, days.until],
        "speed": parameters.speed,
        "max_nodes": parameters.max_nodes,
    }
    return Kept(results=results, inputs=inputs)


def announce(prepared: Prepared, missing: Collection[str]) -> None:
    """Says on standard error what is rehearsed, and what is not taken over."""
    days, plan = prepared.days, prepared.jobs.plan
    nodes = plan.site.conf.nodes.values()
    lines = [
        f"{whole(len(plan.jobs))} jobs {dates(days.begin, days.until)}, of which "
        f"{whole(int(prepared.jobs.counted.sum()))} count, on {whole(len(nodes))} nodes with "
        f"{whole(sum(node.processors for node in nodes))} processors",
        *(f"not taken over: {what}: {effect}" for what, effect in grouped(plan.left_out)),
    ]
    if left := plan.workload.left_out_in_words:
        lines.append(f"left out: {left}")
    if other := prepared.jobs.other_partition:
        default = plan.site.conf.default
        lines.append(f"{whole(other)} jobs of partitions that are gone run in {default}")
    if done := prepared.runs.keys() - set(missing):
        lines.append(f"kept: {', '.join(sorted(done))}")
    for line in lines:
        click.echo(f"shapleyprio: {line}", err=True)


def grouped(left_out: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields what is not taken over, and what might differ because of it."""
    by_effect = sorted(left_out.items(), key=lambda pair: pair[1])
    for effect, pairs in groupby(by_effect, key=lambda pair: pair[1]):
        yield listed([what for what, _ in pairs]), effect


def _run(
    parameters: RehearseParameters, prepared: Prepared, missing: Mapping[str, SiteArm]
) -> dict[str, Trace]:
    service = ServiceSection()
    conditions = Conditions(
        plan=prepared.jobs.plan,
        speed=parameters.speed,
        pace=Pace(service.poll_interval, service.new_jobs_interval),
    )
    with state_directory(parameters.directory) as directory, watching() as watch:
        return run_arms(
            missing,
            conditions,
            directory=directory,
            at_once=parameters.side_by_side,
            kept=prepared.kept,
            watch=watch,
        )


def _write_and_show(parameters: RehearseParameters, prepared: Prepared, answer: Answer) -> None:
    report = answer_as_json(answer, prepared.days, speed=parameters.speed)
    if parameters.waits_file is not None:
        with whole_file(parameters.waits_file) as file:
            write_waits(file, answer)
    publish(
        parameters.report,
        lambda: rehearsal_page(
            answer, days=prepared.days, speed=parameters.speed, command=parameters.report.command
        ),
    )
    if write_json(parameters.json_file, report):
        render(standard_output(highlight=False), answer)


def render(console: Console, answer: Answer) -> None:
    """Prints the tables."""
    console.print(runs_table(answer))
    for group in SHOWN:
        console.print()
        console.print(waits_table(answer, group))
    if answer.trust is not None:
        console.print()
        differs = percent(answer.trust, sign="+")
        console.print(f"mean wait today against what really happened: {differs}", style="dim")


def runs_table(answer: Answer) -> FittingTable:
    """Makes a line for what happened and for each arm."""
    headings = ("arm", "mean wait", "Δψ/p_tot", OUT_OF_TURN, "utilization")
    late = ("submitted late", "started late", "too long")
    rows = [
        (
            title_of(run.name),
            _mean(float(run.waits.mean()), [float(one.mean()) for one in run.each]),
            "" if run.result.unfairness is None else duration(float(run.result.unfairness)),
            out_of_turn(run.result.turns),
            percent(run.result.measures.utilization),
            *_late(run),
        )
        for run in answer.runs
    ]
    return table_of((*headings, *late), rows)


def _mean(mean: float, each: Sequence[float]) -> str:
    """Returns a mean wait, and the least and the most of several runs."""
    spread = f" [{duration(min(each))} to {duration(max(each))}]" if len(each) > 1 else ""
    return f"{duration(mean)}{spread}"


def _late(run: RehearsedRun) -> tuple[str, ...]:
    delays = run.delays
    if delays is None:
        return ("", "", "")
    return tuple(map(duration, (delays.submission, delays.start, delays.length)))


def waits_table(answer: Answer, group: str) -> FittingTable:
    """Makes a line for each group of a kind with the mean wait in each run."""
    rows = [
        (row.name, whole(row.jobs), *map(_mean, row.means, row.each))
        for row in (*answer.rows(group), answer.all_jobs)
    ]
    return table_of((group, "jobs", *(title_of(run.name) for run in answer.runs)), rows)
