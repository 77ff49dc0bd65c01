"""Whether the users of this host can ask the daemon, as an administrator wants to know."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from shapleyprio.common.errors import ConfigError
from shapleyprio.config import Config, socket_path
from shapleyprio.daemon.client.asking import DEFAULT_FILE, load_settings
from shapleyprio.slurm.findings import Finding, Severity


def check_clients(config: Config, file: Path = DEFAULT_FILE) -> Iterator[Finding]:
    """Yields what keeps users of this host from the daemon that this configuration is for.

    Args:
        config: of the daemon.
        file: that names the daemon for everybody.
    """
    socket = socket_path(config.service.socket)
    if socket is not None and (closed := _closed(socket.parent)) is not None:
        yield Finding(
            Severity.WARNING,
            "service.socket",
            f"users cannot get through {closed} to the socket",
            f"chmod o+x {closed}",
        )
    if not file.exists():
        if socket is not None:
            yield Finding(
                Severity.NOTICE,
                "client.toml",
                f"there is no {file}: users have to name the daemon by --url or SHAPLEYPRIO_URL",
                f"""echo 'url = "unix:{socket}"' > {file}""",
            )
        return
    try:
        load_settings(file)
    except ConfigError as error:
        yield Finding(Severity.WARNING, "client.toml", str(error), "users cannot ask the daemon")
    if (closed := _closed(file.parent)) is not None:
        yield Finding(
            Severity.WARNING,
            "client.toml",
            f"users cannot get through {closed} to {file.name}",
            f"chmod o+x {closed}",
        )
    elif not file.stat().st_mode & stat.S_IROTH:
        yield Finding(
            Severity.WARNING, "client.toml", f"users may not read {file}", f"chmod o+r {file}"
        )


def _closed(folder: Path) -> Path | None:
    """Returns the first folder on the way that others may not pass through; None if all are open.

    One that is not there yet, or that we may not look into, does not count.
    """
    for place in reversed((folder, *folder.parents)):
        try:
            mode = place.stat().st_mode
        except OSError:
            return None
        if not mode & stat.S_IXOTH:
            return place
    return None
