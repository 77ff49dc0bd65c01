"""The store: exact, transactional, shared by several clusters, in SQLite or a SQL server."""

from shapleyprio.store.errors import (
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreSchemaError,
    StoreUnreachableError,
)
from shapleyprio.store.rows import (
    AllocatedRun,
    CapacityRow,
    CorrectionRow,
    CycleRow,
    DriftRow,
    EstimateRow,
    LeaseRow,
    ManagedValue,
    NewPush,
    PublishedPoints,
    Push,
    PushState,
    QuarantinedLine,
    Revision,
    StandingRow,
    Watermark,
)
from shapleyprio.store.scope import batches
from shapleyprio.store.store import ClusterStore, Store, Transaction, View

__all__ = [
    "AllocatedRun",
    "CapacityRow",
    "ClusterStore",
    "CorrectionRow",
    "CycleRow",
    "DriftRow",
    "EstimateRow",
    "LeaseRow",
    "ManagedValue",
    "NewPush",
    "PublishedPoints",
    "Push",
    "PushState",
    "QuarantinedLine",
    "Revision",
    "StandingRow",
    "Store",
    "StoreBusyError",
    "StoreError",
    "StoreFullError",
    "StoreSchemaError",
    "StoreUnreachableError",
    "Transaction",
    "View",
    "Watermark",
    "batches",
]
