"""Reads the configuration file and says clearly what is wrong with it."""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from operator import itemgetter
from pathlib import Path as FilePath

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from shapleyprio.common.databases import holds_password
from shapleyprio.common.errors import ConfigError
from shapleyprio.common.wording import count
from shapleyprio.config.model import Config, ContradictionError
from shapleyprio.config.reference import LISTS, example_of, heading_of, kind_of, sections
from shapleyprio.config.toml import Path, lines_of, literal

LONGEST_VALUE = 60
"""Characters of a wrong value, or a key, that a message repeats."""

LONGEST_REASON = 200

MOST_PROBLEMS = 50
"""So many are shown; that there are more is said."""


def load_config(path: FilePath) -> Config:
    """Reads the configuration in the file.

    Raises:
        ConfigError: there is no such file, it is not a valid configuration, or it holds a password
            that every user of the host may read.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(
            [
                f"{path}: no such file; `shapleyprio init --config {path}` writes one "
                "for your cluster, --config FILE names another"
            ]
        ) from None
    except OSError as error:
        raise ConfigError(
            [f"{path}: cannot be read ({error.strerror}); check what it is and its permissions"]
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            [f"{path}: byte {error.start + 1} is not UTF-8; save the file as UTF-8"]
        ) from None
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([_syntax_problem(path, text, str(error))]) from None
    try:
        config = Config.model_validate(read)
    except ValidationError as error:
        lines = lines_of(text)
        found = sorted(
            ((_line(where, lines), where, text) for where, text in _problems(error)),
            key=itemgetter(0),
        )
        problems = [
            f"{path}{f':{line}' if line else ''}: {_name(where)}: {text}"
            for line, where, text in found[:MOST_PROBLEMS]
        ]
        more = len(found) - len(problems)
        if more:
            problems.append(f"{path}: and {count(more, 'more problem')}")
        raise ConfigError(problems) from None
    if holds_password(config.store.url) and path.stat().st_mode & stat.S_IRWXO:
        line = _line(("store", "url"), lines_of(text))
        raise ConfigError(
            [
                f"{path}:{line}: store.url: holds a password, and {path} is open to every user of "
                f"this host; chmod o= {path}"
            ]
        )
    return config


def _syntax_problem(path: FilePath, text: str, message: str) -> str:
    what, _, at = message.removesuffix(")").rpartition(" (at ")
    words = at.removeprefix("line ").split(", column ")
    line, column = words if len(words) == 2 else (str(text.rstrip().count("\n") + 1), "")
    place = f" in column {column}" if column else " before the end of the file"
    remedy = 'strings need quotes ("30d"), lists brackets (["a", "b"])'
    return f"{path}:{line}: not valid TOML: {what}{place}; {remedy}"


def _line(where: Path, lines: Mapping[Path, int]) -> int:
    """Returns the line of the key or of the table that lacks it; 0 where there is neither."""
    prefixes = (where[:length] for length in range(len(where), 0, -1))
    return next((lines[prefix] for prefix in prefixes if prefix in lines), 0)


def _name(where: Path) -> str:
    """Returns the key as admins write it; the tables of a list count from 1."""
    name = ""
    for part in where:
        word = part if isinstance(part, int) else _short(part)
        name += f"[{word + 1}]" if isinstance(word, int) else f".{word}" if name else word
    return name


def _short(text: str, longest: int = LONGEST_VALUE) -> str:
    return f"{text[:longest]}..." if len(text) > longest else text


def _problems(error: ValidationError) -> Iterator[tuple[Path, str]]:
    for detail in error.errors(include_url=False):
        where = detail["loc"]
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, ContradictionError):
            yield from cause.problems
        elif detail["type"] == "extra_forbidden":
            yield where, _unknown_key(where)
        elif (field := _field(where)) is None:
            yield where, _not_a_table(where)
        elif detail["type"] == "missing":
            example = f"{where[-1]} = {literal(example_of(field))}"
            yield where, f"is missing; add for instance {example}"
        else:
            yield where, _wrong_value(field, where, detail["input"], str(cause or ""))


def _field(where: Path) -> FieldInfo | None:
    table, key = where[0], where[-1]
    fields = sections().get(str(table), Config).model_fields
    return fields.get(str(key)) if len(where) > 1 else None


def _wrong_value(field: FieldInfo, where: Path, value: object, reason: str) -> str:
    if where == ("store", "url"):
        shown = "the value"  # it may hold a password
    else:
        shown = repr(value) if isinstance(value, str) else literal(value)
        shown = _short(shown)
    because = f" ({_short(reason, LONGEST_REASON)})" if reason else ""
    example = literal(example_of(field))
    return f"{shown} is not {kind_of(field)}{because}; write for instance {example}"


def _not_a_table(where: Path) -> str:
    table = str(where[0])
    if len(where) == 1 and table in LISTS:
        return f"is not a list of tables; write {heading_of(table)}, with two brackets each"
    return f"is not a table; write {heading_of(table)} and its keys on the lines below"


def _unknown_key(where: Path) -> str:
    key, table = str(where[-1]), str(where[0])
    if len(where) == 1:
        known, what = list(sections()), "table"
        if key == "organizations":
            return "unknown table; did you mean [[organization]]?"
    else:
        known, what = list(sections()[table].model_fields), "key"
    elsewhere = [
        f"{name}.{key}" for name, section in sections().items() if key in section.model_fields
    ]
    near = get_close_matches(key, known, n=1, cutoff=0.5)
    if near:
        return f"unknown {what}; did you mean {near[0]!r}?"
    if elsewhere:
        return f"unknown {what}; did you mean {elsewhere[0]!r}?"
    return f"unknown {what}; remove it, or take one of {', '.join(known)}"
