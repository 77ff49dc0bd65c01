"""The jobs of ``sacct --json``, whose fields are found one by one.

The plugins that write JSON changed with Slurm: a time limit is a number in 22.05 and says in later
releases whether it is set at all, and a state is a word that became a list of words. A job of
another shape is malformed; only what is no JSON at all ends reading.
"""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from shapleyprio.common.databases import without_password
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.columns import column_of
from shapleyprio.replay.logs.sacct_lines import Rows
from shapleyprio.replay.workloads.log import MalformedLine

AT_ONCE = 10_000
"""Jobs that are read together."""

ONE_BY_ONE = "give the files one by one, so that a record that several have counts once"
"""What to do with files that were put together."""


class JobCells(NamedTuple):
    """Some jobs of a file.

    Attributes:
        jobs: the `FIELDS` of each.
        numbers: the line of the file where each of them begins.
        malformed: what the file has among them that has no fields.
    """

    jobs: Sequence[Sequence[str]]
    numbers: Sequence[int]
    malformed: tuple[MalformedLine, ...] = ()


def rows_of(cells: JobCells) -> Rows:
    """Returns them as columns."""
    count = len(cells.jobs)
    texts = zip(*cells.jobs, strict=True) if count else ((),) * len(FIELDS)
    return Rows(
        columns={name: column_of(name, field) for name, field in zip(FIELDS, texts, strict=True)},
        starts=np.arange(count),
        counts=np.full(count, len(FIELDS)),
    )


FIELDS = (
    *("jobidraw", "account", "user", "group", "partition", "qos", "submit", "eligible", "start"),
    *("end", "elapsedraw", "alloccpus", "state", "timelimit", "nodelist", "cluster"),
)
LONGEST_JOB = 1 << 28
"""Letters of a job with its steps."""

BEGINS = re.compile(rb"\s*\{")
_JOBS = re.compile(r'"jobs"\s*:\s*\[')
_LONGEST_BEFORE = 1 << 12
_BETWEEN = re.compile(r"[\s,]*")
_CONTROL = re.compile(r"[\0-\x1f\x7f]")
_LONGEST_TOKEN = len("-Infinity")
_SHOWN = 80


class _OddError(Exception):
    """A job is not as sacct prints it; the message says what is odd."""


def cells_of_json(source: str, blocks: Iterable[bytes]) -> Iterator[JobCells]:
    """Yields the jobs in their order.

    Args:
        source: the file, for messages.
        blocks: its text.

    Raises:
        LogError: it is not what sacct prints once, or is cut short.
    """
    found = _jobs(without_password(source), blocks)
    while jobs := list(islice(found, AT_ONCE)):
        cells, numbers, malformed = [], [], []
        for number, job in jobs:
            try:
                cells.append(tuple(_cells(job)))
                numbers.append(number)
            except _OddError as error:
                malformed.append(MalformedLine(number, str(error)))
        yield JobCells(cells, numbers, tuple(malformed))
    yield JobCells((), ())  # there need be no job


def _jobs(source: str, blocks: Iterable[bytes]) -> Iterator[tuple[int, Any]]:
    """Yields what is in the list ``jobs``, each with its line, as soon as it is there whole."""
    decoder = getincrementaldecoder("utf-8")("replace")
    text, at, line, enough = "", 0, 1, 0
    in_list = found = False
    for block in chain(blocks, (b"",)):
        text, at = text[at:] + decoder.decode(block, final=not block), 0
        enough = enough if block else 0
        while len(text) - at >= enough:
            begin = at
            if not in_list:
                jobs = _JOBS.search(text, at)
                in_list = jobs is not None
                at = jobs.end() if jobs else max(at, len(text) - _LONGEST_BEFORE)
                line += text.count("\n", begin, at)
                if in_list and found:
                    raise LogError(f'{source}:{line}: is a second list "jobs"; {ONE_BY_ONE}')
                found |= in_list
                if not in_list:
                    break
                continue
            between = _BETWEEN.match(text, at)
            at = between.end() if between else at
            line += text.count("\n", begin, at)
            if text.startswith("]", at):
                in_list = False
                continue
            decoded = _decoded(source, text, at, line)
            if decoded is None:
                enough = 2 * (len(text) - at)  # else a long job would be read with each block
                break
            job, end = decoded
            yield line, job
            line, at, enough = line + text.count("\n", at, end), end, 0
    if in_list or not found:
        what = "is cut short" if in_list else 'has no list "jobs"'
        raise LogError(f"{source}: its JSON {what}; is it what sacct --json prints?")


def _decoded(source: str, text: str, at: int, line: int) -> tuple[Any, int] | None:
    """Returns the value that begins there and where it ends; None if the text ends before that."""
    try:
        try:
            return _DECODER.raw_decode(text, at)
        except json.JSONDecodeError:
            raise
        except ValueError:  # Python makes no number of thousands of digits
            return _DECODER_OF_LONG_NUMBERS.raw_decode(text, at)
    except json.JSONDecodeError as error:
        cut = "Unterminated" in error.msg or error.pos > len(text) - _LONGEST_TOKEN
        if cut and len(text) - at <= LONGEST_JOB:
            return None
        where = line + text.count("\n", at, error.pos)
        why = f"a job has more than {LONGEST_JOB >> 20} MiB" if cut else error.msg
    except RecursionError:
        where, why = line, "a job's values are nested too deeply"
    raise LogError(f"{source}:{where}: its JSON cannot be read: {why}")


def _cells(job: Any) -> Iterator[str]:
    """Yields the fields.

    Raises:
        _OddError: one of them is not as any release prints it.
    """
    if not isinstance(job, Mapping):
        raise _OddError(f"job: {_shown(job)} is not an object")
    yield str(_number(job, "job_id"))
    for name in ("account", "user"):
        yield _name(job, name) or _name(_object(job, "association"), name)
    for name in ("group", "partition", "qos"):
        yield _name(job, name)
    time = _object(job, "time")
    for name in ("submission", "eligible", "start", "end"):
        moment = _number(time, name)
        yield "Unknown" if moment in _NEVER else str(moment)
    yield str(_number(time, "elapsed"))
    yield _cpus(_object(job, "tres"))
    yield _state(_object(job, "state"))
    yield _limit(_number(time, "limit"))
    yield _name(job, "nodes")
    yield _name(job, "cluster")


def _object(job: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = job.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _OddError(f"{name}: {_shown(value)} is not an object")
    return value


def _name(job: Mapping[str, Any], name: str) -> str:
    value = job.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _OddError(f"{name}: {_shown(value)} is not a string")
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", value)


def _number(job: Mapping[str, Any], name: str) -> int | str:
    """Reads a number, or the object that newer releases print for one that may be missing."""
    value = job.get(name)
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _OddError(f"{name}: {_shown(value)} is not a whole number")
    return value


def _cpus(tres: Mapping[str, Any]) -> str:
    allocated = tres.get("allocated")
    for resource in allocated if isinstance(allocated, list) else ():
        if isinstance(resource, Mapping) and resource.get("type") == "cpu":
            return str(_number(resource, "count"))
    return ""


def _state(state: Mapping[str, Any]) -> str:
    current = state.get("current")
    word = current[-1] if isinstance(current, list) and current else current  # PENDING, REQUEUED
    if not isinstance(word, str):
        raise _OddError(f"state: {_shown(current)} is neither a string nor a list of strings")
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", word)


def _limit(minutes: int | str) -> str:
    """Returns the limit as text has it; 22.05 has its largest numbers for none."""
    return "UNLIMITED" if minutes == "" or minutes in _NO_LIMIT else str(minutes)


def _shown(value: object) -> str:
    if isinstance(value, (Mapping, list)):
        return "an object" if isinstance(value, Mapping) else "a list"
    return repr(value)[:_SHOWN]


def _digits(text: str) -> int | str:
    return int(text) if len(text) < _SHOWN else f"{text[:_SHOWN]}..."


_NO_LIMIT = (2**32 - 2, 2**32 - 1)
_NEVER = ("", 0, *_NO_LIMIT)
_DECODER = json.JSONDecoder(parse_constant=str, parse_float=str)
_DECODER_OF_LONG_NUMBERS = json.JSONDecoder(parse_constant=str, parse_float=str, parse_int=_digits)
