"""When a job would start that nobody has submitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shapleyprio.common.wording import names_shown
from shapleyprio.daemon.answering.explain import NothingToExplainError, unknown_account
from shapleyprio.daemon.answering.explain_facts import Prospect
from shapleyprio.daemon.answering.inquiries import AskedJob, Asker
from shapleyprio.daemon.estimation.messages import WaitingJob
from shapleyprio.daemon.estimation.worker import INSTALL
from shapleyprio.daemon.forecasting.live import LiveForecasts, NoForecastsError
from shapleyprio.fairness.tenure import NOBODY, takes_part
from shapleyprio.store import ClusterStore, ForecastRow, View

Forecasting = Callable[[str], LiveForecasts | None]
"""From the name of a ledger to what forecasts its jobs' starts; None where nothing does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """When a job would start if it was submitted now.

    Attributes:
        cluster: its ledger.
        job: that was asked for.
        account: for which it would be submitted.
        organization: for which it would count; None for none.
        forecast: of it, as of the queue of some seconds ago.
        age: these seconds.
    """

    cluster: str
    job: AskedJob
    account: str
    organization: str | None
    forecast: ForecastRow
    age: int

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        prospect = Prospect(forecast=self.forecast, waits_for=self.forecast.waits_for)
        return {
            "cluster": self.cluster,
            "account": self.account,
            "organization": self.organization,
            "partition": self.job.partition,
            "processors": self.job.processors,
            "limit": self.job.limit,
            "start": prospect.as_json(),
            "age": self.age,
        }


def what_if(
    store: ClusterStore, forecasts: LiveForecasts | None, job: AskedJob, asker: Asker
) -> WhatIf:
    """Forecasts when a job would start if it was submitted now.

    Args:
        store: of the ledger.
        forecasts: of its jobs' starts; None if there are none.
        job: that is asked for.
        asker: who asks: for an account to which they may submit, or whose jobs they may see.

    Raises:
        NothingToExplainError: the account is unknown or not the asker's to ask for, or no such job
            could start.
        NoForecastsError: nothing is forecast now.
        SlurmError: the asker's rights are not known.
        StoreError: the store cannot be read.
    """
    account = _account_of(job, asker)
    if forecasts is None:
        raise NoForecastsError(f"forecasts are off on this daemon; an administrator can {INSTALL}")
    _check_size(job, forecasts.sizes())
    with store.reading() as view:
        organization = _organization_of(view, account, job.partition)
    submitted = WaitingJob(
        job_id=0,
        organization=organization,
        account=account,
        user=asker.user,
        release=0,
        limit=job.limit,
        tasks=1,
        processors=job.processors,
        partition=job.partition,
    )
    forecast, age = forecasts.of_one_more(submitted)
    return WhatIf(
        cluster=store.cluster,
        job=job,
        account=account,
        organization=None if organization == NOBODY else organization,
        forecast=forecast,
        age=age,
    )


def _account_of(job: AskedJob, asker: Asker) -> str:
    if job.account and asker.rights().see(job.account):
        return job.account
    account = asker.account(job.account)
    if account:
        return account
    if not job.account:
        raise NothingToExplainError(
            f"user {asker.user} has no default account; name one with --account"
        )
    raise NothingToExplainError(
        f"user {asker.user} may not submit to account {job.account}; "
        f"see `sacctmgr show assoc where user={asker.user}`"
    )


def _check_size(job: AskedJob, sizes: Mapping[str, int]) -> None:
    has = sizes.get(job.partition)
    if has is None:
        raise NothingToExplainError(
            f"partition {job.partition} has no processors now; these have: {names_shown(sizes)}"
        )
    if job.processors > has:
        raise NothingToExplainError(
            f"{job.processors} processors are more than partition {job.partition} has now: {has}"
        )


def _organization_of(view: View, account: str, partition: str) -> str:
    watermark, tenures = view.ledger.watermark(), view.ledger.tenures()
    second = watermark.accounted_to if watermark else 0
    if not tenures.knows("account", account):
        raise NothingToExplainError(unknown_account(account, tenures))
    if not takes_part(partition, tenures.left_out("partition", second)):
        return NOBODY
    return tenures.holder("account", account, second)
