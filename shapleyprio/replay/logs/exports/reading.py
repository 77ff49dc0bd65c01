"""Reads an export into a store of its own, which is deleted when the process ends.

All that reads a store thus reads an export. Whoever sends one may have changed it: every value is
checked, nothing but the files of an export is taken out of it, and what it decompresses to is
bounded as for every log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import ConfigDict, ValidationError

from shapleyprio.common.databases import without_password
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.exports.recognizing import MANIFEST, RECORD, is_export, name_in
from shapleyprio.replay.logs.exports.records import (
    FORMAT,
    VERSION,
    ExportRecord,
    Manifest,
    Row,
    wrong_in,
)
from shapleyprio.replay.logs.exports.rows import PARTS, put_ledger
from shapleyprio.replay.logs.files import bytes_of
from shapleyprio.replay.logs.stored import read_stored
from shapleyprio.replay.progress import ProgressCallback
from shapleyprio.replay.workloads.log import Log
from shapleyprio.store import Store, StoreError

LONGEST_LINE = 1 << 23
"""Bytes, as in every log."""

_SIZE = slice(124, 136)
_KIND = slice(156, 157)


@dataclass(frozen=True, slots=True)
class ReadExport:
    """An export that was read.

    Attributes:
        manifest: what it says of itself.
        url: of the store that has its rows.
        directory: of that store; it is deleted when nothing refers to it any more.
    """

    manifest: Manifest
    url: str
    directory: TemporaryDirectory[str]


def store_url(source: str) -> str:
    """Returns the URL of a store with what a log has: its own, or that of an export's rows.

    Raises:
        LogError: as for `read_export`.
    """
    return read_export(source).url if is_export(source) else source


def read_export(source: str, progress: ProgressCallback | None = None) -> ReadExport:
    """Reads an export; one that was read last is not read again while it is the same file.

    Args:
        source: the file.
        progress: called now and then with how many of its bytes are read.

    Raises:
        LogError: it is damaged, was changed, or is of a later version; the message says where.
    """
    try:
        state = Path(source).stat()
    except OSError as error:
        raise LogError(f"{source}: cannot be read: {error.strerror}") from None
    known = source, state.st_ino, state.st_size, state.st_mtime_ns
    if known not in _LAST:
        _LAST.clear()
        _LAST[known] = _read(source, progress or (lambda _: None))
    return _LAST[known]


def read_exported(
    source: str,
    *,
    clusters: tuple[str, ...] = (),
    span: tuple[int | None, int | None] = (None, None),
    progress: ProgressCallback | None = None,
) -> Log:
    """Reads the finished runs of an export as a log.

    Args:
        source: the file.
        clusters: as for `read_stored`.
        span: likewise; what is None is as the export was asked for.
        progress: as for `read_export`.

    Raises:
        LogError: as for both.
    """
    found = read_export(source, progress)
    asked = (found.manifest.since, found.manifest.until)
    since, until = (
        own if own is not None else usual for own, usual in zip(span, asked, strict=True)
    )
    log = read_stored(found.url, clusters=clusters, span=(since, until), called=source)
    parts = tuple(replace(one, source=f"{source}, {one.cluster}") for one in log.clusters)
    return replace(
        log,
        source=source,
        format="export",
        clusters=parts,
        organizations=found.manifest.organizations,
        parents=found.manifest.parents,
        system_processors=sum((log.owned or _owned(log.clusters)).values()) or None,
    )


def _owned(logs: Sequence[Log]) -> Counter[str]:
    """Returns organization -> processors that it brings to all clusters of a pool."""
    return sum((Counter(log.owned) for log in logs), Counter())


_LAST: dict[tuple[str, int, int, int], ReadExport] = {}
"""The export that was read last, by its file and that file's state."""


def _read(source: str, progress: ProgressCallback) -> ReadExport:
    directory = TemporaryDirectory(prefix="shapleyprio-export-")
    url = f"sqlite:///{Path(directory.name, 'store.db')}"
    try:
        with closing(_Bytes(source, progress)) as file, Store.open(url, create=True) as store:
            return ReadExport(_copied(_Export(source, file), store), url, directory)
    except StoreError as error:
        raise LogError(f"{without_password(source)}: cannot be loaded: {error}") from error


def _copied(export: _Export, store: Store) -> Manifest:
    """Puts all rows of an export into a store, and returns the manifest."""
    manifest = export.manifest()
    names = {ledger.name for ledger in manifest.ledgers}
    for ledger in manifest.ledgers:
        with store.cluster(ledger.name).transaction() as rows:
            put_ledger(rows, ledger)
    for name, part in PARTS.items():
        written: set[str] = set()
        for ledger, found in groupby(export.rows(name, part.row), key=attrgetter("cluster")):
            if ledger not in names or ledger in written:
                raise export.error(f"{name} has rows of {ledger} where none can be")
            written.add(ledger)
            try:
                with store.cluster(ledger).transaction() as rows:
                    part.write(rows, found)
            except ValueError as error:
                raise export.error(f"{name}: {error}") from None
        if export.lines != manifest.rows.get(name, 0):
            raise export.error(
                f"{name} has {export.lines:,} lines instead of {manifest.rows.get(name, 0):,}"
            )
    export.end()
    return manifest


class _Export:
    """The files in an export, one after the other.

    Attributes:
        lines: of the file that was read last.
    """

    def __init__(self, source: str, file: _Bytes) -> None:
        self._source = without_password(source)
        self._file = file
        self.lines = 0

    def error(self, problem: str) -> LogError:
        """Returns an error about this export."""
        return LogError(f"{self._source}: {problem}; export it again, or fetch it again")

    def manifest(self) -> Manifest:
        """Returns what it says of itself."""
        size = self._begin(MANIFEST)
        if size > LONGEST_LINE:
            raise self.error(f"{MANIFEST} has {size:,} bytes")
        text = self._file.take(size)
        try:
            found = Version.model_validate_json(text)
            if found.format == FORMAT and found.version > VERSION:
                raise LogError(
                    f"{self._source}: is an export in version {found.version}, and this release "
                    f"reads {VERSION}; install a newer one"
                )
            manifest = Manifest.model_validate_json(text)
        except ValidationError as error:
            raise self.error(f"{MANIFEST}: {wrong_in(error)}") from None
        self._end(size)
        return manifest

    def rows(self, name: str, kind: type[Row]) -> Iterator[Row]:
        """Yields the rows of the next file.

        Args:
            name: that it must have.
            kind: of its rows.
        """
        size = self._begin(name)
        self.lines = 0
        for line in self._lines(name, size):
            self.lines += 1
            try:
                yield kind.model_validate_json(line)
            except ValidationError as error:
                raise self.error(f"{name}, line {self.lines}: {wrong_in(error)}") from None
        self._end(size)

    def end(self) -> None:
        """Reads the rest, behind which the checksum of all is compared."""
        while block := self._file.take(LONGEST_LINE):
            if block.strip(b"\0"):
                raise self.error("there is more after its last file")

    def _lines(self, name: str, size: int) -> Generator[bytes]:
        left, rest = size, b""
        while left:
            block = self._file.take(min(left, LONGEST_LINE))
            if not block:
                raise self.error(f"it ends within {name}")
            left -= len(block)
            *lines, rest = (rest + block).split(b"\n")
            yield from lines
            if len(rest) > LONGEST_LINE:
                raise self.error(f"{name}: line {self.lines + 1} has more than 8 MiB")
        if rest:
            raise self.error(f"{name}: its last line is cut short")

    def _begin(self, name: str) -> int:
        """Reads the head of the next file and returns its size, in bytes."""
        head = self._file.take(RECORD)
        if len(head) < RECORD:
            raise self.error(f"it ends before {name}")
        if head[_KIND] != b"0" or name_in(head) != name:
            raise self.error(f"{name} is out of place")
        return self._size(head[_SIZE], name)

    def _size(self, field: bytes, name: str) -> int:
        if field[0] & 0x80:  # GNU's way to write what octal digits have no room for
            return int.from_bytes(field[1:])
        try:
            return int(field.strip(b"\0 "), 8)
        except ValueError:
            raise self.error(f"the size of {name} cannot be read") from None

    def _end(self, size: int) -> None:
        self._file.take(-size % RECORD)


class Version(ExportRecord):
    """What every version of the manifest begins with; the rest is not looked at."""

    model_config = ConfigDict(extra="ignore")

    format: str
    version: int


class _Bytes:
    """Reads a decompressed file as far as asked."""

    def __init__(self, source: str, progress: ProgressCallback) -> None:
        self._blocks = bytes_of(source, progress)
        self._rest = memoryview(b"")

    def take(self, size: int) -> bytes:
        """Returns the next bytes, fewer only where the file ends."""
        found = bytearray()
        while len(found) < size:
            if not self._rest:
                self._rest = memoryview(next(self._blocks, b""))
                if not self._rest:
                    break
            wanted = size - len(found)
            found += self._rest[:wanted]
            self._rest = self._rest[wanted:]
        return bytes(found)

    def close(self) -> None:
        """Ends reading."""
        self._blocks.close()
