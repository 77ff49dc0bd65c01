"""Asks the daemon, for users who cannot read its store."""

from shapleyprio.daemon.client.requests import DaemonError as DaemonError
from shapleyprio.daemon.client.requests import ask as ask
from shapleyprio.daemon.client.settings import DEFAULT_FILE as DEFAULT_FILE
from shapleyprio.daemon.client.settings import ClientSettings as ClientSettings
from shapleyprio.daemon.client.settings import load_settings as load_settings
from shapleyprio.daemon.client.settings import settings_of as settings_of
