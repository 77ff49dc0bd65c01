"""Options whose text stands for something else, such as a date or a duration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """The type of an option that a function reads.

    Args:
        name: stands for the value in help texts.
        parse: returns what a text stands for; raises ValueError, with one line that says what is
            wrong and what could be written.
    """

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns what the text stands for; a default that is no text stands for itself."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None
