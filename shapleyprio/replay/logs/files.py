"""Files of text, plain or compressed, in blocks.

A thread reads and decompresses ahead of who uses the blocks: with two processors, a compressed log
takes little longer than a plain one.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import shutil
import subprocess
import zlib
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from glob import glob
from pathlib import Path

from shapleyprio.common.databases import without_password
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.memory import refuse_to_swap
from shapleyprio.replay.progress import ProgressCallback

HIGHEST_RATIO = 100
"""Bytes of text for each byte of a compressed file; real logs have 5 to 15."""

UNSUSPICIOUS_TEXT = 1 << 26
"""Bytes of text that may come out of a file however small it is."""

BLOCK = 1 << 23
"""Bytes."""

_READ = 1 << 20
_AHEAD = 3
"""So many blocks are read ahead, large ones: for each, the thread waits for the interpreter."""

_MEMORY = 1 << 28
"""Bytes that decompression may take; the best that xz and zstd make take half of it."""

_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WILD = frozenset("*?[")


def files_of(sources: Sequence[str]) -> list[str]:
    """Returns the files that names and patterns such as ``2025-*.sacct.xz`` stand for.

    Args:
        sources: names; one that is no file and has ``*``, ``?`` or ``[`` is a pattern.

    Raises:
        LogError: no file fits a pattern.
    """
    files = []
    for source in sources:
        if "://" in source or Path(source).exists() or not _WILD.intersection(source):
            files.append(source)
            continue
        found = sorted(glob(source, recursive=True))  # noqa: PTH207  # patterns may be absolute
        if not found:
            raise LogError(f"{without_password(source)}: no file matches")
        files += found
    return list(dict.fromkeys(files))


def blocks_of(source: str, progress: ProgressCallback) -> Iterator[bytes]:
    """Yields the text of a file, decompressed; the first block has a line that is not blank.

    Args:
        source: the file.
        progress: called with how far reading is, in bytes of the file as it is on disk.

    Raises:
        LogError: it cannot be read, is no text, is empty, decompresses to more than any log does,
            or the memory gets short.
    """
    shown = without_password(source)  # of what is taken for a file, too
    first: list[bytes] | None = []
    begun = 0
    with closing(_ahead(_blocks(shown, source))) as blocks:
        for number, (position, block) in enumerate(blocks):
            if number % _AHEAD == _AHEAD - 1:
                refuse_to_swap(source)
            if first is None:
                yield block
            else:
                first.append(block if number else block.removeprefix(_BYTE_ORDER_MARK))
                if b"\0" in block:
                    raise LogError(
                        f"{shown}: is not text; give a log in SWF or of sacct in UTF-8, plain or "
                        "compressed by gzip, xz or zstd, or a store as sqlite:////its/path"
                    )
                if begun or not first[-1].isspace():
                    begun += len(block)
                    if begun >= BLOCK or b"\n" in block.lstrip():
                        yield b"".join(first)
                        first = None
            progress(position)
    if first is not None:
        if not begun:
            raise LogError(f"{shown}: is empty")
        yield b"".join(first)


def bytes_of(source: str, progress: ProgressCallback) -> Generator[bytes]:
    """Yields what is in a file, decompressed, be it text or not.

    Args:
        source: the file.
        progress: as for `blocks_of`.

    Raises:
        LogError: it cannot be read, or decompresses to more than any log does.
    """
    with closing(_ahead(_blocks(without_password(source), source))) as blocks:
        for position, block in blocks:
            yield block
            progress(position)


def _ahead(blocks: Iterator[tuple[int, bytes]]) -> Generator[tuple[int, bytes]]:
    """Yields what it is given, made by a thread ahead."""
    thread = ThreadPoolExecutor(1)
    try:
        following = deque(thread.submit(next, blocks, None) for _ in range(_AHEAD))
        while (block := following.popleft().result()) is not None:
            following.append(thread.submit(next, blocks, None))
            yield block
    finally:
        thread.shutdown(cancel_futures=True)


def _blocks(shown: str, source: str) -> Iterator[tuple[int, bytes]]:
    """Yields blocks, each with how far the file is read behind it."""
    size = 0
    try:
        with Path(source).open("rb") as file:
            magic = file.read(len(_XZ))
            file.seek(0)
            compressed = magic.startswith((_GZIP, _XZ, _ZSTD))
            for block in _decompressed(file, magic):
                position = os.lseek(file.fileno(), 0, os.SEEK_CUR)
                size += len(block)
                if compressed and size > max(HIGHEST_RATIO * position, UNSUSPICIOUS_TEXT):
                    raise LogError(
                        f"{shown}: its first {position:,} bytes decompress to more than "
                        f"{HIGHEST_RATIO} times as many, as no log does; if you trust "
                        "it, decompress it first"
                    )
                yield position, block
    except (lzma.LZMAError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        if any(word in str(error) for word in ("emory", "Window")):
            raise LogError(
                f"{shown}: takes more than {_MEMORY >> 20} MiB of memory to decompress; if you "
                "trust it, decompress it first"
            ) from error
        raise LogError(
            f"{shown}: its compressed data are damaged or cut short ({error}); fetch it again"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LogError(f"{shown}: cannot be read: {reason}") from error


def _decompressed(file: io.BufferedReader, magic: bytes) -> Iterator[bytes]:
    if magic.startswith(_XZ):
        return _of_xz(file)
    if magic.startswith(_ZSTD):
        return _of_zstd(file)
    stream = gzip.GzipFile(fileobj=file) if magic.startswith(_GZIP) else file
    return iter(lambda: stream.read(BLOCK), b"")


def _of_xz(file: io.BufferedReader) -> Iterator[bytes]:
    """Decompresses all streams of a file within bounds of memory, which `lzma.LZMAFile` lacks."""
    rest = file.read(_READ)
    while rest:
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)
        while not stream.eof:
            if stream.needs_input and not rest:
                rest = file.read(_READ)
                if not rest:
                    raise EOFError("it ends before its end mark")
            block = stream.decompress(rest, BLOCK)
            rest = b""
            if block:
                yield block
        rest = stream.unused_data
        while not (rest := rest.lstrip(b"\0")):  # streams may be padded, by any length
            rest = file.read(_READ)
            if not rest:
                return


def _of_zstd(file: io.BufferedReader) -> Iterator[bytes]:
    """Lets the program zstd decompress: Python has it in its library from 3.14 on only."""
    program = shutil.which("zstd")
    if program is None:
        raise ValueError("it is compressed by zstd, and that program is missing; install zstd")
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    command = [program, "-dcq", f"--memory={_MEMORY >> 20}MB"]
    with subprocess.Popen(
        command, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            while block := process.stdout.read(BLOCK):
                yield block
        finally:
            process.stdout.close()
            said = process.stderr.read().decode(errors="replace").strip()
        if process.wait() != 0:
            raise EOFError(said.partition("\n")[0].removeprefix("/*stdin*\\ : ").strip())
