"""Writes an export: a tar, compressed by gzip, of a manifest and files of JSON lines."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from pydantic import ValidationError

from shapleyprio.common.errors import OutputError, ReplayError
from shapleyprio.common.output import whole_binary_file
from shapleyprio.replay.logs.exports.anonymizing import Anonymizer
from shapleyprio.replay.logs.exports.recognizing import MANIFEST
from shapleyprio.replay.logs.exports.records import (
    ExportedLedger,
    ExportedRun,
    Manifest,
    Row,
    wrong_in,
)
from shapleyprio.replay.logs.exports.rows import PARTS, RUNS, ExportSpan, exported_ledger
from shapleyprio.store import ClusterStore, View


def export(
    file: Path,
    ledgers: Collection[ClusterStore],
    organizations: Sequence[str],
    span: ExportSpan,
    anonymizer: Anonymizer | None = None,
    *,
    parents: Mapping[str, str] | None = None,
) -> Manifest:
    """Writes what a store holds of some ledgers, and returns the manifest's contents.

    The same rows and the same key make the same file, byte by byte.

    Args:
        file: to be written, whole or not at all.
        ledgers: of one store.
        organizations: in the order of the configuration; those that had jobs or processors and have
            left since come behind them.
        span: what of the past.
        anonymizer: replaces names; None to keep them.
        parents: organization -> its parent, of those that have one; None if none has.

    Raises:
        ReplayError: there is nothing to export.
        StoreError: the store cannot be read.
        OutputError: the file cannot be written, or what is put into it.
    """
    with ExitStack() as stack:
        target = stack.enter_context(whole_binary_file(file))
        try:
            directory = Path(stack.enter_context(TemporaryDirectory(prefix="shapleyprio-export-")))
            parts = {name: stack.enter_context((directory / name).open("w+b")) for name in PARTS}
            writer = _Writer(parts, anonymizer)
            found = [writer.add(ledger, span) for ledger in writer.in_order(ledgers)]
        except OSError as error:
            raise OutputError(
                f"{error.filename or 'the parts of the export'}: {error.strerror}; TMPDIR says "
                "where they are made"
            ) from None
        known = [one for one in found if one is not None]
        if not known:
            names = ", ".join(one.cluster for one in ledgers)
            raise ReplayError(f"the store holds nothing of {names} yet; or give --live")
        manifest = Manifest(
            program=f"shapleyprio {version('shapleyprio')}",
            since=span.since,
            until=span.until,
            organizations=tuple(organizations),
            parents=dict(parents or {}),
            ledgers=tuple(known),
            anonymized=anonymizer is not None,
            shifted=anonymizer is not None and anonymizer.is_shifting,
            rows=writer.rows,
        )
        if anonymizer is not None:
            manifest = anonymizer.anonymized(manifest)
        members = tuple(dict.fromkeys((*manifest.organizations, *writer.members)))
        manifest = manifest.model_copy(update={"organizations": members})
        _pack(target, manifest, parts)
        return manifest


class _Writer:
    """Writes rows into the files of an export.

    Attributes:
        rows: file -> number of its lines.
        members: organizations of the jobs and processors in it, as written, as they come.
    """

    def __init__(self, parts: Mapping[str, BinaryIO], anonymizer: Anonymizer | None) -> None:
        self._parts = parts
        self._anonymizer = anonymizer
        self.rows = dict.fromkeys(parts, 0)
        self.members: dict[str, None] = {}

    def in_order(self, ledgers: Iterable[ClusterStore]) -> Iterable[ClusterStore]:
        """Returns the ledgers as they are to follow each other."""
        if (hidden := self._anonymizer) is None:
            return ledgers
        return sorted(ledgers, key=lambda one: hidden.name("ledger", one.cluster))

    def add(self, ledger: ClusterStore, span: ExportSpan) -> ExportedLedger | None:
        """Writes what is known of a ledger at one moment; returns what the manifest says of it."""
        with ledger.reading() as view:
            with _checked(view, MANIFEST):
                found = exported_ledger(view, span)
            if found is not None:
                for name in self._parts:
                    self._add_rows(view, span, name)
            return found

    def _add_rows(self, view: View, span: ExportSpan, name: str) -> None:
        file = self._parts[name]
        with _checked(view, name):
            for written in self._written(name, PARTS[name].read(view, span)):
                file.write(written.model_dump_json().encode() + b"\n")
                self.rows[name] += 1
                if isinstance(written, ExportedRun):
                    both = ((one.organization, one.owner) for one in written.allocations)
                    self.members |= dict.fromkeys(name for names in both for name in names if name)

    def _written(self, name: str, rows: Iterator[Row]) -> Iterable[Row]:
        if self._anonymizer is None:
            return rows
        if name == RUNS:  # as many as there are, and sorted by the numbers of jobs
            return map(self._anonymizer.anonymized, rows)
        return self._anonymizer.all_anonymized(rows)


@contextmanager
def _checked(view: View, name: str) -> Iterator[None]:
    """Says in one line which file of an export cannot hold what a ledger has."""
    try:
        yield
    except ValidationError as error:
        raise ReplayError(
            f"{view.cluster}: the store has what no export can hold: {name}: {wrong_in(error)}"
        ) from None


def _pack(target: BinaryIO, manifest: Manifest, parts: Mapping[str, BinaryIO]) -> None:
    head = io.BytesIO(manifest.model_dump_json(indent=1).encode() + b"\n")
    files: Iterable[tuple[str, BinaryIO]] = ((MANIFEST, head), *parts.items())
    with (
        gzip.GzipFile(fileobj=target, mode="wb", filename="", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.GNU_FORMAT) as tar,
    ):
        for name, file in files:
            item = tarfile.TarInfo(name)
            item.size = file.seek(0, io.SEEK_END)
            file.seek(0)
            tar.addfile(item, file)
