"""What daemons wrote before they ended, for messages."""

from __future__ import annotations

from pathlib import Path


def last_words(log: Path) -> str:
    """Return the end of a log, for messages."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return "\n".join(["its log ends with", *lines[-8:]] if lines else ["its log is empty"])
