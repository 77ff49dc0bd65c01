"""What a misspelt command was most likely meant to be."""

from __future__ import annotations

from difflib import get_close_matches

import click


def suggest(group: click.Group, ctx: click.Context, args: list[str]) -> None:
    """Refuses a command that is not there but resembles one that is.

    Raises:
        click.UsageError: it says which.
    """
    if args and not ctx.resilient_parsing and group.get_command(ctx, args[0]) is None:
        near = get_close_matches(args[0], group.list_commands(ctx), n=1)
        if near:
            ctx.fail(f"No such command {args[0]!r}; did you mean {near[0]!r}?")
