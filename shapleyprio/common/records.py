"""Records of which a cycle makes some hundred thousand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

Kind = TypeVar("Kind")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(kind: type[Kind]) -> type[Kind]:
    """Makes a class what ``@dataclass(frozen=True, slots=True, kw_only=True)`` makes it.

    That nobody changes a record, mypy alone sees to: to see to it when the program runs takes four
    times as long to make one.
    """
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(kind)
