"""Reads what squeue and sprio tell of waiting jobs, and what scontrol complains about them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import groupby

from shapleyprio.slurm.port import Malformed, PendingJob
from shapleyprio.slurm.text import SEPARATOR, UnreadableError, amount, known_moment, whole

PENDING_FORMAT = SEPARATOR.join(
    ("%A", "%i", "%a", "%u", "%P", "%q", "%Q", "%y", "%V", "%C", "%r")  # the reason may be anything
)
"""What squeue is asked for.

With ``--array-unique``: without it squeue puts all waiting tasks of an array on one line and shows
the nice and priority of one of them, even if others were given their own; and ``-r`` of 22.05
forgets the last task of an array with a step.
"""

SITE_FACTOR_FORMAT = SEPARATOR.join(("%i", "%S"))
"""What sprio is asked for."""

NOBODY_WAITS = "Unable to find jobs matching"
"""How a line of sprio's begins when it has nothing to show."""

LARGEST_ID = 2**32 - 1
LARGEST_FACTOR = 2**31
LARGEST_TASK = 4_000_001  # the largest MaxArraySize
MOST_PIECES = 100_000

_LABEL = re.compile(
    r"(?P<base>[0-9]{1,10})(?:_[0-9]{1,7}|_\[(?P<tasks>[0-9,:\-]+)(?:%[0-9]+)?\]|\+[0-9]{1,5})?"
)
_TARGET = re.compile(r"[0-9]{1,10}(?:_[0-9]{1,7}|_\[[0-9]+(?:[,\-][0-9]+)*\]|\+[0-9]{1,5})?")
_PIECE = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7})(?::([0-9]{1,7}))?)?")
_FOR_JOB = re.compile(r"(?:scontrol: )?(?:error: )?(?P<why>.+) for job (?P<job>[0-9][^ ]*)")
_ARRAY = re.compile(r"(?P<job>[0-9]+_[0-9\[][^ ]*): (?P<why>.+)")


def pending_line(line: str) -> PendingJob | Malformed:
    """Reads one line of ``squeue -h --array-unique`` with `PENDING_FORMAT`.

    The site factor is not told, see `with_site_factors`.
    """
    try:
        return _pending(line)
    except UnreadableError as error:
        return Malformed("squeue", line, str(error))


def _pending(line: str) -> PendingJob:
    fields = line.split(SEPARATOR, 10)
    if len(fields) != 11:
        raise UnreadableError(f"{len(fields)} fields instead of 11")
    job_id, label, account, user, partition, qos, priority, nice, submit, cpus, reason = fields
    return PendingJob(
        job_id=whole("job id", job_id, 1, LARGEST_ID),
        target=target_of(label),
        label=label,
        account=account,
        user=user,
        partition=partition,
        qos=qos,
        reason=reason,
        submit=known_moment("submit time", submit),
        priority=whole("priority", priority, 0, LARGEST_ID),
        nice=whole("nice", nice, -LARGEST_FACTOR, LARGEST_FACTOR),
        site_factor=None,
        processors=amount("CPUs", cpus),
    )


def site_factor_line(line: str) -> tuple[int, int] | Malformed:
    """Reads one line of ``sprio -h`` with `SITE_FACTOR_FORMAT`: job id and site factor."""
    job_id, separator, factor = line.partition(SEPARATOR)
    if not separator:
        return Malformed("sprio", line, "1 field instead of 2")
    try:
        return (
            whole("job id", job_id.strip(), 1, LARGEST_ID),
            whole("site factor", factor.strip(), -LARGEST_FACTOR, LARGEST_FACTOR),
        )
    except UnreadableError as error:
        return Malformed("sprio", line, str(error))


def with_site_factors(
    jobs: Iterable[PendingJob | Malformed], factors: Mapping[int, int]
) -> list[PendingJob | Malformed]:
    """Adds to the jobs the site factors of those that have one told, by Slurm's own number."""
    return [
        replace(job, site_factor=factors.get(job.job_id)) if isinstance(job, PendingJob) else job
        for job in jobs
    ]


def target_of(label: str) -> str:
    """What ``scontrol update JobId=`` takes for exactly the tasks that squeue lists together.

    It knows neither the throttle of ``33_[4-9%1]`` nor the step of ``33_[1-9:2]``, and takes the
    bare number of an array or of a heterogeneous job for all its tasks or components. Were a
    task left out, Slurm would split the array into one job for each task.

    Raises:
        UnreadableError: this is no job's name, or its tasks were cut short.
    """
    match = _LABEL.fullmatch(label)
    if match is None:
        raise UnreadableError(f"job name: {label[:80]!r} names no job or array")
    if match["tasks"] is None:
        return label
    pieces = (piece for text in match["tasks"].split(",") for piece in _written_out(text))
    return f"{match['base']}_[{','.join(pieces)}]"


def _written_out(piece: str) -> Iterable[str]:
    """One piece of an array's tasks, such as ``1-9:2``, without its step."""
    match = _PIECE.fullmatch(piece)
    low, high, step = (int(part or 0) for part in match.groups()) if match else (1, 0, 0)
    if match is None or (match[2] and low > high) or max(low, high) > LARGEST_TASK:
        raise UnreadableError(f"job name: {piece[:80]!r} is not a range of tasks")
    if match[3] is None:
        return [piece]
    if step == 0 or (high - low) // step > MOST_PIECES:
        raise UnreadableError(f"job name: {piece!r} is not a range of tasks")
    return map(str, range(low, high + 1, step))


def is_target(text: str) -> bool:
    """Whether scontrol would see one job or array in it: one bad name spoils its whole list."""
    return _TARGET.fullmatch(text) is not None


def refusals(complaints: str, targets: Collection[str]) -> dict[str, str]:
    """Which of the targets scontrol would not change, and why.

    An array whose tasks did not fare alike is told as ``33_4,6: why``; it counts as refused.

    Args:
        complaints: standard error of ``scontrol update`` after rc 1.
        targets: what it was told to update.
    """
    by_job = {
        job: list(group) for job, group in groupby(sorted(targets, key=_number_of), key=_number_of)
    }
    refused: dict[str, str] = {}
    for line in complaints.splitlines():
        match = _FOR_JOB.fullmatch(line.strip()) or _ARRAY.fullmatch(line.strip())
        if match is None or match["why"] == "No error":
            continue
        job, why = match["job"], match["why"]
        related = by_job.get(_number_of(job), [])
        exact = [target for target in related if target == job]
        for target in exact or [t for t in related if _share_tasks(t, job)]:
            refused.setdefault(target, why)
    return refused


def _number_of(job: str) -> str:
    return re.split(r"[_+]", job, maxsplit=1)[0]


def _share_tasks(target: str, job: str) -> bool:
    ours, theirs = _ranges(target), _ranges(job)
    if not ours or not theirs:  # one of them is a whole job
        return True
    return any(a <= d and c <= b for a, b in ours for c, d in theirs)


def _ranges(job: str) -> list[tuple[int, int]]:
    found = re.findall(r"([0-9]+)(?:-([0-9]+))?", job.partition("_")[2])
    return [(int(low), int(high or low)) for low, high in found]
