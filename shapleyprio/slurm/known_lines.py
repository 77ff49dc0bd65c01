"""Lines of sacct that were printed before, and what they said: they need not be read again.

A line is the same if all its fields are, whatever the delimiter was. Of a job that runs, the
seconds that it has run are left out: they change all the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.forgetting import FORGOTTEN_FROM, forget_others
from shapleyprio.slurm.port import Malformed
from shapleyprio.slurm.text import SEPARATOR, plain_lines
from shapleyprio.slurm.text_accounting import FIELDS, accounting_line

ELAPSED = FIELDS.index("ElapsedRaw")
PENDING, RUNNING = "PENDING", "RUNNING"


class KnownRecords:
    """Reads the lines of sacct, each once; those of jobs that wait say nothing.

    Args:
        weight, weight_of: what to count as a processor, as `accounting_line` has it.
    """

    def __init__(self, weight: str, weight_of: Mapping[str, str] | None = None) -> None:
        self._weight = weight
        self._weight_of = weight_of
        self._known: dict[str, JobRecord] = {}
        self._waiting: dict[str, int] = {}
        self._answer = 0

    def read(self, texts: Iterable[str], delimiter: str) -> Iterator[JobRecord | Malformed]:
        """Yields what each line says: the same object as before, if the line is the same.

        Args:
            texts: of ``sacct -npX`` with `FIELDS`, each some whole lines.
            delimiter: what stands after each field.
        """
        self._answer += 1
        printed: list[JobRecord] = []
        waiting = 0
        for lines, between in plain_lines(texts, delimiter):
            if between != SEPARATOR:
                found = [accounting_line(lines[0], self._weight, between, self._weight_of)]
                yield from (one for one in found if not _waits(one))
                continue
            found = list(self._found(lines))
            printed += (record for record in found if isinstance(record, JobRecord))
            waiting += len(lines) - len(found)
            yield from found
        forget_others(self._known, printed)
        if len(self._waiting) > FORGOTTEN_FROM * waiting:
            for line in [line for line, last in self._waiting.items() if last != self._answer]:
                del self._waiting[line]

    def _found(self, lines: Sequence[str]) -> Iterator[JobRecord | Malformed]:
        """Yields what the lines say that are not of jobs that wait."""
        known, waiting, answer = self._known, self._waiting, self._answer
        for line, record in zip(lines, map(known.get, lines), strict=True):
            if record is not None:
                yield record
                continue
            if line in waiting:
                waiting[line] = answer
                continue
            if (timeless := known.get(_timeless(line))) is not None:
                yield timeless
                continue
            found = accounting_line(line, self._weight, SEPARATOR, self._weight_of)
            if _waits(found):
                waiting[line] = answer
            else:
                if isinstance(found, JobRecord):
                    is_running = found.state == RUNNING and found.nodes
                    known[_timeless(line) if is_running else line] = found
                yield found


def _waits(found: JobRecord | Malformed) -> bool:
    return isinstance(found, JobRecord) and found.state == PENDING


def _timeless(text: str) -> str:
    """Returns a line without the seconds that its job has executed."""
    fields = text.split(SEPARATOR, ELAPSED + 1)
    del fields[ELAPSED : ELAPSED + 1]
    return SEPARATOR.join(fields)
