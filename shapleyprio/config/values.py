"""The kinds of values a configuration key can have: how they read, and what they are called."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from pydantic import BeforeValidator, Field, Strict
from pytimeparse2 import parse as parse_duration

from shapleyprio.common.databases import DatabaseUrlError, database_url
from shapleyprio.common.wording import DAY, visible
from shapleyprio.fairness.rules import RULES
from shapleyprio.slurm.adapters import ADAPTERS
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.text.values import host_count

MOST_HOSTS = 100_000
"""More than Slurm takes in one list; a slip of the finger must not fill the memory."""

LONGEST_NAME = 255
LONGEST_ORGANIZATION_NAME = 64
LONGEST_LEDGER_NAME = 64
"""Characters that the store has room for, on every database."""

LARGEST_INFLUENCE = 1_000_000_000
"""Points that surely fit into Slurm's 32 bit priorities."""

LARGEST_SYSTEM = 2**31 - 1
"""More processors than any system has."""

LONGEST_DURATION = 100 * 365 * DAY
LONGEST_TIMEOUT = DAY
"""Seconds; the kernel counts those that somebody waits for a process in 31 bits of milliseconds."""

SHORTEST_LEASE, LONGEST_LEASE = 2, DAY
"""Seconds; a process that is only slow is not to be taken for dead."""

LEAST_MEMORY = 2**30
"""Bytes of address space; the packages that replay take two thirds of it for themselves."""

AUTO = "auto"

_BYTES = {"M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True, slots=True)
class Kind:
    """What a value is called in messages and in the reference, such as ``a duration``."""

    words: str


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError  # noqa: TRY004  # what pydantic takes for "not valid"
    if not value.strip():
        raise ValueError("it is empty")
    if value != value.strip() or not value.isprintable():
        raise ValueError("no blanks around it, no control characters")
    return value


def _name(value: object, *, longest: int = LONGEST_NAME) -> str:
    name = _text(value)
    if len(name) > longest:
        raise ValueError(f"at most {longest} characters")
    return name


def _organization_name(value: object) -> str:
    name = _name(value, longest=LONGEST_ORGANIZATION_NAME)
    if visible(name) != name:
        raise ValueError(f"no letters that look like others or cannot be seen: {visible(name)}")
    return name


def _optional_name(value: object) -> str | None:
    return None if value is None else _name(value)


def _duration(value: object) -> int:
    text = _text(value)
    seconds = parse_duration(text)
    if not seconds:
        raise ValueError
    if text.isdigit():
        raise ValueError("give the unit")
    if seconds < 0 or seconds != int(seconds):
        raise ValueError("whole seconds above 0")
    if seconds > LONGEST_DURATION:
        raise ValueError("no longer than 100 years")
    return int(seconds)


def _timeout(value: object) -> int:
    seconds = _duration(value)
    if seconds > LONGEST_TIMEOUT:
        raise ValueError("no longer than 1d")
    return seconds


def _lease(value: object) -> int:
    seconds = _duration(value)
    if not SHORTEST_LEASE <= seconds <= LONGEST_LEASE:
        raise ValueError("between 2s and 1d")
    return seconds


def _duration_or_unlimited(value: object) -> int | None:
    return None if value == "unlimited" else _duration(value)


def _duration_or_off(value: object) -> int | None:
    if value == "off" or (value == 0 and not isinstance(value, bool)):
        return None
    return _duration(value)


def _own_duration_or_off(value: object) -> int | None:
    return None if value is None else _duration_or_off(value) or 0


def _memory(value: object) -> int:
    text = _text(value)
    found = re.fullmatch(r"([1-9][0-9]{0,5})([MGT])", text)
    if found is None:
        raise ValueError
    size = int(found[1]) * _BYTES[found[2]]
    if size < LEAST_MEMORY:
        raise ValueError("at least 1G")
    return size


def _instant(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, str):
        value = date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time(), UTC)
    if not isinstance(value, datetime):
        raise ValueError  # noqa: TRY004  # what pydantic takes for "not valid"
    if value.tzinfo is None:
        raise ValueError("the time zone is missing")
    return int(value.timestamp())


def _weight(value: object) -> str:
    text = _text(value)
    if text not in {"cpus", "billing"} and not re.fullmatch(r"gres/[\w.-]+(:[\w.-]+)?", text):
        raise ValueError
    return text


def _optional_weight(value: object) -> str | None:
    return None if value is None else _weight(value)


def _influence(value: object) -> int | None:
    if value == "strict":
        return None
    points = _whole(value)
    if not 0 < points <= LARGEST_INFLUENCE:
        raise ValueError(f"from 1 to {LARGEST_INFLUENCE}")
    return points


def _processors(value: object) -> int | None:
    if value is None:
        return None
    count = _whole(value)
    if not 0 <= count <= LARGEST_SYSTEM:
        raise ValueError(f"from 0 to {LARGEST_SYSTEM}")
    return count


def _one_of(names: Container[str]) -> Callable[[object], str]:
    def known(value: object) -> str:
        if isinstance(value, str) and value in names:
            return value
        raise ValueError

    return known


def _words(values: Iterable[str]) -> str:
    """Lists the values in words: ``"a", "b" or "c"``."""
    *most, last = (f'"{value}"' for value in values)
    return f"{', '.join(most)} or {last}" if most else last


def _absolute_path(value: object) -> Path | None:
    if value is None:
        return None
    path = Path(_text(value))
    if not path.is_absolute():
        raise ValueError
    return path


def _socket(value: object) -> Path | str | None:
    if value == "off":
        return None
    return AUTO if value == AUTO else _absolute_path(_text(value))


def _url(value: object) -> str:
    text = _text(value)
    try:
        url = database_url(text)
    except DatabaseUrlError as error:
        raise ValueError(str(error)) from None
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_absolute():
        raise ValueError("the file's path must be absolute: sqlite:////its/path, with four slashes")
    return text


def _address(value: object) -> Address | None:
    text = _text(value)
    if text == "off":
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def _each(value: object, read: Callable[[object], str]) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError  # noqa: TRY004  # what pydantic takes for "not valid"
    return tuple(map(read, value))


def _names(value: object) -> tuple[str, ...]:
    return _each(value, _name)


def _slurm_name(value: object) -> str:
    name = _name(value)
    if "," in name:
        raise ValueError(f"{visible(name)!r} has a comma; write each name by itself")
    return name


def _slurm_names(value: object) -> tuple[str, ...]:
    return _each(value, _slurm_name)


def _log_names(value: object) -> tuple[str, ...]:
    return _each(value, lambda name: str(_whole(name)) if isinstance(name, int) else _name(name))


def _host_lists(value: object) -> tuple[str, ...]:
    texts = _each(value, _text)
    for text in texts:
        host_list(text)
    return texts


def socket_path(value: Path | str | None) -> Path | None:
    """Returns where the socket of `service.socket` is; None for nowhere.

    Args:
        value: of the key. `AUTO` is a file in the directory that systemd makes for the unit
            (RUNTIME_DIRECTORY), and nowhere else.
    """
    if value != AUTO:
        return None if value is None else Path(value)
    directory = os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    return Path(directory, "socket") if directory else None


def host_list(text: str) -> NodeSet:
    """Returns the nodes that a host list such as ``n[1-3],m7`` names.

    Raises:
        ValueError: it is none.
    """
    if set(text) & set("@*? "):
        raise ValueError("no groups, wildcards or blanks")
    if host_count(re.sub(r"/[0-9]+", "", text)) > MOST_HOSTS:  # steps leave hosts out
        raise ValueError(f"more than {MOST_HOSTS:,} hosts")
    try:
        return NodeSet(text, resolver=RESOLVER_NOGROUP)
    except (NodeSetException, AssertionError) as error:  # it asserts its own bounds
        raise ValueError(str(error)) from None


OrganizationName = Annotated[str, BeforeValidator(_organization_name), Kind("a name")]
OptionalText = Annotated[str | None, BeforeValidator(_optional_name), Kind("a name")]
Count = Annotated[int, Field(strict=True, gt=0), Kind("a positive whole number")]
Processors = Annotated[int | None, BeforeValidator(_processors), Kind("a whole number from 0 on")]
Switch = Annotated[bool, Strict(), Kind("true or false")]
Seconds = Annotated[int, BeforeValidator(_duration), Kind("a duration")]
Timeout = Annotated[int, BeforeValidator(_timeout), Kind("a duration up to 1d")]
LeaseSeconds = Annotated[int, BeforeValidator(_lease), Kind("a duration from 2s to 1d")]
SecondsOrUnlimited = Annotated[
    int | None, BeforeValidator(_duration_or_unlimited), Kind('a duration or "unlimited"')
]
SecondsOrOff = Annotated[
    int | None, BeforeValidator(_duration_or_off), Kind('a duration, or 0 or "off"')
]
OwnSecondsOrOff = Annotated[
    int | None, BeforeValidator(_own_duration_or_off), Kind('a duration, or 0 or "off"')
]
Memory = Annotated[int, BeforeValidator(_memory), Kind("a size in M, G or T, at least 1G")]
Instant = Annotated[
    int | None, BeforeValidator(_instant), Kind("a date, or a date and time with its zone")
]
_WEIGHT = Kind('"cpus", "billing" or a generic resource like "gres/gpu"')
Weight = Annotated[str, BeforeValidator(_weight), _WEIGHT]
OptionalWeight = Annotated[str | None, BeforeValidator(_optional_weight), _WEIGHT]
Influence = Annotated[
    int | None, BeforeValidator(_influence), Kind('"strict" or a positive whole number')
]
Rule = Annotated[str, BeforeValidator(_one_of(RULES)), Kind(_words(RULES))]
AdapterName = Annotated[str, BeforeValidator(_one_of(ADAPTERS)), Kind(_words(ADAPTERS))]
ChannelName = Annotated[str, BeforeValidator(_one_of(CHANNELS)), Kind(_words(CHANNELS))]
LogFormat = Annotated[Literal["console", "json"], Kind('"console" or "json"')]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"], Kind('"debug", "info", "warning" or "error"')
]
AbsolutePath = Annotated[Path | None, BeforeValidator(_absolute_path), Kind("an absolute path")]
SocketPath = Annotated[
    Path | str | None, BeforeValidator(_socket), Kind('an absolute path, "auto" or "off"')
]
Url = Annotated[str, BeforeValidator(_url), Kind("a database URL as SQLAlchemy takes them")]
ListenAddress = Annotated[
    Address | None, BeforeValidator(_address), Kind('an address HOST:PORT or "off"')
]
Names = Annotated[tuple[str, ...], BeforeValidator(_names), Kind("a list of names")]
SlurmNames = Annotated[tuple[str, ...], BeforeValidator(_slurm_names), Kind("a list of names")]
LogNames = Annotated[
    tuple[str, ...], BeforeValidator(_log_names), Kind("a list of names or numbers")
]
HostLists = Annotated[tuple[str, ...], BeforeValidator(_host_lists), Kind("a list of host lists")]
