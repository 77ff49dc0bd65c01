"""What Slurm's commands complain of: which daemon is away, and the error to raise."""

from __future__ import annotations

import re

from shapleyprio.slurm.port import SlurmError, SlurmRefusedError, SlurmUnavailableError

LONGEST_CAUSE = 200

_ACCOUNTING_COMMANDS = frozenset({"sacct", "sacctmgr"})
_MUNGE = re.compile(
    r"munged?\b.*(encode|decode|socket|failed)|invalid (munge|authentication) cred"
    r"|protocol authentication error",
    re.IGNORECASE,
)
_DATABASE = re.compile(r"unable to connect to database", re.IGNORECASE)
_NO_ANSWER = re.compile(
    r"unable to contact|connect failure|connection (refused|reset|timed out)|timed out"
    r"|unexpected message received|zero bytes were transmitted|problem talking to the database"
    r"|sending persistinit|unable to establish|standby mode|no route to host"
    r"|network is unreachable|resource temporarily unavailable|unable to resolve"
    r"|name or service not known|communication (connection|shutdown) failure"
    r"|unexpected missing socket|message (send|receive) failure|insane message length"
    r"|header lengths are longer",
    re.IGNORECASE,
)
_HINT = re.compile(r"(try|use) [\"'].*\b(help|usage|modify condition)\b", re.IGNORECASE)
_REMEDIES = {
    "munge": "see whether munged runs on this host (`munge -n | unmunge`)",
    "slurmdbd": "see whether slurmdbd runs, and its log",
    "slurmdbd's database": "see whether the database server runs, and slurmdbd's log",
    "slurmctld": "see `scontrol ping` and slurmctld's log",
}


def failure(program: str, said: str, code: int) -> SlurmError:
    """Returns the error to raise when a command failed with this output."""
    daemon = daemon_away(program, said)
    if daemon is None:
        return SlurmRefusedError(f"Slurm refused: {_short(program, cause(said, code))}")
    telling = [line for line in said.split("\n") if daemon_away(program, line) == daemon]
    return no_answer(daemon, _short(program, cause("\n".join(telling) or said, code)))


def cause(said: str, code: int) -> str:
    r"""Returns the line in which a command names what was wrong; it may add how to ask for help.

    >>> cause("squeue: unrecognized option '--x'\nTry \"squeue --help\" for more\n", 1)
    "squeue: unrecognized option '--x'"
    """
    lines = [line.strip() for line in said.split("\n") if line.strip()]
    telling = [line for line in lines if _HINT.match(line) is None] or lines
    return telling[0][:LONGEST_CAUSE] if telling else f"exit code {code}"


def daemon_away(program: str, said: str) -> str | None:
    """Names the daemon that does not answer, judging by the output of a command."""
    if _MUNGE.search(said):
        return "munge"
    if _DATABASE.search(said):
        return "slurmdbd's database"
    if _NO_ANSWER.search(said):
        return daemon_of(program)
    return None


def daemon_of(program: str) -> str:
    """Names the daemon that a command asks."""
    return "slurmdbd" if program in _ACCOUNTING_COMMANDS else "slurmctld"


def no_answer(daemon: str, detail: str) -> SlurmUnavailableError:
    """Returns the error to raise when a daemon does not answer."""
    return SlurmUnavailableError(f"{daemon} does not answer ({detail}): {_REMEDIES[daemon]}")


def _short(program: str, line: str) -> str:
    own = line.removeprefix(f"{program}: ").removeprefix("error: ")
    return f"{program}: {own}"
