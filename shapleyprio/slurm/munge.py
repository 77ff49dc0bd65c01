"""Credentials of munge, by which Slurm knows who asks, and so does the daemon."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from shapleyprio.slurm.port import SlurmRefusedError, SlurmUnavailableError

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
