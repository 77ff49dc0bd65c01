"""Writes the manual pages: one for each command, and shapleyprio.toml(5).

Both come from what the program itself goes by, the commands' help and the configuration's model,
so that they cannot say anything else.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click

from shapleyprio.cli import COMMANDS, main
from shapleyprio.cli.options.shared import DEFAULT_CONFIG
from shapleyprio.config.reference import example_of, heading_of, kind_of, purpose_of, sections
from shapleyprio.config.toml import literal

PROGRAM = "shapleyprio"
VERBATIM = "\b"
"""How click marks a paragraph whose lines stay as they are."""

CONFIGURATION_PAGE = "shapleyprio.toml"
EXIT_CODES = re.compile(r"^Exit codes: (?P<codes>.+)\.$", re.DOTALL)

EXAMPLE = """\
[[organization]]
name = "physics"
accounts = ["physics"]       # with their sub-accounts
partitions = ["physics"]     # whose nodes it brought

[[organization]]
name = "biology"
accounts = ["biology", "genomics"]
nodes = ["bio[01-16]"]
"""


# -- roff


def text(words: str) -> str:
    r"""Words as roff shows them unchanged; code between backticks in bold.

    >>> print(text("as `a-b`:\n.c"))
    as \fBa\-b\fR:
    \&.c
    """
    escaped = words.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    escaped = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", escaped)
    return re.sub(r"^\.", r"\\&.", escaped, flags=re.MULTILINE)


def bold(words: str) -> str:
    """Words in bold type."""
    return f"\\fB{text(words)}\\fR"


def header(name: str, number: int, purpose: str) -> list[str]:
    """The lines that open a page in that section of the manual."""
    release = f"{PROGRAM} {version(PROGRAM)}"
    return [
        f'.TH "{text(name.upper())}" "{number}" "" "{release}" "{PROGRAM} manual"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{text(name)} \\- {text(purpose)}",
    ]


def section(title: str, lines: list[str]) -> list[str]:
    """A section, or nothing if there is nothing in it."""
    return [f".SH {title}", *lines] if lines else []


def paragraphs(words: str) -> list[str]:
    """Text as in a docstring; click's mark keeps the lines of a paragraph."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(words).split("\n\n"):
        lines.append(".PP")
        if paragraph.startswith(VERBATIM):
            kept = paragraph.removeprefix(VERBATIM).strip("\n")
            lines += [".nf", text(kept), ".fi"]
        else:
            lines.append(text(paragraph))
    return lines


def entry(term: str, words: str) -> list[str]:
    """An entry of a list of terms."""
    return [".TP", term, text(words)]


def see_also(*names: str) -> list[str]:
    """The references at a page's end: names with their sections."""
    pages = [re.sub(r"(.+)(\(\d\))", lambda found: bold(found[1]) + found[2], n) for n in names]
    return section("SEE ALSO", [",\n".join(pages)])


# -- commands


def page_name(context: click.Context) -> str:
    """What a command's page is called."""
    return context.command_path.replace(" ", "-")


def contexts(context: click.Context) -> Iterator[click.Context]:
    """The command and all commands below it."""
    yield context
    command = context.command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from contexts(click.Context(below, info_name=name, parent=context))


def purpose_of_command(context: click.Context) -> str:
    """One line, without the full stop."""
    known = COMMANDS.get(context.info_name or "") if context.parent else None
    first = (context.command.help or "").split("\n\n")[0]
    return (known or " ".join(first.split())).removesuffix(".")


def exit_codes(lines: str) -> list[str]:
    """The list of exit codes out of the sentence in the program's help."""
    found: list[str] = []
    for item in EXIT_CODES.sub(r"\g<codes>", " ".join(lines.split())).split("; "):
        code, _, meaning = item.partition(" ")
        found += entry(bold(code), meaning)
    return found


def options(context: click.Context) -> list[str]:
    """The list of options."""
    lines: list[str] = []
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            names, words = record
            lines += entry(bold(names), words)
    return lines


def below(context: click.Context) -> list[str]:
    """The list of the commands of a group."""
    lines: list[str] = []
    for command in contexts(context):
        if command.parent is context:
            name = f"{bold(page_name(command))}(1)"
            lines += entry(name, f"{purpose_of_command(command)}.")
    return lines


def command_page(context: click.Context) -> str:
    """The page of a command."""
    command = context.command
    usage = " ".join(command.collect_usage_pieces(context))
    help_paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    described = [text for text in help_paragraphs if not EXIT_CODES.match(text)]
    codes = next(
        text for text in inspect.cleandoc(main.help or "").split("\n\n") if EXIT_CODES.match(text)
    )
    takes_configuration = any(p.name == "config_path" for p in command.params)
    files = entry(bold(str(DEFAULT_CONFIG)), "The configuration; see `shapleyprio.toml`(5).")
    others = [f"{PROGRAM}(1)"] if context.parent else []
    if context.parent and context.parent.parent:
        others.append(f"{page_name(context.parent)}(1)")
    return finished(
        [
            *header(page_name(context), 1, purpose_of_command(context)),
            *section("SYNOPSIS", [f"{bold(context.command_path)} {text(usage)}"]),
            *section("DESCRIPTION", paragraphs("\n\n".join(described))),
            *section("COMMANDS", below(context) if isinstance(command, click.Group) else []),
            *section("OPTIONS", options(context)),
            *section("FILES", files if takes_configuration or not context.parent else []),
            *section("EXIT STATUS", exit_codes(codes)),
            *see_also(*others, f"{CONFIGURATION_PAGE}(5)"),
        ]
    )


# -- the configuration


def configuration_page() -> str:
    """The page of the configuration file."""
    lines = [
        *header(CONFIGURATION_PAGE, 5, f"configuration of {PROGRAM}"),
        *section("SYNOPSIS", [bold(str(DEFAULT_CONFIG))]),
        *section(
            "DESCRIPTION",
            paragraphs(
                "The file is in TOML. `shapleyprio init` draws one from the live cluster, and "
                "`shapleyprio check` compares it with the cluster. Only the organizations are "
                "required; a table or key that is not known is refused."
            ),
        ),
    ]
    for table, model in sections().items():
        lines += [f'.SH "{text(heading_of(table))}"', text(purpose_of(table))]
        for name, field in model.model_fields.items():
            lines += entry(f"{bold(name)} = {text(kind_of(field))}", field.description or "")
            if field.is_required():
                lines += [".IP", text(f"Required; for instance {literal(example_of(field))}.")]
            elif field.default is None:
                lines += [".IP", text(f"No default; for instance {literal(example_of(field))}.")]
            else:
                lines += [".IP", text(f"Default: {literal(field.default)}")]
    lines += section("EXAMPLE", [".nf", text(EXAMPLE.rstrip()), ".fi"])
    return finished([*lines, *see_also(f"{PROGRAM}(1)", f"{PROGRAM}-check(1)")])


def finished(lines: list[str]) -> str:
    """A page's text."""
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """File name of each page -> its text."""
    top = click.Context(main, info_name=PROGRAM, **main.context_settings)
    written = {f"{page_name(one)}.1": command_page(one) for one in contexts(top)}
    return {**written, f"{CONFIGURATION_PAGE}.5": configuration_page()}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} DIRECTORY")
    for name, page in pages().items():
        (Path(sys.argv[1]) / name).write_text(page, encoding="utf-8")
