"""Opens a log, whatever it is: a file in SWF or of sacct, also compressed, a store, an export."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial
from itertools import chain
from pathlib import Path
from zoneinfo import ZoneInfo

from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.assembling import released_in
from shapleyprio.replay.logs.cells import BEGINS, cells_of_json
from shapleyprio.replay.logs.clusters import in_clusters
from shapleyprio.replay.logs.column_names import FIRST_LINE, XDMOD_FIELDS
from shapleyprio.replay.logs.columns import lines_of, second_of
from shapleyprio.replay.logs.exports.reading import read_exported
from shapleyprio.replay.logs.exports.recognizing import is_export
from shapleyprio.replay.logs.files import blocks_of, files_of
from shapleyprio.replay.logs.memory import refuse_to_swap
from shapleyprio.replay.logs.sacct import SacctReader
from shapleyprio.replay.logs.stored import read_stored
from shapleyprio.replay.logs.swf import FIELD_COUNT, read_swf
from shapleyprio.replay.progress import ProgressCallback
from shapleyprio.replay.workloads.choices import DEFAULT_TIME_ZONE, Format
from shapleyprio.replay.workloads.log import Log

_URL = re.compile(r"[a-z][a-z0-9+]*://")
_NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]*)?")


def read_log(
    source: str | Sequence[str],
    *,
    format: Format | None = None,  # noqa: A002  # what the user knows it by
    fields: Sequence[str] = XDMOD_FIELDS,
    time_zone: str = DEFAULT_TIME_ZONE,
    clusters: Sequence[str] = (),
    strict: bool = False,
    since: datetime | None = None,
    until: datetime | None = None,
    progress: ProgressCallback | None = None,
) -> Log:
    """Reads a log of jobs.

    Args:
        source: a file, plain or compressed by gzip, xz or zstd, or the URL of a store; or files of
            sacct that make one log, also by patterns such as ``2025-*.sacct.xz``. A record that
            several files have counts once.
        format: what it is; None to find out. A name with ``.swf``, a first line that is a comment
            or 18 numbers are SWF's, everything else is taken for sacct's: text, or JSON if it
            begins with a brace.
        fields: sacct's columns in their order, where its first line does not name them.
        time_zone: of the local times in a file of sacct's, such as ``Europe/Warsaw``.
        clusters: whose jobs, where the log holds several clusters: a store, or what sacct has
            printed with the column Cluster. Several make the log of a pool. None for all, of which
            a store may hold but one.
        strict: a malformed line is an error, not only counted.
        since: take jobs that were released from then on; without a time zone in `time_zone`. Of a
            store or an export: what was executed from then on; in this host's time zone.
        until: likewise before that.
        progress: called now and then with how far reading is: bytes of the files as they are on
            disk, or runs of a store.

    Raises:
        LogError: it cannot be read; the message says where, what and how to mend it.
    """
    sources = [source] if isinstance(source, str) else list(source)
    show = progress or (lambda _: None)
    asked = since, until
    here = _span(asked, None)
    if format == "store" or (format is None and any(map(_URL.match, sources))):
        if len(sources) > 1:
            raise LogError(f"{', '.join(sources)}: name one store, or files alone")
        return read_stored(sources[0], clusters=clusters, span=here, progress=progress)
    files = files_of(sources)
    if format == "export" or (format is None and any(map(is_export, files))):
        if len(files) > 1:
            raise LogError(f"{', '.join(files)}: name one export alone")
        return read_exported(files[0], clusters=tuple(clusters), span=here, progress=progress)
    zone = zone_of(time_zone)
    span = _span(asked, zone)
    name = sources[0] if len(sources) == 1 else f"{sources[0]} and {len(sources) - 1} more"
    reader = SacctReader(
        name,
        fields=fields,
        zone=zone,
        strict=strict,
        several=len(files) > 1,
        since=span[0],
        until=span[1],
    )
    behind = 0
    for file in files:
        blocks = blocks_of(file, partial(_shown, show, behind))
        first = next(blocks)
        blocks = chain((first,), blocks)
        if (format or _format(Path(file).name, first)) == "swf":
            if len(files) > 1:
                raise LogError(f"{file}: is in SWF; only files of sacct can be read together")
            return released_in(read_swf(file, _whole(file, blocks), strict=strict), *span)
        if BEGINS.match(first):
            reader.read_cells(file, cells_of_json(file, blocks))
        else:
            reader.read(file, lines_of(file, blocks))
        behind += Path(file).stat().st_size
    return in_clusters(reader.log(), clusters)


def _whole(file: str, blocks: Iterable[bytes]) -> bytes:
    """Returns all of a text that is parsed at once, which takes up to twice as much again."""
    text = io.BytesIO()
    for piece in lines_of(file, blocks):
        text.write(piece)
    refuse_to_swap(file, coming=2 * text.tell())
    return text.getvalue()


def _shown(show: ProgressCallback, behind: int, done: int) -> None:
    show(behind + done)


def zone_of(name: str) -> tzinfo:
    """Returns the time zone of a name, such as ``Europe/Warsaw``.

    Raises:
        LogError: it is not known.
    """
    if name == "UTC":
        return UTC  # known also where there is no database of time zones
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise LogError(
            f"time zone {name!r} is not known; name one such as UTC or Europe/Warsaw"
        ) from error


def _format(name: str, text: bytes) -> Format:
    found = FIRST_LINE.match(text)
    first = found.group(1).strip() if found else b""
    numbers = [_NUMBER.fullmatch(field) for field in first.split()]
    of_numbers = len(numbers) >= FIELD_COUNT and all(numbers)
    return "swf" if ".swf" in name.casefold() or first[:1] == b";" or of_numbers else "sacct"


def _span(
    asked: tuple[datetime | None, datetime | None], zone: tzinfo | None
) -> tuple[int | None, int | None]:
    """Returns seconds since the epoch."""
    begin, end = (None if moment is None else second_of(moment, zone) for moment in asked)
    return begin, end
