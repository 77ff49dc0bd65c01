"""Which file is read as what, and what is said about one that cannot be read."""

from __future__ import annotations

import gzip
import lzma
from typing import TYPE_CHECKING

import pytest

from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.reading import read_log
from tests.replay.traces import trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from shapleyprio.replay.workloads.choices import Format

SWF = b"7 100 20 300 4 0 0 8 3600 0 1 5 6 1 2 3 -1 0\n"
SACCT = b"JobID|Submit|Start|Elapsed|NCPUS\n42|2017-07-01T10:00:00|2017-07-01T10:05:00|00:01:00|2\n"


def plain(text: bytes) -> bytes:
    return text


def in_two_members(text: bytes) -> bytes:
    return gzip.compress(text[:10]) + gzip.compress(text[10:])


def in_streams_far_apart(text: bytes) -> bytes:
    return lzma.compress(text[:10]) + bytes(3 << 20) + lzma.compress(text[10:]) + bytes(2 << 20)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.mark.parametrize(
    "packed", [plain, gzip.compress, lzma.compress, in_two_members, in_streams_far_apart]
)
def test_files_are_read_plain_or_compressed_whatever_their_names(
    file: Path, packed: Callable[[bytes], bytes]
) -> None:
    file.write_bytes(packed(SWF))
    assert read_log(str(file)).job.tolist() == [7]
    file.write_bytes(packed(SACCT))
    assert read_log(str(file)).job.tolist() == [42]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("log", SWF, "swf"),
        ("log", b"\n \n; a comment\n" + SWF, "swf"),
        ("log", SWF.replace(b" 0 0 8", b" 1.5 0 8"), "swf"),
        ("log", SACCT, "sacct"),
        ("log", b"\n\n" + SACCT, "sacct"),
        ("jobs.SWF.gz", b"1 2\n" + SWF, "swf"),
        ("log", b"\xef\xbb\xbf" + SACCT, "sacct"),
        ("log", b"\xef\xbb\xbf" + SWF, "swf"),
    ],
)
def test_the_format_is_found_out(tmp_path: Path, name: str, text: bytes, found: Format) -> None:
    (tmp_path / name).write_bytes(text)
    log = read_log(str(tmp_path / name))
    assert log.format == found
    assert len(log.job) == 1


def test_a_folders_name_says_nothing_about_the_format(tmp_path: Path) -> None:
    (tmp_path / "logs.swf").mkdir()
    (tmp_path / "logs.swf" / "jobs").write_bytes(SACCT)
    assert read_log(str(tmp_path / "logs.swf" / "jobs")).format == "sacct"


def test_the_format_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "jobs.swf").write_bytes(SACCT)
    assert read_log(str(tmp_path / "jobs.swf"), format="sacct").job.tolist() == [42]
    with pytest.raises(LogError, match=r"jobs.swf:1: .*is it in another format"):
        read_log(str(tmp_path / "jobs.swf"))


def test_local_times_are_those_of_the_zone(file: Path) -> None:
    file.write_bytes(SACCT)
    utc, warsaw = read_log(str(file)), read_log(str(file), time_zone="Europe/Warsaw")
    assert (utc.start - warsaw.start).tolist() == [2 * 3600]


def test_strictness_and_fields_reach_the_readers(file: Path) -> None:
    fields = ["jobid", "submit", "start", "elapsed", "ncpus"]
    rows = SACCT.partition(b"\n")[2]
    file.write_bytes(rows)
    assert read_log(str(file), fields=fields).job.tolist() == [42]
    file.write_bytes(rows + b"43|\n")
    with pytest.raises(LogError, match="log:2: 2 fields instead of 5"):
        read_log(str(file), fields=fields, strict=True)
    file.write_bytes(SWF + b"43\n")
    with pytest.raises(LogError, match="log:2: 1 fields instead of 18"):
        read_log(str(file), strict=True)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd", "Europe"])
def test_an_unknown_time_zone_is_named(file: Path, zone: str) -> None:
    file.write_bytes(SACCT)
    with pytest.raises(LogError, match=f"time zone '{zone}' is not known; name one such as"):
        read_log(str(file), time_zone=zone)


@pytest.mark.parametrize("text", [b"", b"\n \n", gzip.compress(b"", mtime=0), lzma.compress(b" ")])
def test_an_empty_file_is_no_log(file: Path, text: bytes) -> None:
    file.write_bytes(text)
    with pytest.raises(LogError, match="log: is empty"):
        read_log(str(file))


def test_a_missing_file_is_named(file: Path) -> None:
    with pytest.raises(LogError, match="log: cannot be read: No such file or directory"):
        read_log(str(file))


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="cannot be read: Is a directory"):
        read_log(str(tmp_path))


@pytest.mark.parametrize("packed", [gzip.compress, lzma.compress])
def test_compressed_data_cut_short_or_damaged_are_reported(
    file: Path, packed: Callable[[bytes], bytes]
) -> None:
    whole = packed(SWF * 100)
    for damaged in (whole[:-5], whole[:40], whole[:20] + b"?" * 20 + whole[40:]):
        file.write_bytes(damaged)
        with pytest.raises(LogError, match="compressed data are damaged or cut short"):
            read_log(str(file))


@pytest.mark.parametrize(
    "data", [SACCT.decode().encode("utf-16"), b"SQLite format 3\0", b"RIFF\0\0"]
)
def test_what_is_not_text_is_no_log(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    with pytest.raises(LogError, match=r"log: is not text; .* sqlite:////its/path"):
        read_log(str(file))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("nosuchdatabase://x/y", "'nosuchdatabase' cannot be used"),
        ("sqlite:////nosuchfolder/store.db", "does not exist"),
    ],
)
def test_a_url_is_a_store(url: str, reason: str) -> None:
    with pytest.raises(LogError, match=reason):
        read_log(url)


def test_progress_ends_at_the_files_size(file: Path) -> None:
    answer: list[int] = []
    file.write_bytes(gzip.compress(SWF * 200_000, compresslevel=0))
    read_log(str(file), progress=answer.append)
    assert len(answer) > 1
    assert answer == sorted(answer)
    assert answer[-1] == file.stat().st_size


def test_a_real_log_is_the_same_however_it_is_packed(tmp_path: Path) -> None:
    text = gzip.decompress(trace("DAS2-fs1-2003-1.swf.gz").read_bytes())
    (tmp_path / "das2").write_bytes(text)
    (tmp_path / "das2.xz").write_bytes(lzma.compress(text, preset=0))
    first, second = read_log(str(tmp_path / "das2")), read_log(str(tmp_path / "das2.xz"))
    assert first.format == second.format == "swf"
    assert first.start.tolist() == second.start.tolist()
    assert len(first.job) == 38_294
