"""What the daemon and its workers tell each other: records as lines of JSON, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Self, get_args, get_origin, get_type_hints

Read = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMessage:
    """A request to a worker, or its answer: a line of JSON."""

    def as_json(self) -> str:
        """Returns one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads what `as_json` wrote."""
        kind: Any = cls
        message: Self = _reader(kind)(json.loads(text))
        return message


def _as_it_is(value: Any) -> Any:
    return value


@cache
def _reader(kind: Any) -> Read:
    """Returns what makes a value of a type of what JSON has of it."""
    parts = get_args(kind)
    if isinstance(kind, UnionType):
        read = _reader(next(part for part in parts if part is not NoneType))
        return lambda value: None if value is None else read(value)
    if get_origin(kind) is Mapping:
        key, read = int if parts[0] is int else _as_it_is, _reader(parts[1])
        return lambda value: {key(name): read(found) for name, found in value.items()}
    if get_origin(kind) is tuple:
        return _tuple_reader(parts)
    if is_dataclass(kind):
        return _record_reader(kind)
    if issubclass(kind, tuple):
        read = _tuple_reader(tuple(get_type_hints(kind).values()))
        return lambda value: kind(*read(value))
    return kind if issubclass(kind, StrEnum) else _as_it_is


def _tuple_reader(parts: tuple[Any, ...]) -> Read:
    if parts[-1] is ...:
        read = _reader(parts[0])
        return lambda value: tuple(map(read, value))
    readers = list(map(_reader, parts))
    return lambda value: tuple(read(found) for read, found in zip(readers, value, strict=True))


def _record_reader(kind: Any) -> Read:
    readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}
    other = {name: read for name, read in readers.items() if read is not _as_it_is}
    if not other:
        return lambda value: kind(**value)
    return lambda value: kind(
        **{**value, **{name: read(value[name]) for name, read in other.items()}}
    )
