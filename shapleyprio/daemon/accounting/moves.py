"""What changed hands, in words: the same in the log, in checks, in dry runs and in commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shapleyprio.common.wording import clock_time, listed
from shapleyprio.config.membership import host_list_of
from shapleyprio.fairness.tenure import NOBODY, Kind, Move


def called(holder: str, kind: Kind | None = None) -> str:
    """Returns the printed name of an organization, of none, or of what is left out.

    Args:
        holder: of a tenure.
        kind: of what it holds; no organization holds partitions.
    """
    if holder != NOBODY:
        return holder.strip()
    return "taking part" if kind == "partition" else "nobody"


def in_words(kind: Kind, names: Sequence[str]) -> str:
    """Names nodes, accounts or partitions, such as ``nodes b[1-3]``."""
    if len(names) == 1:
        return f"{kind} {names[0]}"
    return f"{kind}s {host_list_of(names) if kind == 'node' else listed(sorted(names))}"


def together(moves: Iterable[Move]) -> list[tuple[str, str, int]]:
    """Puts together what passed from one organization to another at one time.

    Returns:
        what moved, such as ``nodes b[1-3]``; from whom to whom, such as ``physics → biology``; and
        since when, in seconds since the epoch.
    """
    groups: dict[tuple[int, Kind, str, str], list[str]] = {}
    for move in moves:
        groups.setdefault((move.since, move.kind, move.before, move.after), []).append(move.name)
    return [
        (in_words(kind, names), f"{called(before, kind)} → {called(after, kind)}", since)
        for (since, kind, before, after), names in groups.items()
    ]


def sentences(moves: Iterable[Move]) -> list[str]:
    """Returns lines such as ``node b3: physics → biology since 2026-11-22 14:02:00``."""
    return [
        f"{what}: {change} since {clock_time(since)}" for what, change, since in together(moves)
    ]


def holds_nothing(organization: str) -> str:
    """Returns the sentence about an organization for which nothing can count."""
    return f"organization {organization} owns no node and no account"
