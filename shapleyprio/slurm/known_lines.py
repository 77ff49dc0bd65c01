"""Lines of sacct that were printed before, and what they said: they need not be read again.

A line is the same if all its fields are, whatever the delimiter was. Of a job that runs, the
seconds that it has run are left out: they change all the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.forgetting import forget_others
from shapleyprio.slurm.port import Malformed
from shapleyprio.slurm.text import SEPARATOR, plain_lines
from shapleyprio.slurm.text_accounting import FIELDS, accounting_line

ELAPSED = FIELDS.index("ElapsedRaw")
RUNNING = "RUNNING"


class KnownRecords:
    """Reads the lines of sacct, each once.

    Args:
        weight, weight_of: what to count as a processor, as `accounting_line` has it.
    """

    def __init__(self, weight: str, weight_of: Mapping[str, str] | None = None) -> None:
        self._weight = weight
        self._weight_of = weight_of
        self._known: dict[str, JobRecord] = {}

    def read(self, texts: Iterable[str], delimiter: str) -> Iterator[JobRecord | Malformed]:
        """Yields what each line says: the same object as before, if the line is the same.

        Args:
            texts: of ``sacct -npX`` with `FIELDS`, each some whole lines.
            delimiter: what stands after each field.
        """
        printed: list[JobRecord] = []
        for lines, between in plain_lines(texts, delimiter):
            if between != SEPARATOR:
                yield accounting_line(lines[0], self._weight, between, self._weight_of)
                continue
            known = list(map(self._known.get, lines))
            found = [record or self._read(line) for line, record in zip(lines, known, strict=True)]
            printed += (record for record in found if isinstance(record, JobRecord))
            yield from found
        forget_others(self._known, printed)

    def _read(self, line: str) -> JobRecord | Malformed:
        """Reads a line that was not printed before, unless only the executed seconds are new."""
        timeless = _timeless(line)
        record = self._known.get(timeless)
        if record is not None:
            return record
        found = accounting_line(line, self._weight, SEPARATOR, self._weight_of)
        if not isinstance(found, Malformed):
            is_running = found.state == RUNNING and found.nodes
            self._known[timeless if is_running else line] = found
        return found


def _timeless(text: str) -> str:
    """Returns a line without the seconds that its job has executed."""
    fields = text.split(SEPARATOR, ELAPSED + 1)
    del fields[ELAPSED : ELAPSED + 1]
    return SEPARATOR.join(fields)
