"""What Slurm's commands show of a cluster's daemons and settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from shapleyprio.slurm.command_line.commands import SlurmCommands
from shapleyprio.slurm.command_line.complaints import cause, daemon_away, failure, no_answer
from shapleyprio.slurm.port import Malformed, SlurmUnavailableError
from shapleyprio.slurm.text import config as text_config

Found = TypeVar("Found")

QOS = ("-nP", "show", "qos", "format=Name,Priority")

UP_SECONDS = 5
"""So long a controller that answered is taken to be up, where only reading follows."""


def ping(commands: SlurmCommands) -> None:
    """Finds out in milliseconds what every other command takes 9 seconds to notice.

    Raises:
        SlurmUnavailableError: the controller does not answer.
    """
    answer = commands.run("scontrol", "ping")
    if not text_config.is_up(answer.output):
        if daemon_away("scontrol", answer.complaints) is not None:
            raise failure("scontrol", answer.complaints, answer.code)
        reason = answer.output.strip().split("\n")[0][:200] or cause(answer.said, answer.code)
        raise no_answer("slurmctld", f"scontrol ping: {reason}")
    commands.up_until = time.monotonic() + UP_SECONDS


def ping_now_and_then(commands: SlurmCommands) -> None:
    """Pings a controller that has not answered a ping just now; raises as `ping`."""
    if time.monotonic() >= commands.up_until:
        ping(commands)


def configuration(commands: SlurmCommands) -> dict[str, str]:
    """Reads the settings of slurm.conf: name -> value."""
    ping_now_and_then(commands)
    return text_config.configuration(commands.read("scontrol", "show", "config"))


def qos_priorities(commands: SlurmCommands) -> Mapping[str, int]:
    """Reads QOS -> priority."""
    return dict(shown(commands, text_config.qos_line, "sacctmgr", *QOS))


def shown(
    commands: SlurmCommands, parse: Callable[[str], Found | Malformed], *command: str
) -> list[Found]:
    """Runs a command whose every line must be readable and returns what its lines say."""
    lines = commands.read(*command).split("\n")
    return [readable(parse(line)) for line in lines if line.strip()]


def readable(found: Found | Malformed) -> Found:
    """Returns what was read.

    Raises:
        SlurmUnavailableError: it could not be read.
    """
    if isinstance(found, Malformed):
        raise SlurmUnavailableError(
            f"{found.source} printed a line that cannot be read ({found.reason}): "
            f"{found.text[:200]!r}"
        )
    return found
