"""The parts that all tables of the configuration file have in common."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class ConfigSection(BaseModel):
    """A table of the file: frozen, and keys that it does not know are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


def key(default: Any, description: str, example: Any = None) -> Any:
    """Makes a key of the file: its default as one would write it there (... if required).

    The default is also the example, unless another one says more.
    """
    return Field(
        default, description=description, examples=[default if example is None else example]
    )


def section(type_: type[ConfigSection], description: str) -> Any:
    """Makes a table of the file that may be left out."""
    return Field(default_factory=type_, description=description)
