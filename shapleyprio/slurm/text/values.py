"""Reads numbers, times, resources and lists of hosts as Slurm writes them.

Everything else that reads Slurm's output is built of these. They raise `UnreadableError`, which
the readers of whole lines (`accounting`, `queue`, `config`) turn into `Malformed`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from math import prod
from secrets import token_urlsafe
from sys import intern
from typing import TypeVar

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from shapleyprio.slurm.port import Malformed

Value = TypeVar("Value")

SEPARATOR = "\x1f"
"""Stands between the fields of a quarantined line in the place of its delimiter."""

NO_TIME = frozenset({"Unknown", "None", "N/A"})
LAST_TIME = 2**32 - 3  # beyond it lie Slurm's words for "infinite" and "no value"
LARGEST_NUMBER = 2**53
LARGEST_ID = 2**32 - 1
LARGEST_HOST_LIST = 200_000
LONGEST_ASIDE = 8192
"""Characters of a malformed line that are kept."""

_INTEGER = re.compile(r"-?[0-9]{1,19}")
_DURATION = re.compile(r"(?:(?:([0-9]{1,7})-)?([0-9]{1,6}):)?([0-9]{1,2}):([0-9]{2})(?:\.[0-9]+)?")
_AMOUNT = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,9})?)([KMGTPE]?)")
_POWER = {unit: 1024**power for power, unit in enumerate(["", "K", "M", "G", "T", "P", "E"])}
_HOSTS = re.compile(r"[A-Za-z0-9._\-]+(?:[A-Za-z0-9._,\-]|\[[0-9,\-]+\])*|(?:\[[0-9,\-]+\])+")
_HOST_ITEM = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
_BRACKETS = re.compile(r"\[([^\]]*)\]")


class UnreadableError(ValueError):
    """A piece of text is not what Slurm writes there; the message says why."""


def new_delimiter() -> str:
    """Returns the text that Slurm prints after each field of a line, this time.

    Where Slurm does not enforce accounts, any user's account is whatever text the user chose, line
    ends and all. Nobody can put into it what is made up only when Slurm is asked, so the pieces of
    a line that such a text broke up cannot be taken for lines of Slurm's own. It is one of nearly
    2**48, and no longer, because there is more of it in a long answer than of anything else. None
    begins with a digit, for squeue would take it for a part of the width of a field.
    """
    while (delimiter := token_urlsafe(6))[0].isdigit():
        pass
    return delimiter


def fields_of(line: str, delimiter: str, count: int) -> list[str]:
    """Cuts a line into its fields, after each of which the delimiter stands.

    Raises:
        UnreadableError: there are not as many, or the line does not end where it should.
    """
    *fields, rest = line.split(delimiter)
    if len(fields) != count:
        raise UnreadableError(f"{len(fields)} fields instead of {count}")
    if rest:
        raise UnreadableError(f"{rest[:80]!r} after the last field")
    return fields


def plain_lines(texts: Iterable[str], delimiter: str) -> Iterator[tuple[list[str], str]]:
    r"""Yields lines, and the text after each of their fields: `SEPARATOR`, where it can.

    It stays the delimiter where `SEPARATOR` is in a line: it would not be known where fields end.

    Args:
        texts: each some whole lines.
        delimiter: the text after each field there.

    >>> list(plain_lines(["1#a#", "2#b#\n3#c#"], "#")) == [
    ...     (["1\x1fa\x1f"], SEPARATOR), (["2\x1fb\x1f", "3\x1fc\x1f"], SEPARATOR)
    ... ]
    True
    >>> list(plain_lines(["1#\x1f#"], "#"))
    [(['1#\x1f#'], '#')]
    """
    for text in texts:
        if SEPARATOR not in text:  # nearly always, and far sooner done for many lines at once
            # in a long text, Python prepares the search anew for each delimiter
            yield [line.replace(delimiter, SEPARATOR) for line in text.split("\n")], SEPARATOR
            continue
        for line in text.split("\n"):
            if SEPARATOR in line:
                yield [line], delimiter
            else:
                yield [line.replace(delimiter, SEPARATOR)], SEPARATOR


def malformed_line(source: str, line: str, delimiter: str, reason: str) -> Malformed:
    """Makes the record of a line that cannot be read, the same whatever the delimiter was."""
    return Malformed(source, line.replace(delimiter, SEPARATOR)[:LONGEST_ASIDE], reason)


def whole(field: str, text: str, low: int = 0, high: int = LARGEST_NUMBER) -> int:
    """Reads a whole number between low and high."""
    if (text.isascii() and text.isdigit() and len(text) < 20) or _INTEGER.fullmatch(text):
        number = int(text)
        if low <= number <= high:
            return number
    raise UnreadableError(f"{field}: {text[:80]!r} is not a number from {low} to {high}")


def moment(field: str, text: str) -> int | None:
    """Reads a time in seconds since the epoch, None if Slurm does not know it."""
    if text in NO_TIME:
        return None
    return whole(field, text, 1, LAST_TIME)


def if_readable(read: Callable[[str, str], Value | None], field: str, text: str) -> Value | None:
    """Reads what only estimates need; None if it is not known, or not to be read.

    Users can set what Slurm cannot print: it shows a time limit of more than 365 days as
    ``INVALID``, and a begin after 2106 as it is. Their jobs count and are written all the same.
    """
    try:
        return read(field, text)
    except UnreadableError:
        return None


def known_moment(field: str, text: str) -> int:
    """Reads a time that Slurm must know."""
    second = moment(field, text)
    if second is None:
        raise UnreadableError(f"{field}: {text!r}, though it is always known")
    return second


@lru_cache(maxsize=4096)
def duration(field: str, text: str) -> int:
    """Reads ``[days-][hours:]minutes:seconds[.fraction]`` as whole seconds."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise UnreadableError(f"{field}: {text[:80]!r} is not a duration")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


@lru_cache(maxsize=4096)
def amount(field: str, text: str, *, mebibytes: bool = False) -> int:
    """Reads an amount such as ``4``, ``4.5`` or ``16G``, rounded down.

    Args:
        field: for the error message.
        text: the amount.
        mebibytes: it is memory: a unit counts bytes, and the result is in MiB as is a plain number.
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise UnreadableError(f"{field}: {text[:80]!r} is not an amount")
    digits, unit = match.groups()
    whole_part, _, fraction = digits.partition(".")
    scaled = int(whole_part + fraction) * _POWER[unit]
    if mebibytes and unit:
        scaled //= _POWER["M"]
    number: int = scaled // 10 ** len(fraction)
    if number > LARGEST_NUMBER:
        raise UnreadableError(f"{field}: {text!r} is too much")
    return number


def tres_of(field: str, text: str, name: str) -> int | None:
    """Reads one resource from ``cpu=4,mem=16G,gres/gpu=2``, None if it is not listed."""
    return _tres_items(field, text).get(name)


def tres(field: str, text: str) -> dict[str, int]:
    """Reads all resources of ``cpu=4,mem=16G,gres/gpu=2``; memory counts in MiB."""
    return dict(_tres_items(field, text))


@lru_cache(maxsize=4096)
def _tres_items(field: str, text: str) -> Mapping[str, int]:
    items: dict[str, int] = {}
    for item in text.split(",") if text not in {"", "(null)"} else ():
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise UnreadableError(f"{field}: {item[:80]!r} is not NAME=AMOUNT")
        items[intern(name)] = amount(field, value, mebibytes=name == "mem")
    return items


@lru_cache(maxsize=4096)
def hosts(field: str, text: str) -> tuple[str, ...]:
    """Reads a list of hosts such as ``a[1-3],b7`` into their names, sorted by name and number."""
    if _HOSTS.fullmatch(text) is None:
        raise UnreadableError(f"{field}: {text[:80]!r} is not a list of hosts")
    if "[" not in text and "," not in text:
        return (intern(text),)
    if host_count(text) > LARGEST_HOST_LIST:
        raise UnreadableError(f"{field}: {text[:80]!r} is more hosts than a cluster has")
    try:
        return tuple(intern(str(name)) for name in NodeSet(text, resolver=RESOLVER_NOGROUP))
    except (NodeSetException, AssertionError) as error:  # it asserts its own bounds
        raise UnreadableError(f"{field}: {text[:80]!r}: {error}") from error


def host_count(text: str) -> int:
    """Counts the hosts that a list may hold, without writing them out."""
    return sum(
        prod(length_of_ranges(inner.group(1)) for inner in _BRACKETS.finditer(item.group()))
        for item in _HOST_ITEM.finditer(text)
    )


def length_of_ranges(text: str) -> int:
    """Counts the numbers in ``0-3,6``; what is no such list counts as more than there can be."""
    return sum(_span(part) for part in text.split(","))


def _span(part: str) -> int:
    low, _, high = part.partition("-")
    if not (low.isdecimal() and (high or low).isdecimal() and len(part) < 40):
        return LARGEST_HOST_LIST + 1
    return max(int(high or low) - int(low), 0) + 1
