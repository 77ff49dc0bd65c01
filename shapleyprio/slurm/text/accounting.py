"""Reads the lines of sacct; those that were printed before need not be read again.

A line is the same if all its fields are, whatever the delimiter was. Of a job that runs, the
seconds that it has run are left out: they change all the time. Of a line its hash is kept. It has
64 bits and depends on a secret of this process, so none can be made to equal another's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from sys import intern

from shapleyprio.fairness.runs import JobRecord, RunKey
from shapleyprio.slurm.port import Malformed
from shapleyprio.slurm.remembering import forget_others
from shapleyprio.slurm.text.values import (
    LARGEST_ID,
    SEPARATOR,
    UnreadableError,
    duration,
    fields_of,
    hosts,
    if_readable,
    known_moment,
    malformed_line,
    moment,
    plain_lines,
    tres_of,
    whole,
)

FIELDS = (
    *("State", "JobIDRaw", "JobID", "Account", "User", "Partition", "Submit", "Start", "End"),
    *("Suspended", "AllocCPUS", "AllocTRES", "NodeList", "Eligible", "TimelimitRaw", "ElapsedRaw"),
)
"""Fields that sacct prints; all releases since 22.05 know them. The first says whether the rest
matters, and the last one alone changes while a job runs."""

STEP_FIELDS = ("JobIDRaw", "Submit", "Start", "End")
"""Fields that sacct prints of jobs and their steps."""

MINUTE = 60  # seconds
NO_NODES = frozenset({"None assigned", ""})
LONGEST = 2**32  # seconds
LONGEST_NAME = 255  # characters; slurmdbd's database has room for no more

_STATE = re.compile(r"([A-Z_]{2,40})(?: by .*)?")


def accounting_line(
    line: str, weight: str, delimiter: str, weight_of: Mapping[str, str] | None = None
) -> JobRecord | Malformed:
    """Reads one line of ``sacct -npX`` with `FIELDS`, times in epoch seconds.

    A job that waits has not started, whatever its line shows for a start: accounting may hear
    of a requeue in pieces.

    Args:
        line: without its line end.
        weight: what to count as a processor: a TRES name such as ``cpu`` or ``gres/gpu``.
        delimiter: the text after each field.
        weight_of: partition -> what to count there, if it is something else.
    """
    try:
        return _record(fields_of(line, delimiter, len(FIELDS)), weight, weight_of or {})
    except UnreadableError as error:
        return malformed_line("sacct", line, delimiter, str(error))


def last_ends(lines: Iterable[str], delimiter: str) -> dict[RunKey, int]:
    """Reads the lines of ``sacct -np`` with `STEP_FIELDS`: each job before its steps.

    Args:
        lines: without their line ends, times in epoch seconds.
        delimiter: the text after each field.

    Returns:
        run, by its end if its start is not known -> when the last of its steps ended. Runs without
        steps, or with one that has not ended or cannot be read, are left out.
    """
    found: dict[RunKey, int] = {}
    unclear: set[RunKey] = set()
    run: RunKey | None = None
    for line in lines:
        try:
            name, submit, start, end_text = fields_of(line, delimiter, len(STEP_FIELDS))
            job, dot, _ = name.partition(".")
            if not dot:
                run = None  # whatever becomes of this line, steps below are not of the job before
                begin = moment("Start", start) or moment("End", end_text)
                if begin is not None:
                    job_id = whole("JobIDRaw", job, 1, LARGEST_ID)
                    run = RunKey(job_id, known_moment("Submit", submit), begin)
            elif run is not None and job == str(run.job_id):
                found[run] = max(found.get(run, 0), known_moment("End", end_text))
        except UnreadableError:
            if run is not None:
                unclear.add(run)
    return {run: end for run, end in found.items() if run not in unclear}


def _record(fields: list[str], weight: str, weight_of: Mapping[str, str]) -> JobRecord:
    state_text, job_id, label, account, user, partition, submit, start_text, end_text = fields[:9]
    suspended, cpus, tres_text, node_list, eligible, limit, elapsed_text = fields[9:]
    if not label:
        raise UnreadableError("JobID: empty")
    state = _state(state_text)
    start, end = moment("Start", start_text), moment("End", end_text)
    if state == "PENDING":
        start = end = None
    if start is None and node_list not in NO_NODES:
        start = end  # if a job ends before slurmdbd hears of its start, Slurm forgets the latter
    if start is not None and end is not None and end < start:
        raise UnreadableError(f"End: {end} lies before Start, {start}")
    elapsed = whole("ElapsedRaw", elapsed_text, 0, LONGEST)
    alloc_cpus = whole("AllocCPUS", cpus)
    nodes: tuple[str, ...] = ()
    total = 0
    if start is not None:
        weight = weight_of.get(partition, weight)
        found = tres_of("AllocTRES", tres_text, weight)
        total = found if found is not None else alloc_cpus if weight == "cpu" else 0
        if node_list not in NO_NODES:
            nodes = hosts("NodeList", node_list)
        elif elapsed and total:
            raise UnreadableError("NodeList: empty, though the job ran")
    submitted = known_moment("Submit", submit)
    return JobRecord(
        job_id=whole("JobIDRaw", job_id, 1, LARGEST_ID),
        label=label,
        account=_name("Account", account),
        user=_name("User", user),
        partition=_name("Partition", partition),
        submit=submitted,
        eligible=submitted if eligible == submit else if_readable(moment, "Eligible", eligible),
        start=start,
        end=end,
        limit=if_readable(_limit, "TimelimitRaw", limit),
        elapsed=elapsed,
        suspended=duration("Suspended", suspended),
        state=state,
        nodes=nodes,
        processors=total if nodes else 0,
    )


@lru_cache(maxsize=4096)
def _state(text: str) -> str:
    match = _STATE.fullmatch(text)
    if match is None:
        raise UnreadableError(f"State: {text[:80]!r} is not a state")
    return intern(match.group(1))


def _name(field: str, text: str) -> str:
    if len(text) > LONGEST_NAME:
        raise UnreadableError(f"{field}: longer than {LONGEST_NAME} characters")
    return intern(text)


@lru_cache(maxsize=4096)
def _limit(field: str, text: str) -> int:
    """Reads a time limit in minutes; a job without one of its own has its partition's."""
    return MINUTE * whole(field, text, 0, LONGEST)


PENDING, RUNNING = "PENDING", f"RUNNING{SEPARATOR}"


class KnownRecords:
    """Reads the lines of sacct, each once; those of jobs that wait say nothing.

    Args:
        weight, weight_of: what to count as a processor, as `accounting_line` has it.
    """

    def __init__(self, weight: str, weight_of: Mapping[str, str] | None = None) -> None:
        self._weight = weight
        self._weight_of = weight_of
        self._known: dict[int, JobRecord] = {}

    def read(self, texts: Iterable[str], delimiter: str) -> Iterator[JobRecord | Malformed]:
        """Yields what each line says: the same object as before, if the line is the same.

        Args:
            texts: of ``sacct -npX`` with `FIELDS`, each some whole lines.
            delimiter: the text after each field.
        """
        printed: list[JobRecord | Malformed] = []
        others = filter(None, (_of_others(text, f"{PENDING}{delimiter}") for text in texts))
        for lines, between in plain_lines(others, delimiter):
            if between == SEPARATOR:
                found = self._found(lines)
                printed += found
                yield from found
            else:
                yield accounting_line(lines[0], self._weight, between, self._weight_of)
        forget_others(self._known, printed)

    def _found(self, lines: Sequence[str]) -> list[JobRecord | Malformed]:
        known = self._known
        found: list[JobRecord | Malformed] = []
        for line in lines:
            number = hash(_timeless(line) if line.startswith(RUNNING) else line)
            record = known.get(number)
            if record is None:
                new = accounting_line(line, self._weight, SEPARATOR, self._weight_of)
                found.append(new)
                if isinstance(new, JobRecord) and (new.nodes or not line.startswith(RUNNING)):
                    known[number] = new
            else:
                found.append(record)
        return found


def _of_others(text: str, waits: str) -> str:
    """Returns the lines without those of jobs that wait, which begin with their state."""
    return "\n".join([line for line in text.split("\n") if not line.startswith(waits)])


def _timeless(text: str) -> str:
    """Returns a line without its last field, the seconds that its job has executed."""
    return text[: text.rfind(SEPARATOR, 0, -1)]
