"""The files of a site: their text, the lines of slurm.conf, and what is wrong in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shapleyprio.replay.errors import WorkloadError

LARGEST_FILE = 16 * 1024 * 1024


class SiteError(WorkloadError):
    """The configuration of a site cannot be taken over; the message says where, and why."""


def text_of(file: Path) -> str:
    """Returns the text of a file that Slurm reads or printed.

    Raises:
        SiteError: there is none, or it cannot be text of Slurm's.
    """
    if not file.is_file():
        raise SiteError(f"{file}: no such file")
    if file.stat().st_size > LARGEST_FILE:
        raise SiteError(f"{file}: has more than {LARGEST_FILE >> 20} MiB; is it the right file?")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SiteError(f"{file}: is not text in UTF-8 (byte {error.start})") from None


DEEPEST_INCLUDE = 8

_COMMENT = re.compile(r"(?<!\\)#.*")
_INCLUDE = re.compile(r"include\s+(\S+)", re.IGNORECASE)
_WORD = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_]*)\s*[-+]?=\s*(?:"([^"]*)"|([^\s"]*))(?=\s|$)')
_TAKEN = re.compile(r"[A-Za-z0-9_.,:/=*()%+@\[\]-]*")


@dataclass(frozen=True, slots=True)
class ConfLine:
    """One line, or several that a backslash joins.

    Attributes:
        file, number: where it begins.
        words: keys as written, and their values.
    """

    file: Path
    number: int
    words: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """The first key in small letters, which says what the line is about."""
        return self.words[0][0].lower()

    @property
    def keys(self) -> dict[str, str]:
        """Keys in small letters, and their values."""
        return {key.lower(): value for key, value in self.words}

    @property
    def value(self) -> str:
        """The first value."""
        return self.words[0][1]

    def error(self, key: str, problem: str) -> SiteError:
        """Returns an error at a key of this line."""
        return SiteError(f"{self.file}:{self.number}: {key}: {problem}")

    def taken(self, key: str, value: str) -> str:
        """Returns a value that is to stand in another slurm.conf.

        Raises:
            SiteError: it would be something else there.
        """
        if not _TAKEN.fullmatch(value):
            raise self.error(key, f"{value[:80]!r} has a character that Slurm does not take there")
        return value


def conf_lines(file: Path) -> Iterator[ConfLine]:
    """Yields all lines that say something.

    Raises:
        SiteError: a file cannot be read, or a line is none of slurm.conf.
    """
    yield from _lines(file, [], {})


def _lines(file: Path, above: list[Path], names: dict[str, str]) -> Iterator[ConfLine]:
    if file in above or len(above) > DEEPEST_INCLUDE:
        raise SiteError(f"{above[-1]}: includes {file}, which is included already")
    for number, text in _joined(text_of(file)):
        if include := _INCLUDE.fullmatch(text):
            included = include[1].replace("%c", names.get("clustername", "%c"))
            yield from _lines(file.parent / included, [*above, file], names)
            continue
        line = ConfLine(file, number, tuple(_words(file, number, text)))
        names.setdefault(line.key, line.value)
        yield line


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yields lines with something in them, and their numbers from 1 on."""
    begun, joined = 0, ""
    for number, line in enumerate((*text.split("\n"), ""), start=1):
        begun = begun or number
        joined += _COMMENT.sub("", line).rstrip()
        if joined.endswith("\\"):
            joined = joined[:-1]
            continue
        if joined.strip():
            yield begun, joined.strip()
        begun, joined = 0, ""


def _words(file: Path, number: int, text: str) -> Iterator[tuple[str, str]]:
    place = 0
    while place < len(text):
        word = _WORD.match(text, place)
        if word is None:
            raise SiteError(
                f"{file}:{number}: {text[place:].strip()[:80]!r} is not a KEY=VALUE of slurm.conf"
            )
        yield word[1], word[2] if word[2] is not None else word[3]
        place = word.end()
