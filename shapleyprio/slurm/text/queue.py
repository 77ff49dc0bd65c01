"""Reads the names of pending jobs, the output of sprio, and the complaints of scontrol."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import chain, groupby, islice
from typing import NamedTuple

from shapleyprio.slurm.port import Malformed
from shapleyprio.slurm.text.values import LARGEST_ID, UnreadableError, whole


def task_list(tasks: Iterable[int]) -> str:
    """Returns rising numbers of tasks as Slurm writes them.

    >>> task_list([0, 1, 2, 5, 7, 8])
    '0-2,5,7-8'
    """
    ranges: list[list[int]] = []
    for task in tasks:
        if ranges and task == ranges[-1][1] + 1:
            ranges[-1][1] = task
        else:
            ranges.append([task, task])
    return ",".join(f"{low}-{high}" if high > low else str(low) for low, high in ranges)


FACTORS_FORMAT = "%i %S %B %y"
"""Fields that sprio prints: four numbers, so that no user's text is among them. The last one is
the priority as a fraction of the largest there is, but if it is fixed the priority itself."""

NOBODY_WAITS = "Unable to find jobs matching"
"""Beginning of the line that sprio prints when it has nothing to show."""

LARGEST_FACTOR = 2**31
LARGEST_TASK = 4_000_001  # the largest MaxArraySize
LONGEST_TASK = 7  # digits of that
MOST_PIECES = 100_000


class Factors(NamedTuple):
    """What `PendingJob` has under the same names."""

    site_factor: int | None
    association: int | None
    is_fixed: bool = False


FIXED = Factors(None, None, is_fixed=True)
"""Those of a job whose priority is fixed: sprio prints 0 for each."""

_PLAIN_FACTORS = re.compile(
    r"(?:[1-9][0-9]{0,8} -?[0-9]{1,9} [0-9]{1,9} 0\.[0-9]{1,20}(?:\n|\Z))*+"
)
"""Lines of which every number is within its bounds."""

_PLAIN_VALUES = re.compile(r"(?: *+[1-9][0-9]{0,8} ++-?[0-9]{1,9}(?:\n|\Z))*+")
"""Likewise, of two numbers."""

_LABEL = re.compile(
    r"(?P<base>[0-9]{1,10})"
    r"(?:_[0-9]{1,7}|_\[(?P<tasks>[0-9,:\-]+)(?:%(?P<at_once>[0-9]{1,9}))?\]|\+[0-9]{1,5})?"
)
_COMPONENT = re.compile(r"([0-9]{1,10})\+[0-9]{1,5}")
_FIRST_TASK = re.compile(r"(?P<base>[0-9]{1,10})_\[?(?P<task>[0-9]{1,7})")
_TARGET = re.compile(r"[0-9]{1,10}(?:_[0-9]{1,7}|_\[[0-9]+(?:[,\-][0-9]+)*\]|\+[0-9]{1,5})?")
_PIECE = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7})(?::([0-9]{1,7}))?)?")
_FOR_JOB = re.compile(r"(?:scontrol: )?(?:error: )?(?P<why>.+) for job (?P<job>[0-9][^ ]*)")
_ARRAY = re.compile(r"(?P<job>[0-9]+_[0-9\[][^ ]*): (?P<why>.+)")


def factors_line(line: str) -> tuple[int, Factors] | Malformed:
    """Reads one line of ``sprio -h`` with `FACTORS_FORMAT`: job id and factors."""
    number, _, factors = line.strip().partition(" ")
    try:
        return whole("job id", number, 1, LARGEST_ID), _factors_of(factors)
    except UnreadableError as error:
        return Malformed("sprio", line, str(error))


def factors_in(texts: Iterable[str]) -> tuple[dict[int, Factors], list[Malformed]]:
    r"""Reads what ``sprio -h`` prints with `FACTORS_FORMAT`: job id -> factors, and other lines.

    Args:
        texts: each some whole lines.

    >>> found, malformed = factors_in(["33 -5 0 0.00023\n34 0 0 5.00000", "35 x 0 0.1"])
    >>> found[33].site_factor, found[34] == FIXED, len(malformed)
    (-5, True, 1)
    """
    found: dict[int, Factors] = {}
    malformed: list[Malformed] = []
    for text in texts:
        if _PLAIN_FACTORS.fullmatch(text):  # many lines at once are read far sooner
            numbers = text.split()
            factors = map(_factors, numbers[1::4], numbers[2::4])
            found.update(zip(map(int, numbers[::4]), factors, strict=True))
            continue
        for line in text.split("\n"):
            if not line or line.startswith(NOBODY_WAITS):
                continue
            read = factors_line(line)
            if isinstance(read, Malformed):
                malformed.append(read)
            else:
                found[read[0]] = read[1]
    return found, malformed


def _factors_of(text: str) -> Factors:
    fields = text.split()
    if len(fields) != 3:
        raise UnreadableError(f"{len(fields) + 1} fields instead of 4")
    site_factor, association, priority = fields
    factors = _factors(site_factor, association)
    is_fixed = whole("priority", priority.partition(".")[0], 0, LARGEST_ID) > 0
    return FIXED if is_fixed else factors


@lru_cache(maxsize=4096)
def _factors(site_factor: str, association: str) -> Factors:
    return Factors(
        site_factor=whole("site factor", site_factor, -LARGEST_FACTOR, LARGEST_FACTOR),
        association=whole("association", association, 0),
    )


def value_line(line: str) -> tuple[int, int | None] | None:
    """Reads a job's number and perhaps a value from a line of numbers; None if it is none.

    >>> value_line("33   -5"), value_line("33"), value_line("Unable to find jobs")
    ((33, -5), (33, None), None)
    """
    try:
        numbers = [whole("number", text, -LARGEST_FACTOR, LARGEST_ID) for text in line.split()]
    except UnreadableError:
        return None
    if len(numbers) not in {1, 2}:
        return None
    return numbers[0], numbers[1] if len(numbers) == 2 else None


def values_in(texts: Iterable[str], job_ids: Collection[int]) -> dict[int, int | None]:
    r"""Reads the values at some jobs from lines of two numbers, or one: job id -> value.

    Args:
        texts: each some whole lines.
        job_ids: of the lines that are printed, perhaps few.

    >>> values_in(["   33 -5\n34 0\n", "35\nUnable to find jobs"], {33, 35, 36})
    {33: -5, 35: None}
    """
    names = set(map(str, job_ids))
    found: dict[int, int | None] = {}
    for text in texts:
        if _PLAIN_VALUES.fullmatch(text):  # many lines at once are read far sooner
            words = text.split()
            shown = dict(zip(words[::2], words[1::2], strict=True))
            found.update((int(name), int(shown[name])) for name in names & shown.keys())
            continue
        lines = (line for line in text.split("\n") if line.lstrip().partition(" ")[0] in names)
        found.update(read for read in map(value_line, lines) if read is not None)
    return found


def target_of(label: str) -> str:
    """Returns the ``scontrol update JobId=`` argument for exactly the tasks of a squeue label.

    scontrol knows neither the throttle of ``33_[4-9%1]`` nor the step of ``33_[1-9:2]``, and takes
    the bare number of an array or of a heterogeneous job for all its tasks or components. Were a
    task left out, Slurm would split the array into one job for each task.

    Raises:
        UnreadableError: this is no job's name, or its tasks were cut short.
    """
    if len(label) < 10 and label.isascii() and label.isdigit():
        return label
    match = _LABEL.fullmatch(label)
    if match is None:
        raise UnreadableError(f"job name: {label[:80]!r} names no job or array")
    if match["tasks"] is None:
        return label
    pieces = (piece for text in match["tasks"].split(",") for piece in _written_out(text))
    return f"{match['base']}_[{','.join(pieces)}]"


def _written_out(piece: str) -> Iterable[str]:
    """Writes out one piece of an array's tasks, such as ``1-9:2``, without its step."""
    match = _PIECE.fullmatch(piece)
    low, high, step = (int(part or 0) for part in match.groups()) if match else (1, 0, 0)
    if match is None or (match[2] and low > high) or max(low, high) > LARGEST_TASK:
        raise UnreadableError(f"job name: {piece[:80]!r} is not a range of tasks")
    if match[3] is None:
        return [piece]
    if step == 0 or (high - low) // step > MOST_PIECES:
        raise UnreadableError(f"job name: {piece!r} is not a range of tasks")
    return map(str, range(low, high + 1, step))


def is_task(text: str) -> bool:
    """Returns whether this is the number of one task of an array."""
    return len(text) <= LONGEST_TASK and text.isascii() and text.isdigit()


def names_task(label: str, task: int) -> bool:
    """Returns whether a task is among those of an array's name.

    >>> names_task("33_[0-2,5-17:4%2]", 13), names_task("33_[0-2,5-17:4%2]", 14)
    (True, False)
    """
    match = _LABEL.fullmatch(label)
    for piece in (match["tasks"] or "").split(",") if match else ():
        if found := _PIECE.fullmatch(piece):
            low, high, step = (int(part) if part else None for part in found.groups())
            assert low is not None
            if low <= task <= (low if high is None else high) and (task - low) % (step or 1) == 0:
                return True
    return False


def component_of(label: str) -> str | None:
    """Returns the number of the heterogeneous job that a name is a component of; None if of none.

    >>> component_of("33+1"), component_of("33_1")
    ('33', None)
    """
    match = _COMPONENT.fullmatch(label)
    return match[1] if match else None


def has_first_task(label: str, asked: str) -> bool:
    """Returns whether the first task in a name, if it names tasks, is among those of an array.

    >>> has_first_task("33_[0-8%2]", "33_[4-6]"), has_first_task("33_[0-8]", "33_9")
    (True, False)
    >>> has_first_task("33_[0-8]", "34_4"), has_first_task("33_[0-8]", "33")
    (False, False)
    """
    first = _FIRST_TASK.match(asked)
    return bool(
        first and first["base"] == _number_of(label) and names_task(label, int(first["task"]))
    )


def tasks_at_once(label: str) -> int | None:
    """Returns how many tasks of an array may run at the same time; None for any number.

    >>> tasks_at_once("33_[1-40:3%2]"), tasks_at_once("33_[1-40:3]")
    (2, None)
    """
    match = _LABEL.fullmatch(label)
    return int(match["at_once"]) if match and match["at_once"] else None


def first_tasks(target: str, count: int) -> str:
    """Returns the name of the first so many tasks of an array.

    >>> first_tasks("33_[1,4-9]", 3)
    '33_[1,4-5]'
    """
    tasks = chain.from_iterable(range(low, high + 1) for low, high in _ranges(target))
    return f"{_number_of(target)}_[{task_list(islice(tasks, count))}]"


def other_tasks(target: str, names: Iterable[str]) -> str | None:
    """Returns the name of those tasks in a name that no other one has; None if it has them all.

    >>> other_tasks("33_[0-3,9]", ["33_1", "33_[2-3]"]), other_tasks("33_4", ["33_4"])
    ('33_[0,9]', None)
    >>> other_tasks("33", []), other_tasks("33+0", ["33+1"])
    ('33', '33+0')
    """
    if "_" not in target:
        return target
    taken = [bounds for name in names for bounds in _ranges(name)]
    tasks = [
        task
        for low, high in _ranges(target)
        for task in range(low, high + 1)
        if not any(first <= task <= last for first, last in taken)
    ]
    return f"{_number_of(target)}_[{task_list(tasks)}]" if tasks else None


def is_target(text: str) -> bool:
    """Returns whether scontrol would see one job or array in it: a bad name spoils its list."""
    return _TARGET.fullmatch(text) is not None


def refusals(complaints: str, targets: Collection[str]) -> dict[str, str]:
    """Returns the targets that scontrol would not change, with the reasons.

    An array whose tasks did not fare alike stands there as ``33_4,6: why``; it counts as refused.

    Args:
        complaints: standard error of ``scontrol update`` after rc 1.
        targets: those that were to be updated.
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
