"""The command line: parse, call, render. Commands are imported only when they are called."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import version
from typing import Any

import click

from shapleyprio.cli.interrupts import InterruptibleGroup

COMMANDS = {
    "demo": "Show a whole consortium at work on a private Slurm.",
    "init": "Write a configuration drawn from the live cluster.",
    "check": "Hold the configuration against the live cluster.",
    "daemon": "Observe, rank and push until stopped.",
    "status": "Show every organization's standing.",
    "explain": "Explain why jobs have their priority.",
    "history": "Show past standings, cycles or writes.",
    "ownership": "Show or correct who owned what since when.",
    "rollback": "Put every priority back as it was found.",
    "replay": "Show what each policy makes of a log, and what is fair.",
    "audit": "Show how fair a recorded schedule was.",
    "report": "Write how fair a month was, for those who decide.",
    "experiment": "Compare policies over many windows of logs, and sum up.",
    "trial": "Run a log's jobs through a private real Slurm.",
    "trials": "Run several trials, and show them in one table.",
    "db": "Upgrade the store or look at it.",
    "files": "List or copy the files that come with shapleyprio.",
    "bench": "Measure speed and memory on this machine.",
}
"""Command, which lives in the module of the same name here -> its line in the help text."""


class Commands(InterruptibleGroup):
    """Finds commands by name, and turns known errors into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Returns the names of all commands, in the order in which one meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Imports a command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"shapleyprio.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Lists the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds a command, and which word is the file of its --json."""
        name, command, words = super().resolve_command(ctx, args)
        if command is not None and name is not None:
            from shapleyprio.cli.json_output import with_json_file_marked

            words = with_json_file_marked(ctx, command, words)
        return name, command, words

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program, whatever standard output is."""
        from shapleyprio.cli.streams import give_up_output, is_full, write_in_any_encoding

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
            from shapleyprio.cli.remedies import message_of
            from shapleyprio.wording import visible

            code = exit_code_of(error)
            if code is None:
                raise
            for line in message_of(error, ctx.invoked_subcommand).splitlines():
                click.echo(f"shapleyprio: {visible(line)}", err=True)
            ctx.exit(code)
        return result


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("shapleyprio"), "-V", "--version", prog_name="shapleyprio")
def main() -> None:
    """Fair priorities for Slurm clusters that several organizations pay for together.

    Exit codes: 0 done; 1 warnings (check); 2 bad configuration or usage; 3 Slurm is away or
    refuses, or check found errors; 4 the store cannot be used; 5 records or the clock are not
    as they must be; 6 another process steers the cluster; 130 interrupted by Ctrl-C.
    """


if __name__ == "__main__":
    sys.exit(main())
