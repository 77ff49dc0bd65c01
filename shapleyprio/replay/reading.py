"""Opens a log, whatever it is: a file in SWF or of sacct, also compressed, or a store."""

from __future__ import annotations

import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterator, Sequence
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

LONGEST_LINE = 1 << 20
"""Bytes."""

LARGEST_TEXT = 1 << 33
"""Bytes of a log; all of it is read into memory."""

HIGHEST_RATIO = 100
"""Bytes of text for each byte of a compressed file; real logs have 5 to 15."""

UNSUSPICIOUS_TEXT = 1 << 26
"""Bytes of text that may come out of a file however small it is."""

_XZ_MEMORY = 1 << 28
"""Bytes that decompression may take; the best that xz makes takes a quarter of it."""

_OTHERS = {
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
    b"\x04\x22\x4d\x18": "lz4",
    b"\x1f\x9d": "compress",
}
"""First bytes of what is compressed otherwise -> by what."""
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
            text = _checked_text(shown, file, progress)
    except lzma.LZMAError as error:
        if "emory" not in str(error):
            raise LogError(_damaged(shown, error)) from error
        raise LogError(
            f"{shown}: takes more than {_XZ_MEMORY >> 20} MiB of memory to decompress; if you "
            "trust it, decompress it first"
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise LogError(_damaged(shown, error)) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LogError(f"{shown}: cannot be read: {reason}") from error
    text = text.removeprefix(_BYTE_ORDER_MARK)
    if not text or text.isspace():
        raise LogError(f"{shown}: is empty")
    return text


def _damaged(source: str, error: Exception) -> str:
    return f"{source}: its compressed data are damaged or cut short ({error}); fetch it again"


def _checked_text(source: str, file: io.BufferedReader, progress: ProgressCallback) -> bytes:
    """Reads all of a file, and no further than where it turns out to be no log."""
    magic = file.read(len(_XZ))
    file.seek(0)
    compressed = magic.startswith(_GZIP) or magic == _XZ
    for first, program in _OTHERS.items():
        if magic.startswith(first):
            raise LogError(
                f"{source}: is compressed by {program}, which is not read; decompress it first, "
                "or compress it by gzip or xz"
            )
    text = io.BytesIO()
    line, line_length = 1, 0
    for piece in _pieces(file, magic):
        if line == 1 and b"\0" in piece:
            raise LogError(
                f"{source}: is not text; give a log in SWF or of sacct in UTF-8, plain or "
                "compressed by gzip or xz, or a store as sqlite:////its/path"
            )
        text.write(piece)
        size = text.tell()
        if compressed and size > max(HIGHEST_RATIO * file.tell(), UNSUSPICIOUS_TEXT):
            raise LogError(
                f"{source}: its first {file.tell():,} bytes decompress to more than "
                f"{HIGHEST_RATIO} times as many, which those of no log do; if you trust it, "
                "decompress it first"
            )
        if size > LARGEST_TEXT:
            raise LogError(
                f"{source}: holds more than {LARGEST_TEXT >> 30} GiB of text; cut it into several "
                "files, for instance one for each year"
            )
        end = piece.find(b"\n")
        if line_length + (end if end >= 0 else len(piece)) > LONGEST_LINE:
            raise LogError(
                f"{source}:{line}: is longer than {LONGEST_LINE >> 20} MiB, as no line of a log is"
            )
        line += piece.count(b"\n")
        line_length = len(piece) - piece.rfind(b"\n") - 1 if end >= 0 else line_length + len(piece)
        progress(file.tell())
    return text.getvalue()


def _pieces(file: io.BufferedReader, magic: bytes) -> Iterator[bytes]:
    """Yields the text piece by piece, decompressed."""
    if magic == _XZ:
        yield from _of_xz(file)
        return
    stream = gzip.GzipFile(fileobj=file) if magic.startswith(_GZIP) else file
    while piece := stream.read(_PIECE):
        yield piece


def _of_xz(file: io.BufferedReader) -> Iterator[bytes]:
    """Decompresses all streams of a file within bounds of memory, which `lzma.LZMAFile` lacks."""
    rest = file.read(_PIECE)
    while rest:
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        while not stream.eof:
            if stream.needs_input and not rest:
                rest = file.read(_PIECE)
                if not rest:
                    raise EOFError("it ends before its end is marked")
            piece = stream.decompress(rest, _PIECE)
            rest = b""
            if piece:
                yield piece
        rest = (stream.unused_data or file.read(_PIECE)).lstrip(b"\0")  # streams may be padded


def _format(name: str, text: bytes) -> Format:
    found = FIRST_LINE.match(text)
    first = found.group(1) if found else b""
    numbers = [_NUMBER.fullmatch(field) for field in first.split()]
    of_numbers = len(numbers) >= FIELD_COUNT and all(numbers)
    return "swf" if ".swf" in name.casefold() or first[:1] == b";" or of_numbers else "sacct"
