"""The store: exact, transactional, shared by several clusters, in SQLite or a SQL server."""

from shapleyprio.store.cluster_store import ClusterStore, Transaction, View
from shapleyprio.store.errors import (
    StoreBusyError,
    StoreConflictError,
    StoreError,
    StoreFullError,
    StoreSchemaError,
    StoreUnreachableError,
)
from shapleyprio.store.journal import Journal
from shapleyprio.store.migrations import HEAD
from shapleyprio.store.repositories.estimates import EstimatesView
from shapleyprio.store.repositories.history import HistoryView
from shapleyprio.store.repositories.leases import Leases
from shapleyprio.store.repositories.observed import Observations
from shapleyprio.store.repositories.pools import PoolsView
from shapleyprio.store.repositories.pushes import PushesView
from shapleyprio.store.repositories.runs import Runs, RunsView
from shapleyprio.store.rows.accounting import (
    AccountRow,
    AllocatedRun,
    CapacityRow,
    CorrectionRow,
    KeptBack,
    NodeRow,
    PendingJobs,
    QuarantinedLine,
    UserAfterEnd,
    Wait,
    Watermark,
    WorkAfterEnd,
)
from shapleyprio.store.rows.cycles import (
    GUARANTEE,
    AcceptedClockRow,
    ConfigurationRow,
    CycleRow,
    ExceptionRow,
    Interruption,
    PauseRow,
    StandingRow,
    SteeringRow,
)
from shapleyprio.store.rows.estimates import (
    LATER,
    DriftRow,
    EstimateRow,
    ForecastRow,
    ToldForecast,
    WaitingWork,
)
from shapleyprio.store.rows.pushes import (
    LeaseRow,
    ManagedValue,
    NewPush,
    PublishedPoints,
    Push,
    PushState,
)
from shapleyprio.store.scope import batches
from shapleyprio.store.store import Store

__all__ = [
    "GUARANTEE",
    "HEAD",
    "LATER",
    "AcceptedClockRow",
    "AccountRow",
    "AllocatedRun",
    "CapacityRow",
    "ClusterStore",
    "ConfigurationRow",
    "CorrectionRow",
    "CycleRow",
    "DriftRow",
    "EstimateRow",
    "EstimatesView",
    "ExceptionRow",
    "ForecastRow",
    "HistoryView",
    "Interruption",
    "Journal",
    "KeptBack",
    "LeaseRow",
    "Leases",
    "ManagedValue",
    "NewPush",
    "NodeRow",
    "Observations",
    "PauseRow",
    "PendingJobs",
    "PoolsView",
    "PublishedPoints",
    "Push",
    "PushState",
    "PushesView",
    "QuarantinedLine",
    "Runs",
    "RunsView",
    "StandingRow",
    "SteeringRow",
    "Store",
    "StoreBusyError",
    "StoreConflictError",
    "StoreError",
    "StoreFullError",
    "StoreSchemaError",
    "StoreUnreachableError",
    "ToldForecast",
    "Transaction",
    "UserAfterEnd",
    "View",
    "Wait",
    "WaitingWork",
    "Watermark",
    "WorkAfterEnd",
    "batches",
]
