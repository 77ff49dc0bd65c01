"""Ctrl-C, handled once for all commands of a program."""

from __future__ import annotations

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
