"""The command line: parse, call, render. Commands are imported only when they are called."""

from __future__ import annotations

import errno
import gc
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import click

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


class InterruptibleGroup(click.Group):
    """Commands that Ctrl-C ends with one line and exit code 130, instead of click's "Aborted!".

    Attributes:
        program: what the line begins with.
    """

    program = "shapleyprio"

    def invoke(self, ctx: click.Context) -> object:
        """Runs a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo(f"{self.program}: interrupted", err=True)
            ctx.exit(INTERRUPTED)


COMMANDS = {
    "demo": "Show a whole consortium at work on a private Slurm.",
    "init": "Write a configuration drawn from the live cluster.",
    "check": "Compare the configuration with the live cluster.",
    "daemon": "Observe, rank and push until stopped.",
    "status": "Show every organization's standing.",
    "explain": "Explain why jobs have their priority.",
    "changes": "Show what changed, and when.",
    "history": "Show past standings, cycles or writes.",
    "ownership": "Show or correct who owned what since when.",
    "first": "Put a pending job first, by an exception.",
    "pause": "Stop steering for a while; accounting continues.",
    "resume": "Steer again after a pause.",
    "rollback": "Restore every priority that the daemon changed.",
    "export": "Export jobs, nodes, accounts and owners into one file.",
    "replay": "Replay a log under each policy, and show what is fair.",
    "audit": "Show how fair a recorded schedule was.",
    "report": "Report how fair a month was, for decision makers.",
    "experiment": "Compare policies over many windows of logs, and sum up.",
    "trial": "Run a log's jobs through a private real Slurm.",
    "trials": "Run several trials, and show them in one table.",
    "rehearse": "Rehearse days of your cluster on a private real Slurm.",
    "db": "Upgrade the store or look at it.",
    "files": "List or copy the files that come with shapleyprio.",
    "bench": "Measure speed and memory on this machine.",
}
"""Command -> its line in the help text. It lives in the module of the same name here, ..."""

LABORATORY = frozenset({"demo", "experiment", "trial", "trials", "rehearse", "bench"})
"""... but these in `shapleyprio.lab.cli`, which not all installations have."""


class Commands(InterruptibleGroup):
    """Finds commands by name, and turns known errors into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Returns the names of all commands, in the order in which one meets them."""
        return [name for name in COMMANDS if _has(name)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports a command."""
        if cmd_name not in COMMANDS or (ctx.resilient_parsing and not _has(cmd_name)):
            return None
        package = "shapleyprio.lab.cli" if cmd_name in LABORATORY else "shapleyprio.cli"
        if not _has(cmd_name):
            raise click.UsageError(f"{cmd_name} needs the package shapleyprio-replay")
        module = import_module(f"{package}.{cmd_name}")
        if not gc.isenabled():  # `main` of __main__ has turned it off
            gc.freeze()
            gc.enable()
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds a command, and which word is the file of its --json."""
        from shapleyprio.cli.common import suggest

        suggest(self, ctx, args)
        name, command, words = super().resolve_command(ctx, args)
        if command is not None and name is not None:
            from shapleyprio.cli.options.json_output import with_json_file_marked

            words = with_json_file_marked(ctx, command, words)
        return name, command, words

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program, whatever standard output is."""
        write_in_any_encoding()
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            if not is_full(error):
                raise
            give_up_output()
            line = f"standard output cannot be written ({error.strerror}); free some space"
            click.echo(f"shapleyprio: {line}", err=True)
            sys.exit(2)

    def invoke(self, ctx: click.Context) -> object:
        """Runs a command; errors that have an exit code end it with one line."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here an error can still be one line
        except click.exceptions.Exit:
            raise
        except Exception as error:
            from shapleyprio.cli.common import exit_code_of
            from shapleyprio.cli.options.refusals import message_of
            from shapleyprio.common.wording import visible

            code = exit_code_of(error)
            if code is None:
                raise
            for line in message_of(error, ctx.invoked_subcommand).splitlines():
                click.echo(f"shapleyprio: {visible(line)}", err=True)
            ctx.exit(code)
        return result


def _has(command: str) -> bool:
    """Returns whether a command is installed."""
    return command not in LABORATORY or find_spec("shapleyprio.lab") is not None


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(None, "-V", "--version", package_name="shapleyprio", prog_name="shapleyprio")
def main() -> None:
    """Fair priorities for Slurm clusters that several organizations pay for together.

    Exit codes: 0 done; 1 warnings (check); 2 bad configuration or usage; 3 Slurm is away or
    refuses, or check found errors; 4 the store cannot be used; 5 invalid records or
    clock; 6 another process steers the cluster; 130 interrupted by Ctrl-C.
    """


if __name__ == "__main__":
    sys.exit(main())

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""What a write into a full or broken file ends with."""


def write_in_any_encoding() -> None:
    """Lets letters that the encoding of the terminal lacks be written as their numbers."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def is_full(error: OSError) -> bool:
    """Returns whether standard output could not be written; other files are named in errors."""
    return error.errno in FULL and error.filename is None


def give_up_output() -> None:
    """Lets what standard output still holds go nowhere, so that the end of Python is silent."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
