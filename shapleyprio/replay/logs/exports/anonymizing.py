"""Replaces all names in rows of an export, the same ones everywhere, and moves times if asked.

A store sorts by names, so that the order of what was replaced would give away the names to whoever
has a list of them. Rows, and what stands in no order within one, are thus sorted by the new names.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from shapleyprio.common.errors import ReplayError
from shapleyprio.common.wording import DAY
from shapleyprio.fairness.pool import cluster_behind, ledger_of
from shapleyprio.fairness.tenure import LEFT_OUT, NOBODY
from shapleyprio.replay.logs.exports.records import (
    OF_KIND,
    ExportedAllocation,
    ExportRecord,
    FreeText,
    JobNumber,
    Named,
    PointInTime,
    Row,
    Unordered,
)

KEY_BYTES = 32
SHORTEST_KEY = 16

WEEK = 7 * DAY
MOST_WEEKS = 1000

LEFT = (
    "how many users, accounts, nodes, partitions and organizations there are, which are the same, "
    "and in which order organizations are configured",
    "how many processors jobs held on how many nodes, how long they were allowed to and did "
    "execute, and how they ended",
    "how large nodes are, which partitions they share, and who owned them since when",
    "the rule and the channel, pauses, which jobs were put first, the horizon, the weight, and "
    "Slurm's release",
)
"""What an anonymized export still says, in words."""

LEFT_OF_TIME = "when jobs were submitted, released, started and ended, to the second"
LEFT_OF_SHIFTED_TIME = "weekday and time of day of all that happened, and the time between"

Changed = TypeVar("Changed", bound=ExportRecord)
Change = Callable[[Any, Any], Any]
"""Returns a value as it is to be written, given the record that it stands in."""

_DIGITS = re.compile(r"\d+")


def key_in(file: Path | None) -> bytes:
    """Returns the key of an anonymization; a file that is missing is made, for its owner alone.

    Args:
        file: None for a random key that is not kept.

    Raises:
        ReplayError: the file cannot be used.
    """
    new = secrets.token_hex(KEY_BYTES).encode()
    if file is None:
        return new
    try:
        if not file.exists():
            file.touch(mode=0o600, exist_ok=False)
            file.write_bytes(new + b"\n")
        key = file.read_bytes().strip()
    except OSError as error:
        raise ReplayError(f"{file}: cannot be used as key: {error.strerror}") from None
    if len(key) < SHORTEST_KEY:
        raise ReplayError(
            f"{file}: has {len(key)} bytes, but a key has at least {SHORTEST_KEY}; name a file "
            "that does not exist, to create one"
        )
    return key


class Anonymizer:
    """Changes records; the same name becomes the same everywhere, and with the same key always.

    Args:
        key: without which it cannot be found out whether a name is someone's.
        shift: whether times are moved into the past, by whole weeks that the key chooses.
    """

    def __init__(self, key: bytes, *, shift: bool = False) -> None:
        self._key = key
        self._names: dict[tuple[str, str], str] = {}
        self._weeks = 1 + self._number("weeks", MOST_WEEKS) if shift else 0
        self._jobs = self._number("jobs", 2**30)
        self._changes: dict[type[ExportRecord], Mapping[str, Change]] = {}

    @property
    def is_shifting(self) -> bool:
        """Whether times are moved."""
        return self._weeks > 0

    @property
    def left(self) -> tuple[str, ...]:
        """Says what is left."""
        return (LEFT_OF_SHIFTED_TIME if self.is_shifting else LEFT_OF_TIME, *LEFT)

    def anonymized(self, record: Changed) -> Changed:
        """Returns a record without what names anybody or anything."""
        kind = type(record)
        if kind not in self._changes:
            self._changes[kind] = dict(self._changes_of(kind))
        changed = {
            name: change(getattr(record, name), record)
            for name, change in self._changes[kind].items()
        }
        return record.model_copy(update=changed)

    def all_anonymized(self, rows: Iterable[Row]) -> list[Row]:
        """Returns rows of one kind changed likewise, in an order that does not tell the old one."""
        return sorted(map(self.anonymized, rows), key=_place)

    def name(self, kind: str, name: str) -> str:
        """Returns the replacement of a name; those of no organization and what is left out stay.

        Args:
            kind: as in `Named`; names of different kinds have nothing in common.
            name: to be replaced.
        """
        if name in ("", NOBODY, LEFT_OUT):
            return name
        if (kind, name) not in self._names:
            self._names[kind, name] = self._replaced(kind, name)
        return self._names[kind, name]

    def second(self, second: int) -> int:
        """Returns a moment moved; what was always so stays so."""
        return max(second - self._weeks * WEEK, 0)

    def _replaced(self, kind: str, name: str) -> str:
        if kind == "ledger":
            cluster = cluster_behind(name)
            pool = name.removeprefix(cluster).removeprefix("/")
            return ledger_of(self.name("cluster", cluster), self.name("pool", pool))
        if kind == "job":  # 33, 33_4 and 120+1
            number = _DIGITS.match(name)
            return "" if number is None else str(int(number[0]) + self._jobs) + _of_job(name)
        return f"{kind}-{self._digest(kind, name).hex()[:12]}"

    def _digest(self, kind: str, name: str) -> bytes:
        return hmac.digest(self._key, f"{kind}\0{name}".encode(), "sha256")

    def _number(self, what: str, below: int) -> int:
        return int.from_bytes(self._digest("", what)) % below

    def _changes_of(self, kind: type[ExportRecord]) -> Any:
        for name, hint in get_type_hints(kind, include_extras=True).items():
            change = self._change(hint)
            if change is not None and name in kind.model_fields:
                yield name, change

    def _change(self, hint: Any) -> Change | None:
        """Returns how values of a type are changed; None if they stay as they are."""
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            change = self._marked(arguments[1:]) or self._change(arguments[0])
            sorts = any(isinstance(mark, Unordered) for mark in arguments[1:])
            return partial(_in_new_order, change) if change and sorts else change
        if origin in (Union, UnionType):
            (change,) = (self._change(one) for one in arguments if one is not type(None))
            return change and partial(_unless_none, change)
        if origin is tuple and arguments[-1] is Ellipsis:
            change = self._change(arguments[0])
            return change and partial(_each, change)
        if origin is tuple:
            return partial(_in_turn, [self._change(one) or _kept for one in arguments])
        if origin is dict:
            return partial(_of_pairs, *(self._change(one) or _kept for one in arguments))
        if isinstance(hint, type) and issubclass(hint, ExportRecord):
            return lambda value, _: self.anonymized(value)
        return None

    def _marked(self, marks: tuple[Any, ...]) -> Change | None:
        for mark in marks:
            match mark:
                case Named(kind) if kind == OF_KIND:
                    return lambda value, of: self.name(getattr(of, OF_KIND), value)
                case Named(kind):
                    return lambda value, _: self.name(kind, value)
                case FreeText():
                    return lambda *_: ""
                case PointInTime():
                    return lambda value, _: self.second(value)
                case JobNumber():
                    return lambda value, _: value + self._jobs
        return None


def _place(row: Row) -> tuple[Any, ...]:
    """Returns what a row is sorted by; the tenures of one name stay in their order."""
    named = (getattr(row, name, "") for name in ("number", "kind", "name"))
    return (*named, getattr(row, "since", None) or 0, getattr(row, "organization", ""))


def _of_job(label: str) -> str:
    """Returns which task or component of a job a label means."""
    found = re.fullmatch(r"\d+([_+]\d+)?", label)
    return "" if found is None else found[1] or ""


def _kept(value: Any, _of: Any) -> Any:
    return value


def _unless_none(change: Change, value: Any, of: Any) -> Any:
    return None if value is None else change(value, of)


def _each(change: Change, values: Any, of: Any) -> Any:
    return tuple(change(value, of) for value in values)


def _in_new_order(change: Change, values: Any, of: Any) -> Any:
    changed = change(values, of)
    if isinstance(changed, dict):
        return dict(sorted(changed.items()))
    return tuple(sorted(changed, key=_place_in_row))


def _place_in_row(value: Any) -> Any:
    """Returns what a value is sorted by; of allocations those from a run's begin come first."""
    if isinstance(value, ExportedAllocation):
        return value.begin, value.organization, value.owner
    return value


def _in_turn(changes: Sequence[Change], values: Any, of: Any) -> Any:
    return tuple(change(value, of) for change, value in zip(changes, values, strict=True))


def _of_pairs(keys: Change, values: Change, pairs: Any, of: Any) -> Any:
    return {keys(key, of): values(value, of) for key, value in pairs.items()}
