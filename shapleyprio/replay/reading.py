"""Opens a log, whatever it is: a file in SWF or of sacct, also compressed, or a store."""

from __future__ import annotations

import gzip
import io
import lzma
import re
import zlib
from collections.abc import Sequence
from datetime import UTC, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from shapleyprio.databases import without_password
from shapleyprio.replay.choices import DEFAULT_TIME_ZONE, Format
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.log import Log
from shapleyprio.replay.progress import ProgressCallback
from shapleyprio.replay.sacct import FIRST_LINE, XDMOD_FIELDS, read_sacct
from shapleyprio.replay.stored import read_stored
from shapleyprio.replay.swf import FIELD_COUNT, read_swf

_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PIECE = 1 << 20
_URL = re.compile(r"[a-z][a-z0-9+]*://")
_NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]*)?")


def read_log(
    source: str,
    *,
    format: Format | None = None,  # noqa: A002  # what the user knows it by
    fields: Sequence[str] = XDMOD_FIELDS,
    time_zone: str = DEFAULT_TIME_ZONE,
    cluster: str | None = None,
    strict: bool = False,
    progress: ProgressCallback | None = None,
) -> Log:
    """Reads a log of jobs.

    Args:
        source: a file, plain or compressed by gzip or xz, or the URL of a store.
        format: what it is; None to find out. A name with ``.swf``, a first line that is a comment
            or 18 numbers are SWF's, everything else is taken for sacct's.
        fields: sacct's columns in their order, where its first line does not name them.
        time_zone: of the local times in a file of sacct's, such as ``Europe/Warsaw``.
        cluster: whose runs, where a store holds several clusters.
        strict: a malformed line is an error, not only counted.
        progress: called now and then with how far reading is: bytes of the file as it is on
            disk, or runs of a store.

    Raises:
        LogError: it cannot be read; the message says where, what and how to mend it.
    """
    if format == "store" or (format is None and _URL.match(source)):
        return read_stored(source, cluster=cluster, progress=progress)
    zone = _zone(time_zone)
    text = _text(source, progress or (lambda _: None))
    if (format or _format(Path(source).name, text)) == "swf":
        return read_swf(source, text, strict=strict)
    return read_sacct(source, text, fields=fields, zone=zone, strict=strict)


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC  # known also where there is no database of time zones
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise LogError(
            f"time zone {name!r} is not known; name one such as UTC or Europe/Warsaw"
        ) from error


def _text(source: str, progress: ProgressCallback) -> bytes:
    """Reads the whole file, decompressed."""
    shown = without_password(source)  # of what is taken for a file, too
    try:
        with Path(source).open("rb") as file:
            text = _decompressed(file, progress)
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
        raise LogError(
            f"{shown}: its compressed data are damaged or cut short ({error}); fetch it again"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LogError(f"{shown}: cannot be read: {reason}") from error
    text = text.removeprefix(_BYTE_ORDER_MARK)
    if b"\0" in text[:_PIECE]:
        raise LogError(
            f"{shown}: is not text; give a log in SWF or of sacct in UTF-8, plain or compressed "
            "by gzip or xz, or a store as sqlite:////its/path"
        )
    if not text or text.isspace():
        raise LogError(f"{shown}: is empty")
    return text


def _decompressed(file: io.BufferedReader, progress: ProgressCallback) -> bytes:
    magic = file.read(len(_XZ))
    file.seek(0)
    text = io.BytesIO()
    with _stream(file, magic) as stream:
        while piece := stream.read(_PIECE):
            text.write(piece)
            progress(file.tell())
    return text.getvalue()


def _stream(file: io.BufferedReader, magic: bytes) -> io.BufferedIOBase:
    if magic.startswith(_GZIP):
        return gzip.GzipFile(fileobj=file)
    return lzma.LZMAFile(file) if magic == _XZ else file


def _format(name: str, text: bytes) -> Format:
    found = FIRST_LINE.match(text)
    first = found.group(1) if found else b""
    numbers = [_NUMBER.fullmatch(field) for field in first.split()]
    of_numbers = len(numbers) >= FIELD_COUNT and all(numbers)
    return "swf" if ".swf" in name.casefold() or first[:1] == b";" or of_numbers else "sacct"
