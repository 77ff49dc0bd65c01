"""By what Slurm knows users, and what they may see of others' jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from shapleyprio.slurm.command_line.commands import SlurmCommands
from shapleyprio.slurm.command_line.config import configuration
from shapleyprio.slurm.text.config import submission_settings

OPERATORS = frozenset({"operator", "administrator", "super user"})
"""Levels whose holders see all jobs, as sacctmgr prints them in small letters."""

RIGHTS = ("-nP", "show", "user", "withcoord", "format=AdminLevel,Coordinators")

_SOCKET = re.compile(r"(?:^|,)socket=([^,]+)")


@dataclass(frozen=True, slots=True)
class Authentication:
    """By what Slurm knows who asks.

    Attributes:
        munge_socket: the socket of munged that it uses (AuthInfo); None for munge's own default.
        slurm_user: number of SlurmUser, who may do everything; None if it is not known.
    """

    munge_socket: Path | None = None
    slurm_user: int | None = None


@dataclass(frozen=True, slots=True)
class Rights:
    """What a user may see of others' jobs, however private the site keeps them.

    Attributes:
        operator: whether the AdminLevel is Operator or Administrator: all jobs.
        coordinates: accounts that the user coordinates, with those below them: their jobs.
    """

    operator: bool = False
    coordinates: frozenset[str] = frozenset()

    def see(self, account: str) -> bool:
        """Returns whether the jobs of an account are shown, whoever's they are."""
        return self.operator or account in self.coordinates


class Access(Protocol):
    """What Slurm knows of users; its methods raise SlurmError if it does not answer."""

    def authentication(self) -> Authentication:
        """Reads by what it knows who asks."""

    def rights(self, user: str) -> Rights:
        """Reads what a user may see."""

    def account(self, user: str, named: str) -> str:
        """Reads to which account a user's job goes that names one, or none: empty if to none."""


class CommandLineAccess:
    """The protocol `Access`, through scontrol and sacctmgr.

    Args:
        timeout_seconds: time limit of one command.
        bin_directory: where the commands are; None for the PATH.
    """

    def __init__(self, *, timeout_seconds: float, bin_directory: Path | None = None) -> None:
        self._commands = SlurmCommands(timeout_seconds=timeout_seconds, bin_directory=bin_directory)

    def authentication(self) -> Authentication:
        """Reads by what Slurm knows who asks."""
        config = configuration(self._commands)
        found = _SOCKET.search(config.get("AuthInfo", ""))
        return Authentication(
            munge_socket=Path(found[1]) if found else None,
            slurm_user=submission_settings(config).slurm_user,
        )

    def rights(self, user: str) -> Rights:
        """Reads what a user may see."""
        return read_rights(self._commands.read("sacctmgr", *RIGHTS, "where", f"name={user}"))

    def account(self, user: str, named: str) -> str:
        """Reads to which account a user's job goes that names one, or none: empty if to none."""
        if not named:
            words = ("show", "user", "format=DefaultAccount", "where", f"name={user}")
            return self._commands.read("sacctmgr", "-nP", *words).strip()
        where = ("where", f"user={user}", f"account={named}")
        found = self._commands.read("sacctmgr", "-nP", "show", "assoc", "format=Account", *where)
        return named if named in found.splitlines() else ""


def read_rights(text: str) -> Rights:
    r"""Reads what sacctmgr prints of one user; nothing of one whom accounting does not know.

    >>> sorted(read_rights("None|genomics,biology\n").coordinates), read_rights("").operator
    (['biology', 'genomics'], False)
    """
    lines = text.strip().splitlines()
    level, _, accounts = lines[0].partition("|") if lines else ("", "", "")
    return Rights(
        operator=level.casefold() in OPERATORS,
        coordinates=frozenset(name for name in accounts.split(",") if name),
    )
