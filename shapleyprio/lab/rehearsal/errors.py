"""Errors in what a site says of its Slurm."""

from __future__ import annotations

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
