"""How a cycle can end."""

from __future__ import annotations

from shapleyprio.daemon.accounting.cluster_clock import AccountingError, ClockError
from shapleyprio.daemon.pushing.lease import LeaseHeldError
from shapleyprio.slurm.port import SlurmError, SlurmRefusedError, SlurmUnavailableError
from shapleyprio.store import StoreError


class UnenforcedAccountsError(SlurmRefusedError):
    """Any user may write what priorities are computed from, so none are written."""


FAILURES: dict[type[Exception], str] = {
    UnenforcedAccountsError: "accounts_not_enforced",
    SlurmUnavailableError: "slurm_unavailable",
    SlurmError: "slurm_refused",
    LeaseHeldError: "lease_lost",
    StoreError: "store_failed",
    ClockError: "clock_backwards",
    AccountingError: "records_refused",
}
"""What can fail in a cycle -> the outcome it is recorded under; the first that fits counts."""

STEERED = "ok"
"""The outcome of a cycle that succeeded."""

NOT_ENFORCED = (
    "AccountingStorageEnforce lacks associations, so any user can submit jobs to any account; set "
    "AccountingStorageEnforce=associations in slurm.conf and restart slurmctld, or allow it by "
    "slurm.allow_unenforced_accounts = true"
)


def outcome_of(failure: Exception) -> str:
    """Names the outcome that a failure is recorded under: ``defect`` if it was not foreseen."""
    return next((name for kind, name in FAILURES.items() if isinstance(failure, kind)), "defect")
