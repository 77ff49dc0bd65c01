"""What `explain` and `status` answer, whether they read the store or the daemon is asked."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from rich.console import Console

from shapleyprio.cli.common import alone
from shapleyprio.cli.shown.explanations import (
    sentences_on_job,
    sentences_on_jobs,
    sentences_on_what_if,
)
from shapleyprio.cli.shown.ranks import sentences_on_steering
from shapleyprio.cli.shown.status import STALE, StatusOfEach, read_each
from shapleyprio.config import Config, connect, load_config
from shapleyprio.config.segments import Segment, segment_of
from shapleyprio.daemon.answering.estimated import seen_by
from shapleyprio.daemon.answering.explain import (
    NothingToExplainError,
    explain_account,
    explain_job,
    explain_user,
)
from shapleyprio.daemon.answering.explain_facts import JobExplanation, JobsExplanation
from shapleyprio.daemon.answering.freshness import read_steering
from shapleyprio.daemon.answering.inquiries import (
    AskedJob,
    Asker,
    Inquiry,
    InquiryAnswer,
    RecentQueue,
)
from shapleyprio.daemon.answering.scene import QueueSource
from shapleyprio.daemon.answering.what_if import Forecasting, what_if
from shapleyprio.daemon.forecasting.live import LiveForecasts
from shapleyprio.daemon.ledgers import segments_meant, stored_ledgers
from shapleyprio.slurm.access import Rights
from shapleyprio.slurm.port import PendingQueue, Slurm, SlurmError
from shapleyprio.store import ClusterStore, Store


def explained(
    config: Config,
    ledgers: Sequence[ClusterStore],
    slurm: QueueSource,
    inquiry: Inquiry,
    asker: Asker | None = None,
    forecasting: Forecasting = lambda _: None,
) -> InquiryAnswer:
    """Answers `explain`, by each of the cluster's ledgers that has such jobs.

    While Slurm is away the pool of a pending job is unknown: all pools explain it.

    Args:
        config: in force.
        ledgers: of the cluster.
        slurm: where the jobs are.
        inquiry: which ones are meant.
        asker: as for `explain_job`.
        forecasting: within the daemon, as for `foreseen`.

    Raises:
        NothingToExplainError, SlurmError, StoreError: there is no answer.
    """

    def by(store: ClusterStore, segment: Segment) -> InquiryAnswer:
        forecasts = forecasting(store.cluster)
        return _explained(config, store, _QueueOf(segment, slurm), inquiry, asker, forecasts)

    if len(ledgers) == 1:
        return by(ledgers[0], segment_of(config, ledgers[0].cluster))
    answers: list[InquiryAnswer] = []
    nothing: Exception | None = None
    for store in ledgers:
        segment = segment_of(config, store.cluster)
        try:
            found = by(store, segment)
        except (NothingToExplainError, SlurmError) as failure:  # of another pool more is known
            nothing = failure
        else:
            answers.append(replace(found, lines=(f"Pool {segment.name}:", *found.lines)))
    if not answers:
        assert nothing is not None
        raise nothing
    lines = [line for found in answers for line in found.lines]
    if inquiry.key == "job" and len(answers) > 1:
        lines.insert(0, f"It is not known in which pool job {inquiry.value} waits.")
    value = alone([found.value for found in answers])
    return InquiryAnswer(value, tuple(lines), max(found.code for found in answers))


def explained_by_store(config_path: Path, inquiry: Inquiry) -> InquiryAnswer:
    """Answers `explain` for somebody who can read the store.

    Raises:
        ConfigError, NothingToExplainError, SlurmError, StoreError: there is no answer.
    """
    config = load_config(config_path)
    queue = RecentQueue(connect(config))  # each of the cluster's ledgers looks into it
    with Store.open(config.store.url) as store:
        return explained(config, stored_ledgers(config, store), queue, inquiry)


class _QueueOf:
    """The jobs that wait in one segment of a cluster."""

    def __init__(self, segment: Segment, slurm: QueueSource) -> None:
        self._segment = segment
        self._slurm = slurm

    def pending(self) -> PendingQueue:
        """Reads them; raises SlurmError."""
        return self._segment.queue(self._slurm.pending())


def _explained(
    config: Config,
    store: ClusterStore,
    slurm: QueueSource,
    inquiry: Inquiry,
    asker: Asker | None,
    forecasts: LiveForecasts | None,
) -> InquiryAnswer:
    """Answers `explain` by one ledger.

    Args:
        config: in force.
        store: with the ledger.
        slurm: where its jobs are.
        inquiry: which ones are meant.
        asker: as for `explain_job`.
        forecasts: of the starts of its jobs, which know what a limit costs; None without any.

    Raises:
        NothingToExplainError, SlurmError, StoreError: there is no answer.
    """
    influence = config.push.influence
    steering = read_steering(store, config.service.poll_interval)
    facts: JobExplanation | JobsExplanation
    if inquiry.key == "job":
        facts = explain_job(store, slurm, inquiry.value, asker, age=steering.age)
        if facts.job and facts.prospect and facts.prospect.forecast and forecasts is not None:
            cost = forecasts.cost_of_limit(facts.job.job_id)
            facts = replace(facts, prospect=replace(facts.prospect, cost=cost))
        sentences = sentences_on_job(facts, influence, config.push.channel)
    else:
        explain = explain_user if inquiry.key == "user" else explain_account
        facts = explain(store, slurm, inquiry.value, asker, age=steering.age)
        sentences = sentences_on_jobs(facts, influence, config.push.channel)
    sentences = [*sentences_on_steering(steering), *sentences]
    value = {
        **facts.as_json(),
        **steering.as_json(),
        "influence": influence or "strict",
        "sentences": sentences,
    }
    return InquiryAnswer(value, tuple(sentences), STALE if steering.is_stale else 0)


def foreseen(
    config: Config,
    ledgers: Sequence[ClusterStore],
    forecasting: Forecasting,
    inquiry: Inquiry,
    asker: Asker,
) -> InquiryAnswer:
    """Answers `explain --what-if`, by the ledger of the partition.

    Args:
        config: in force.
        ledgers: of the cluster.
        forecasting: what forecasts the starts of a ledger's jobs.
        inquiry: which job is meant.
        asker: who asks.

    Raises:
        NothingToExplainError, NoForecastsError, SlurmError, StoreError: there is no answer.
    """
    job = AskedJob.read(inquiry.value)
    in_pool = (one for one in ledgers if segment_of(config, one.cluster).has(job.partition))
    store = next(in_pool, ledgers[0])
    found = what_if(store, forecasting(store.cluster), job, asker)
    sentences = sentences_on_what_if(found)
    return InquiryAnswer({**found.as_json(), "sentences": sentences}, tuple(sentences))


def status_in_store(config_path: Path, pool: str | None) -> tuple[Config, StatusOfEach]:
    """Reads what `status` shows to somebody who can read the store, and the configuration.

    Args:
        config_path: of that.
        pool: the only one to show; None for all.

    Raises:
        ConfigError, StoreError: there is no answer.
    """
    config = load_config(config_path)
    with Store.open(config.store.url) as store:
        return config, read_each(config, stored_ledgers(config, store, pool))


def status_of(
    config: Config, ledgers: Sequence[ClusterStore], inquiry: Inquiry, asker: Asker
) -> InquiryAnswer:
    """Answers `status` for somebody who cannot read the store.

    Lines that Slurm printed and that could not be read may name jobs: operators alone see them. Of
    waiting work users see their own, coordinators their accounts'. While the rights are not known
    there are none.

    Args:
        config: in force.
        ledgers: of the cluster.
        inquiry: how wide the asker's terminal is, and what is to be shown.
        asker: who asks.

    Raises:
        StoreError: there is no answer.
    """

    @cache
    def rights() -> Rights:
        try:
            return asker.rights()
        except SlurmError:
            return Rights()

    sees = seen_by(replace(asker, rights=rights))
    printed = io.StringIO()
    console = Console(file=printed, width=int(inquiry.value), markup=False, emoji=False)
    found = read_each(config, ledgers)
    known = [(status.seen_by(sees), steering) for status, steering in found.known]
    if any(status.quarantined for status, _ in known) and not rights().operator:
        known = [(replace(status, quarantined=()), steering) for status, steering in known]
    found = replace(found, known=known)
    found.render(console, config, waits=inquiry.key == "waits")
    return InquiryAnswer(found.as_json(), tuple(printed.getvalue().splitlines()), found.code)


class Answers:
    """Answers users' questions within the daemon.

    Args:
        store: of the cluster that it steers.
        connect: makes the way to Slurm that a configuration says.
        current: returns the configuration in force.
        forecasting: what forecasts the starts of a ledger's jobs.
    """

    def __init__(
        self,
        store: ClusterStore,
        connect: Callable[[Config], Slurm],
        current: Callable[[], Config],
        forecasting: Forecasting,
    ) -> None:
        self._store = store
        self._connect = connect
        self._current = current
        self._forecasting = forecasting
        self._queue: tuple[Config, RecentQueue] | None = None

    def __call__(self, inquiry: Inquiry, asker: Asker) -> InquiryAnswer:
        """Answers a question.

        Raises:
            NothingToExplainError, NoForecastsError, SlurmError, StoreError: there is no answer.
            ConfigError: the cluster has no such pool.
        """
        config = self._current()
        if inquiry.command == "status":
            ledgers = self._ledgers(config, inquiry.pool)
            return status_of(config, ledgers, inquiry, asker)
        if inquiry.key == "what_if":
            return foreseen(config, self._ledgers(config), self._forecasting, inquiry, asker)
        if self._queue is None or self._queue[0] is not config:
            self._queue = config, RecentQueue(self._connect(config))
        ledgers = self._ledgers(config)
        return explained(config, ledgers, self._queue[1], inquiry, asker, self._forecasting)

    def _ledgers(self, config: Config, pool: str | None = None) -> list[ClusterStore]:
        segments = segments_meant(config, self._store.cluster, pool)
        return [self._store.ledger(segment.ledger) for segment in segments]
