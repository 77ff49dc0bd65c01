"""Lines of sacct that were printed before, and what they said: they need not be read again.

A line is the same if all its fields are, whatever the delimiter was; it is remembered as long as it
is printed. Of a job that runs, the seconds that it has run are left out: they change all the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.slurm.port import Malformed
from shapleyprio.slurm.text import SEPARATOR
from shapleyprio.slurm.text_accounting import FIELDS, accounting_line

ELAPSED = FIELDS.index("ElapsedRaw")
RUNNING = "RUNNING"


class KnownRecords:
    """Reads the lines of sacct, each once.

    Args:
        weight: what to count as a processor, as `accounting_line` has it.
    """

    def __init__(self, weight: str) -> None:
        self._weight = weight
        self._known: dict[str, JobRecord] = {}

    def read(self, lines: Iterable[str], delimiter: str) -> Iterator[JobRecord | Malformed]:
        """Yields what each line says: the same object as before, if the line is the same.

        Args:
            lines: of ``sacct -npX`` with `FIELDS`; those of other answers are forgotten.
            delimiter: what stands after each field.
        """
        before, self._known = self._known, {}
        known = self._known
        for line in lines:
            if SEPARATOR in line:  # it would not be known where its fields end
                yield accounting_line(line, self._weight, delimiter)
                continue
            text = line.replace(delimiter, SEPARATOR)
            record = before.get(text)
            if record is None:
                timeless = _timeless(text)
                record = before.get(timeless)
                if record is not None:
                    text = timeless
                else:
                    found = accounting_line(line, self._weight, delimiter)
                    if isinstance(found, Malformed):
                        yield found
                        continue
                    record = found
                    if record.state == RUNNING and record.nodes:
                        text = timeless
            known[text] = record
            yield record


def _timeless(text: str) -> str:
    """Returns a line without the seconds that its job has executed."""
    fields = text.split(SEPARATOR, ELAPSED + 1)
    del fields[ELAPSED : ELAPSED + 1]
    return SEPARATOR.join(fields)
