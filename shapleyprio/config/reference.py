"""Keys in words: the reference of them all, what a file says, and in what two files differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic.fields import FieldInfo

from shapleyprio.common.databases import without_password
from shapleyprio.common.wording import clock_time, exact_duration, listed
from shapleyprio.config.consortium import Organization, Pool
from shapleyprio.config.keys import ConfigSection
from shapleyprio.config.model import Config
from shapleyprio.config.toml import literal
from shapleyprio.config.values import Kind

LISTS: dict[str, type[ConfigSection]] = {"pool": Pool, "organization": Organization}
"""Tables of which there may be several -> their models."""


def sections() -> dict[str, type[ConfigSection]]:
    """Returns table of the file -> its model, in the order of the file."""
    tables: dict[str, type[ConfigSection]] = {}
    for name, field in Config.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, ConfigSection):
            tables[name] = field.annotation
    return tables | LISTS


def kind_of(field: FieldInfo) -> str:
    """Names the kind of the key's values."""
    return next(datum.words for datum in field.metadata if isinstance(datum, Kind))


def example_of(field: FieldInfo) -> Any:
    """Returns a value that one might give the key."""
    assert field.examples
    return field.examples[0]


def heading_of(table: str) -> str:
    """Returns the line that opens the table in the file."""
    return f"[[{table}]]" if table in LISTS else f"[{table}]"


def purpose_of(table: str) -> str:
    """Returns the purpose of the table."""
    fields = {field.alias or name: field for name, field in Config.model_fields.items()}
    return fields[table].description or ""


def config_reference() -> str:
    """Lists all keys as Markdown: a heading and a list of keys for each table of the file."""
    parts = ["# Configuration", "", "For admins: every key of the configuration file.", ""]
    for table, section in sections().items():
        parts += [f"## `{heading_of(table)}`", "", purpose_of(table), ""]
        parts += ["| key | value: default | meaning |", "| --- | --- | --- |"]
        parts += [_row(name, field) for name, field in section.model_fields.items()]
        parts.append("")
    return "\n".join(parts)


def _row(name: str, field: FieldInfo) -> str:
    if field.is_required():
        value = f"{kind_of(field)}, required, such as `{literal(example_of(field))}`"
    elif field.default is None:
        value = f"{kind_of(field)}, such as `{literal(example_of(field))}`"
    else:
        value = f"{kind_of(field)}: `{literal(field.default)}`"
    cells = f"`{name}`", value, field.description or ""
    return f"| {' | '.join(cells)} |"


def written(config: Config) -> dict[str, str]:
    """Returns each key that the file sets -> its value, without secrets.

    Keys of tables of which there may be several have their names: ``organization.physics.nodes``.
    Under the table's own name are the names, in their order.
    """
    found: dict[str, str] = {}
    for table in sections():
        if table in LISTS:
            several: Sequence[ConfigSection] = getattr(config, f"{table}s")
            found |= {table: listed([name_of(one) for one in several])} if several else {}
            for one in several:
                found |= dict(_keys(f"{table}.{name_of(one)}", one))
        else:
            found |= dict(_keys(table, getattr(config, table)))
    return found


def differences(
    before: Mapping[str, str], after: Mapping[str, str]
) -> list[tuple[str, str | None, str | None]]:
    """Returns keys with their values before and after, None where a file does not set it.

    >>> differences({"push.channel": "nice", "push.table": "/x"}, {"push.channel": "qos"})
    [('push.channel', 'nice', 'qos'), ('push.table', '/x', None)]
    """
    names = [*after, *(name for name in before if name not in after)]
    return [
        (name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def name_of(section: ConfigSection) -> str:
    """Returns the name of a table of which there may be several."""
    return str(getattr(section, "name"))  # noqa: B009  # which not all tables have


def _keys(table: str, section: ConfigSection) -> Iterator[tuple[str, str]]:
    for name, field in type(section).model_fields.items():
        if name in section.model_fields_set and name != "name":
            yield f"{table}.{name}", _in_words(getattr(section, name), field)


def _in_words(value: object, field: FieldInfo) -> str:
    kind = kind_of(field)
    if value is None:  # what the file calls so
        words = re.findall(r'"(unlimited|off|strict)"', kind)
        return words[0] if words else "none"
    if isinstance(value, int) and not isinstance(value, bool):
        if "duration" in kind:
            return exact_duration(value)
        if "date" in kind:
            return clock_time(value)
    if isinstance(value, tuple) and hasattr(value, "port"):
        return ":".join(map(str, value))
    if isinstance(value, tuple):
        return literal(value)
    return literal(value) if isinstance(value, bool) else without_password(str(value))
