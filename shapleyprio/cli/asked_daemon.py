"""Which daemon a command asks, if it asks one."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.core import ParameterSource

from shapleyprio.common.errors import ConfigError
from shapleyprio.daemon.client import DEFAULT_FILE, ClientSettings, load_settings, settings_of

URL_VARIABLE = "SHAPLEYPRIO_URL"

url_option = click.option(
    "--url",
    metavar="URL",
    envvar=URL_VARIABLE,
    show_envvar=True,
    help="Ask the daemon at http://HOST:PORT or unix:/PATH instead of reading its store.",
)


def daemon_to_ask(
    context: click.Context, config_path: Path, url: str | None
) -> ClientSettings | None:
    """Returns which daemon to ask; None to read the store.

    What is given on the command line comes first, then the environment. If neither says where, who
    can read the configuration reads the store, and everybody else asks the daemon that the
    clients' file names.

    Args:
        context: of the command.
        config_path: its parameter, as url is.
        url: None where it was not given.

    Raises:
        ConfigError: there is no way to either.
    """
    config_from = context.get_parameter_source("config_path")
    url_from = context.get_parameter_source("url")
    if config_from == url_from == ParameterSource.COMMANDLINE:
        raise click.UsageError("--config reads the store and --url asks the daemon: give one")
    if url is not None and config_from != ParameterSource.COMMANDLINE:
        try:
            return settings_of(url)
        except ValueError as error:
            raise ConfigError([str(error)]) from None
    if config_from != ParameterSource.DEFAULT or os.access(config_path, os.R_OK):
        return None
    if DEFAULT_FILE.exists():
        return load_settings(DEFAULT_FILE)
    if config_path.exists():
        raise ConfigError(
            [
                f"you may not read {config_path}, and there is no {DEFAULT_FILE} that names the "
                f"daemon; give its --url, or set {URL_VARIABLE}"
            ]
        )
    return None


PACKAGES_SOCKET = "/run/shapleyprio/socket"
"""Where packages let the daemon have its socket."""


def daemon_of(config_path: Path) -> ClientSettings:
    """Returns how to ask the daemon of a configuration on its host.

    Raises:
        ConfigError: the configuration cannot be used, or its daemon has no socket.
    """
    from shapleyprio.config import load_config, socket_path  # far slower than to ask the daemon

    config = load_config(config_path)
    socket = config.service.socket
    if socket is None:
        raise ConfigError(
            ["service.socket: is off, so the daemon cannot be asked there; give its --url"]
        )
    return settings_of(f"unix:{socket_path(socket) or PACKAGES_SOCKET}")
