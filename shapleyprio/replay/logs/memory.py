"""How much memory this process may still take: by its machine, and by its control groups.

A batch job and a container have a control group with a limit of its own; whoever takes more there
is killed, however much the machine has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shapleyprio.common.databases import without_password
from shapleyprio.common.errors import Remedy
from shapleyprio.replay.errors import LogError

KEPT_FREE = 1 << 28
"""Bytes of memory that reading leaves to others."""

CONTROL_GROUPS = Path("/sys/fs/cgroup")
OWN_CONTROL_GROUPS = Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class _Hierarchy:
    """Where one version of Linux's control groups keeps what it knows of memory.

    Attributes:
        mounts: below CONTROL_GROUPS; it is at one of them.
        limits: files with bytes, or a word where there is no limit.
        taken: file with bytes.
        cached: lines of ``memory.stat`` with bytes of files that are dropped when memory is short.
    """

    mounts: tuple[str, ...]
    limits: tuple[str, ...]
    taken: str
    cached: tuple[str, ...]


_FIRST = _Hierarchy(
    mounts=("memory",),
    limits=("memory.limit_in_bytes",),
    taken="memory.usage_in_bytes",
    cached=("total_active_file", "total_inactive_file"),
)
_SECOND = _Hierarchy(
    mounts=(".", "unified"),
    limits=("memory.max", "memory.high"),
    taken="memory.current",
    cached=("active_file", "inactive_file"),
)


def free_memory() -> int | None:
    """Returns how many bytes this process may still take before it swaps or is killed.

    Returns:
        None where the machine does not say.
    """
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvail"))
    except (OSError, StopIteration, ValueError):
        return None
    return min((free, *_left_in_groups()))


def refuse_to_swap(source: str, *, coming: int | None = None) -> None:
    """Ends reading while there is still room for what comes after it.

    Args:
        source: what is read.
        coming: bytes of memory that will be needed; None for those of a log read in pieces, whose
            columns are joined one by one.

    Raises:
        LogError: the memory gets short.
    """
    free = free_memory()
    if free is None:
        return
    taken = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if free < (taken // 2 if coming is None else coming) + KEPT_FREE:
        raise LogError(
            f"{without_password(source)}: is larger than the memory that is free "
            f"({taken >> 20} MiB are taken, {free >> 20} MiB left)",
            Remedy.PART_OF_LOG,
        )


def _left_in_groups() -> Iterator[int]:
    """Yields what the control groups of this process, and those around them, still allow."""
    try:
        lines = OWN_CONTROL_GROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        hierarchy = _FIRST if controllers else _SECOND
        for mount in hierarchy.mounts:
            group = CONTROL_GROUPS / mount / name.lstrip("/")
            # a container may not see the group it is in, but those around it
            for place in (group, *group.parents):
                yield from _left(place, hierarchy)
                if place == CONTROL_GROUPS:
                    break


def _left(group: Path, hierarchy: _Hierarchy) -> Iterator[int]:
    for limit in hierarchy.limits:
        try:
            most = int((group / limit).read_text())
            taken = int((group / hierarchy.taken).read_text())
            lines = (group / "memory.stat").read_text().splitlines()
        except (OSError, ValueError):  # no limit
            continue
        known = dict(line.split(maxsplit=1) for line in lines)
        yield most - taken + sum(int(known.get(name, 0)) for name in hierarchy.cached)
