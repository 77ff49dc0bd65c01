"""The store: exact, transactional, shared by several clusters, in SQLite or a SQL server."""

from shapleyprio.store.errors import (
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreSchemaError,
    StoreUnreachableError,
)
from shapleyprio.store.rows import (
    CycleRow,
    DriftRow,
    KeptAside,
    Lease,
    Mark,
    NewPush,
    PlacedRun,
    Progress,
    Push,
    PushState,
    Revision,
    StandingRow,
)
from shapleyprio.store.store import Store, Transaction, View

__all__ = [
    "CycleRow",
    "DriftRow",
    "KeptAside",
    "Lease",
    "Mark",
    "NewPush",
    "PlacedRun",
    "Progress",
    "Push",
    "PushState",
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
]
