"""By what Slurm knows users, with munge's credentials, and what they may see of others' jobs."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from shapleyprio.slurm.command_line.commands import SlurmCommands
from shapleyprio.slurm.command_line.config import configuration
from shapleyprio.slurm.port import SlurmRefusedError, SlurmUnavailableError
from shapleyprio.slurm.text.config import submission_settings

PATIENCE_SECONDS = 10
LONGEST_CREDENTIAL = 8192
"""Characters; a question and all that munge adds to it are some hundreds."""

_UID = re.compile(r"^UID:\s+(?:.*\()?([0-9]{1,10})\)?$", re.MULTILINE)
_STATUS = re.compile(r"^STATUS:\s+(.*?)(?: \([0-9]+\))?$", re.MULTILINE)
_CREDENTIAL = re.compile(r"MUNGE:[A-Za-z0-9+/=]+:")

FIRST_OF_CREDENTIAL = 8
"""From this exit code on it is the credential that munge refuses; below, it cannot do its work."""


class Munge:
    """The munge of this host, through its commands.

    Args:
        socket: of munged; None for munge's own default.
    """

    def __init__(self, socket: Path | None = None) -> None:
        self._options = [] if socket is None else [f"--socket={socket}"]

    def encode(self, payload: str) -> str:
        """Returns a credential of this process's user with the payload.

        Raises:
            SlurmUnavailableError: munge is not there or does not answer.
        """
        done = self._run("munge", payload)
        credential = done.stdout.strip()
        if done.returncode != 0 or not _CREDENTIAL.fullmatch(credential):
            raise _away("munge", done)
        return credential

    def decode(self, credential: str) -> tuple[int, str]:
        """Returns who made a credential, as a user's number, and its payload.

        munge itself refuses what is older than its time to live, and what was decoded before.

        Raises:
            SlurmRefusedError: munge refuses the credential.
            SlurmUnavailableError: munge is not there or does not answer.
        """
        if len(credential) > LONGEST_CREDENTIAL or not _CREDENTIAL.fullmatch(credential):
            raise SlurmRefusedError("this is not a munge credential")
        done = self._run("unmunge", credential, "--keys=STATUS,UID")
        if done.returncode >= FIRST_OF_CREDENTIAL:
            status = _STATUS.search(done.stdout)
            why = status[1][:200] if status else _said(done)
            raise SlurmRefusedError(f"munge refuses the credential ({why})")
        metadata, _, payload = done.stdout.partition("\n\n")
        found = _UID.search(metadata)
        if done.returncode != 0 or found is None:
            raise _away("unmunge", done)
        return int(found[1]), payload

    def _run(self, program: str, text: str, *options: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [program, *self._options, *options],
                input=text,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=PATIENCE_SECONDS,
                check=False,
            )
        except OSError as error:
            raise SlurmUnavailableError(
                f"{program} cannot be run on this host ({error.strerror}): install munge"
            ) from None
        except subprocess.TimeoutExpired:
            raise SlurmUnavailableError(
                f"{program} took longer than {PATIENCE_SECONDS} s: see whether munged runs on this"
                " host"
            ) from None


def _away(program: str, done: subprocess.CompletedProcess[str]) -> SlurmUnavailableError:
    return SlurmUnavailableError(
        f"munge does not answer ({program}: {_said(done)}): see whether munged runs on this host"
        " (`munge -n | unmunge`)"
    )


def _said(done: subprocess.CompletedProcess[str]) -> str:
    said = done.stderr.strip().partition("\n")[0] or f"exit code {done.returncode}"
    return re.sub(r"^(un)?munge: (Error: )?", "", said)[:200]


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


class CommandLineAccess:
    """What Slurm knows of users, through scontrol and sacctmgr; raises SlurmError if it is away.

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
