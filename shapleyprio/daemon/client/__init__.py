"""Asks the daemon, for users who cannot read its store."""

from shapleyprio.daemon.client.requests import DaemonError, ask
from shapleyprio.daemon.client.settings import (
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
    "load_settings",
    "settings_of",
]
