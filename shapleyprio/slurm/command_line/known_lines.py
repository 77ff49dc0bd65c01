"""Lines of sacct that were printed before, and what they said: they need not be read again.

A line is the same if all its fields are, whatever the delimiter was. Of a job that runs, the
seconds that it has run are left out: they change all the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.slurm.forgetting import forget_others
from shapleyprio.slurm.port import Malformed
from shapleyprio.slurm.text.accounting import FIELDS, accounting_line
from shapleyprio.slurm.text.values import SEPARATOR, plain_lines

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
        self._waiting: dict[str, str] = {}

    def read(self, texts: Iterable[str], delimiter: str) -> Iterator[JobRecord | Malformed]:
        """Yields what each line says: the same object as before, if the line is the same.

        Args:
            texts: of ``sacct -npX`` with `FIELDS`, each some whole lines.
            delimiter: the text after each field.
        """
        printed: list[JobRecord] = []
        waiting: list[str] = []
        for lines, between in plain_lines(texts, delimiter):
            if between != SEPARATOR:
                found = [accounting_line(lines[0], self._weight, between, self._weight_of)]
                yield from (one for one in found if not _waits(one))
                continue
            found = list(self._found(lines, waiting))
            printed += (record for record in found if isinstance(record, JobRecord))
            yield from found
        forget_others(self._known, printed)
        forget_others(self._waiting, waiting)

    def _found(self, lines: Sequence[str], waiting: list[str]) -> Iterator[JobRecord | Malformed]:
        """Yields what the lines say; those of jobs that wait go to `waiting`."""
        known = self._known
        for line, record in zip(lines, map(known.get, lines), strict=True):
            if record is not None:
                yield record
                continue
            if (same := self._waiting.get(line)) is not None:
                waiting.append(same)
                continue
            if (timeless := known.get(_timeless(line))) is not None:
                yield timeless
                continue
            found = accounting_line(line, self._weight, SEPARATOR, self._weight_of)
            if _waits(found):
                self._waiting[line] = line
                waiting.append(line)
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
