"""What a configuration file says, key by key, and in what two of them differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic.fields import FieldInfo

from shapleyprio.common.databases import without_password
from shapleyprio.common.wording import clock_time, exact_duration, listed
from shapleyprio.config.model import Config
from shapleyprio.config.reference import LISTS, kind_of, sections
from shapleyprio.config.section import ConfigSection
from shapleyprio.config.toml import literal


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
