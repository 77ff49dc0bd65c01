"""Asks the daemon, for users who cannot read its store."""

from shapleyprio.client.asking import DaemonError, ask
from shapleyprio.client.checks import check_clients
from shapleyprio.client.settings import (
    DEFAULT_FILE,
    ClientSettings,
    load_settings,
    settings_of,
)

__all__ = [
    "DEFAULT_FILE",
    "ClientSettings",
    "DaemonError",
    "ask",
    "check_clients",
    "load_settings",
    "settings_of",
]
