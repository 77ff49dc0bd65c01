"""A first configuration file, drawn from the cluster as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import wrap

from pydantic.fields import FieldInfo

from shapleyprio.config.consortium import Organization
from shapleyprio.config.membership import host_list_of
from shapleyprio.config.reference import (
    LISTS,
    example_of,
    heading_of,
    kind_of,
    purpose_of,
    sections,
)
from shapleyprio.config.toml import literal
from shapleyprio.slurm.layout import Layout, Partition

WIDTH = 88

HEAD = """\
# The configuration of shapleyprio. Keys that are commented out show their default or an
# example. `shapleyprio check` compares this file with the cluster.
"""


def draft(layout: Layout | None) -> str:
    """Drafts the text of a configuration file, every key explained.

    Every account below the root becomes an organization. It gets the partitions that only
    its accounts may use and the one of its own name, as long as no node is given away twice.
    The accounts below it and the nodes are written, too: a log of jobs shows neither.

    Args:
        layout: the cluster; None for a file with an example in the place of what would be found.
    """
    lines = [HEAD]
    for table, section in sections().items():
        if table not in LISTS:
            lines += [_comment(purpose_of(table)), heading_of(table)]
            for name, field in section.model_fields.items():
                value = layout.cluster if layout and (table, name) == ("slurm", "cluster") else ""
                lines += [_comment(_meaning(field)), _setting(name, field, value), ""]
    for table, model in LISTS.items():
        lines += [_comment(f"{heading_of(table)}: {purpose_of(table)}"), "#"]
        lines += [
            _comment(f"{name}: {_meaning(field)}") for name, field in model.model_fields.items()
        ]
        lines += [""]
    lines += [*(_found(layout) if layout and layout.accounts else _nothing_found())]
    return "\n".join(lines).rstrip() + "\n"


def _meaning(field: FieldInfo) -> str:
    return f"{field.description} Takes {kind_of(field)}."


def _setting(name: str, field: FieldInfo, value: str) -> str:
    if value:
        return f"{name} = {literal(value)}"
    default = example_of(field) if field.default is None else field.default
    return f"#{name} = {literal(default)}"


def _found(layout: Layout) -> Iterator[str]:
    tops = {account: _top(account, layout.accounts) for account in layout.accounts}
    given = _partitions(tops, layout)
    apex = set(tops.values())
    for organization in sorted(apex):
        below = sorted(a for a, top in tops.items() if top == organization and a not in apex)
        yield heading_of("organization")
        yield f"name = {literal(organization)}"
        yield f"accounts = {literal([organization, *below])}"
        owned = [partition for partition, owner in given.items() if owner == organization]
        yield f"partitions = {literal(owned)}"
        nodes = sorted({node for name in owned for node in layout.partitions[name].nodes})
        yield f"nodes = {literal([host_list_of(nodes)] if nodes else [])}"
        yield ""
    rest = [name for name in layout.partitions if name not in given]
    if rest:
        yield _comment(
            "Partitions that could not be given to one organization. If one owns all nodes of a "
            "partition, add it to its `partitions`; else list the nodes under `nodes`."
        )
        yield from (_comment(_described(layout.partitions[name])) for name in rest)
        yield ""
    held = {node for name in given for node in layout.partitions[name].nodes}
    if orphans := [node for node in layout.nodes if node not in held]:
        yield _comment(f"Nodes without an owner so far: {host_list_of(orphans)}")


def _top(account: str, parents: Mapping[str, str | None]) -> str:
    """Returns the top account, one below the root, that the account is or is below of."""
    passed = {account}
    above = parents[account]
    while above is not None and above in parents and above not in passed:
        passed.add(above)
        account, above = above, parents[above]
    return account


def _partitions(tops: Mapping[str, str], layout: Layout) -> dict[str, str]:
    """Returns partition -> the organization it seems to belong to, no node given to two."""
    given: dict[str, str] = {}
    owners: dict[str, str] = {}
    by_name = {top.casefold(): top for top in sorted(set(tops.values()), reverse=True)}
    reserved = {
        partition.name: users.pop()
        for partition in layout.partitions.values()
        if len(users := {tops.get(account, "") for account in partition.allow_accounts}) == 1
    }
    namesakes = {
        name: by_name[name.casefold()]
        for name in layout.partitions
        if name.casefold() in by_name and name not in reserved
    }
    for name, organization in (reserved | namesakes).items():
        nodes = layout.partitions[name].nodes
        if organization and all(owners.get(n, organization) == organization for n in nodes):
            given[name] = organization
            owners |= dict.fromkeys(nodes, organization)
    return given


def _described(partition: Partition) -> str:
    users = ", ".join(partition.allow_accounts)
    nodes = host_list_of(partition.nodes) if partition.nodes else "no nodes"
    return f"  {partition.name}: {nodes}" + (f" (only for {users})" if users else "")


def _nothing_found() -> list[str]:
    example = {"name": "example", "accounts": [], "partitions": [], "nodes": []}
    rest = {name: field for name, field in Organization.model_fields.items() if name not in example}
    return [
        _comment("An example; replace it by your own organizations."),
        heading_of("organization"),
        *(f"{name} = {literal(value)}" for name, value in example.items()),
        *(_setting(name, field, "") for name, field in rest.items()),
    ]


def _comment(text: str) -> str:
    clean = "".join(c if c.isprintable() else "?" for c in text)
    indent = "  " if clean.startswith("  ") else ""
    lines = wrap(clean, WIDTH, break_long_words=False, break_on_hyphens=False) or [""]
    return "\n".join(f"# {indent if n and indent else ''}{line}" for n, line in enumerate(lines))
