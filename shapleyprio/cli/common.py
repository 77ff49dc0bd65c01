"""What commands share: exit codes, signals, groups of commands, and hints at misspelt ones."""

from __future__ import annotations

import errno
import os
import pwd
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from types import FrameType
from typing import Any

import click

from shapleyprio.common.errors import KnownError


def suggest(group: click.Group, ctx: click.Context, args: list[str]) -> None:
    """Refuses a command that is not there but resembles one that is.

    Raises:
        click.UsageError: it says which.
    """
    if args and not ctx.resilient_parsing and group.get_command(ctx, args[0]) is None:
        near = get_close_matches(args[0], group.list_commands(ctx), n=1)
        if near:
            ctx.fail(f"No such command {args[0]!r}; did you mean {near[0]!r}?")


OF_A_FILE = {errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR}
"""What may be wrong with a file that was named, before anything is read of it."""

NO_LOGIN = 2**32 - 1
"""What the kernel has as the login of a process that nobody's login began."""


def exit_code_of(error: Exception) -> int | None:
    """Returns the exit code of a known error, None for a defect."""
    if isinstance(error, KnownError):
        return error.exit_code
    if isinstance(error, OSError) and error.filename is not None and error.errno in OF_A_FILE:
        return 2
    return 2 if isinstance(error, MemoryError) else None


def user() -> str:
    """Names who runs this, for the record: behind runuser or su also who logged in."""
    name = _name_of(os.getuid())
    behind = os.environ.get("SUDO_USER")
    if behind:
        return f"{name}, by sudo of {behind}"
    with suppress(OSError, ValueError):
        login = int(Path("/proc/self/loginuid").read_text(encoding="ascii"))
        if login not in {NO_LOGIN, os.getuid()}:
            return f"{name}, logged in as {_name_of(login)}"
    return name


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def alone(values: list[Any]) -> Any:
    """Returns as JSON what each ledger of a cluster has: of one alone without a list."""
    return values[0] if len(values) == 1 else {"pools": values}


UNWINDING_SECONDS = 5
"""For so long a process may close what it opened after a signal."""


@contextmanager
def termination_unwinds(patience: float = UNWINDING_SECONDS) -> Iterator[None]:
    """Lets SIGTERM and SIGHUP end the process as an error would: everything opened is closed.

    Where that hangs, in a library or at a file that gives nothing, the process is ended some
    seconds later; so after Ctrl-C.

    Args:
        patience: how many seconds later.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    signals = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in signals}
    for number in signals:
        if before[number] is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, leave)
    try:
        with _ended_in_time((*signals, signal.SIGINT), patience):
            yield
    finally:
        for number in signals:
            signal.signal(number, before[number])


@contextmanager
def _ended_in_time(signals: tuple[signal.Signals, ...], patience: float) -> Iterator[None]:
    """Ends the process if it still runs some seconds after a signal that should end it.

    Python runs handlers in the main thread only, and only between two of its own instructions; it
    writes the signals' numbers into the pipe whatever that thread does.
    """
    come, noticed = os.pipe()
    os.set_blocking(noticed, False)
    survived = threading.Event()

    def watch() -> None:
        while number := os.read(come, 1):
            if number[0] in signals and not survived.wait(patience):
                os.write(2, b"shapleyprio: something hangs; ended without cleaning up\n")
                os._exit(128 + number[0])
        os.close(come)

    before = signal.set_wakeup_fd(noticed, warn_on_full_buffer=False)
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
        survived.set()
    except Exception:
        survived.set()
        raise
    finally:
        signal.set_wakeup_fd(before)
        os.close(noticed)


WHOLE = 1000
"""Letters of a command's first sentence that are shown; click cuts it where a line ends."""


class GroupOfCommands(click.Group):
    """Commands of a command, such as those of `shapleyprio db`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds a command."""
        suggest(self, ctx, args)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands, each with its first sentence."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [
            (name, command.get_short_help_str(WHOLE))
            for name, command in found
            if command is not None
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
