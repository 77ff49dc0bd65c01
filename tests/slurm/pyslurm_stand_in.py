"""A stand-in for the Python package pyslurm: what the adapter uses of it, and a log of its use.

A test copies it to `pyslurm.py` in a folder on the worker's path, and says in `does.json` beside
it what is to happen.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FOLDER = Path(__file__).parent
CLUSTER = "standing-in"
SLOW_SECONDS = 0.4


class RPCError(Exception):
    """As pyslurm raises it."""


def does() -> dict[str, Any]:
    """What is to happen now; nothing where it stands as a module of the tests."""
    file = FOLDER / "does.json"
    wanted: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return wanted


def note(*words: object) -> None:
    """Logs a call."""
    with (FOLDER / "log").open("a") as log:
        log.write(" ".join(map(str, words)) + "\n")


def happen(event: str) -> None:
    """Lets that come to pass which the test wants of a call."""
    note(event)
    wanted = does().get(event)
    if wanted == "hang":
        time.sleep(600)
    elif wanted == "slow":
        time.sleep(SLOW_SECONDS)
    elif wanted == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif wanted == "chat":
        print("slurm: error: this is no answer")
    elif wanted:
        raise RPCError(wanted)


def slurm_api_version() -> tuple[int, ...]:
    return tuple(does().get("built_for", (26, 5, 5)))


def ping_all() -> list[str]:
    happen("ping_all")
    return ["primary", "backup"]


def ping(number: int) -> None:
    happen(f"ping {number}")


def diag() -> SimpleNamespace:
    happen("diag")
    return SimpleNamespace(
        request_time=1_780_000_000,
        dbd_agent_queue_size=3,
        jobs_submitted=41,
        rpcs_by_type={
            "REQUEST_JOB_INFO": SimpleNamespace(count=9),
            "REQUEST_UPDATE_JOB": SimpleNamespace(count=5),
        },
    )


class Config:
    """The settings of slurm.conf."""

    cluster_name = CLUSTER

    def __init__(self) -> None:
        self.version = does().get("cluster_version", "26.05.5")

    @staticmethod
    def load() -> Config:
        happen("config")
        return Config()


slurmctld = SimpleNamespace(ping_all=ping_all, ping=ping, diag=diag, Config=Config)


class JobSubmitDescription:
    """What is to change; as the real one, it sends no zeros."""

    def __init__(self, **values: Any) -> None:
        self.sent = {name: int(value) for name, value in values.items() if value}


class Job:
    """A job."""

    def __init__(self, number: int) -> None:
        self.number = number

    def modify(self, changes: JobSubmitDescription) -> None:
        happen(f"modify {self.number}")
        note(self.number, changes.sent)


if "cannot_import" in does():
    raise ImportError(does()["cannot_import"])
