"""The reference of all keys, rendered from the model that reads them."""

from __future__ import annotations

from typing import Any

from pydantic.fields import FieldInfo

from shapleyprio.config.model import Config
from shapleyprio.config.organization import Organization
from shapleyprio.config.pool import Pool
from shapleyprio.config.section import ConfigSection
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
