"""Groups of commands whose help shows whole sentences."""

from __future__ import annotations

import click

WHOLE = 1000
"""Letters of a command's first sentence that are shown; click cuts it where a line ends."""


class GroupOfCommands(click.Group):
    """Commands of a command, such as those of `shapleyprio db`."""

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
