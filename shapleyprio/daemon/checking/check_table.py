"""Finds out whether new jobs can get their points from the table of points."""

from __future__ import annotations

import os
import pwd
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.layout import Layout, SubmissionSettings
from shapleyprio.slurm.points_table import TableError, read_table

SUBJECT = "push.table"
PLUGIN = "lua"


def check_table(path: Path, layout: Layout, now: int) -> Iterator[Finding]:
    """Yields what keeps the table from being written, from being read, or from having an effect.

    Args:
        path: of the table.
        layout: the cluster.
        now: Slurm's clock, seconds since the epoch.
    """
    if PLUGIN not in layout.submission.plugins:
        yield Finding(
            Severity.ERROR,
            "JobSubmitPlugins",
            "lacks lua: slurmctld does not read the table of points (push.table)",
            "set JobSubmitPlugins=lua in slurm.conf, put job_submit.lua and "
            "shapleyprio_points.lua beside it and restart slurmctld, or leave push.table out",
        )
    folder = path.parent
    if not folder.is_dir():
        yield Finding(
            Severity.ERROR,
            SUBJECT,
            f"there is no directory {folder}",
            f"make it: install -d -m 755 -o shapleyprio -g shapleyprio {folder}",
        )
        return
    yield from _permissions(path, layout.submission)
    yield from _content(path, now)


def _permissions(path: Path, submission: SubmissionSettings) -> Iterator[Finding]:
    folder = path.parent
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        yield Finding(
            Severity.ERROR,
            SUBJECT,
            f"this user may not write into {folder}",
            "run this as the daemon's user; if you did, give the directory to that user",
        )
    if folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield Finding(
            Severity.ERROR,
            SUBJECT,
            f"others may write into {folder}, and so can choose the points of their jobs",
            f"chmod go-w {folder}",
        )
    hosts = {host.partition(".")[0] for host in submission.controller_hosts}
    here = socket.gethostname().partition(".")[0]
    if elsewhere := sorted(hosts - {here}):
        yield Finding(
            Severity.NOTICE,
            SUBJECT,
            f"slurmctld runs on {', '.join(elsewhere)}, which must see the same {path}",
            "keep it on a file system that both hosts share, or run the daemon there",
        )
    if here in hosts and (shut := _shut_off(path, submission.slurm_user)):
        yield Finding(
            Severity.ERROR,
            SUBJECT,
            f"SlurmUser (number {submission.slurm_user}) may not read {shut}",
            f"chmod o+{'x' if shut.is_dir() else 'r'} {shut}",
        )


def _content(path: Path, now: int) -> Iterator[Finding]:
    if not path.exists():
        yield Finding(
            Severity.NOTICE,
            SUBJECT,
            f"there is no {path} yet, so new jobs get no points from it",
            "start the daemon; if it runs, see its log",
        )
        return
    try:
        table = read_table(path)
    except TableError as error:
        yield Finding(
            Severity.ERROR,
            SUBJECT,
            f"{path} {error}, so new jobs get no points from it",
            "let only the daemon write it; its next cycle does",
        )
        return
    if abs(now - table.written) > table.lasts:
        yield Finding(
            Severity.WARNING,
            SUBJECT,
            f"{path} is {now - table.written} s old and valid for {table.lasts} s: new jobs get "
            "no points from it",
            "start the daemon; if it runs, see its log",
        )


def _shut_off(path: Path, user: int | None) -> Path | None:
    """Returns the first of the file and the directories above that a user may not read."""
    if user is None or user == 0:
        return None
    try:
        entry = pwd.getpwuid(user)
        groups = set(os.getgrouplist(entry.pw_name, entry.pw_gid))
    except KeyError:
        groups = set()
    for folder in reversed(path.parents):
        if not _may(folder, user, groups, 0o1):
            return folder
    return path if path.exists() and not _may(path, user, groups, 0o4) else None


def _may(path: Path, user: int, groups: set[int], right: int) -> bool:
    found = path.stat()
    if found.st_uid == user:
        return bool(found.st_mode & right << 6)
    if found.st_gid in groups:
        return bool(found.st_mode & right << 3)
    return bool(found.st_mode & right)
