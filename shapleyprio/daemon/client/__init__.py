"""Asks the daemon, for users who cannot read its store."""

from shapleyprio.daemon.client.asking import DEFAULT_FILE as DEFAULT_FILE
from shapleyprio.daemon.client.asking import ClientSettings as ClientSettings
from shapleyprio.daemon.client.asking import DaemonError as DaemonError
from shapleyprio.daemon.client.asking import ask as ask
from shapleyprio.daemon.client.asking import load_settings as load_settings
from shapleyprio.daemon.client.asking import settings_of as settings_of
