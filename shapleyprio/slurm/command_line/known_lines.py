"""Lines of sacct that were printed before, and what they said: they need not be read again.

A line is the same if all its fields are, whatever the delimiter was. Of a job that runs, the
seconds that it has run are left out: they change all the time. Of a line its hash is kept. It has
64 bits and depends on a secret of this process, so none can be made to equal another's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.slurm.forgetting import forget_others
from shapleyprio.slurm.port import Malformed
from shapleyprio.slurm.text.accounting import accounting_line
from shapleyprio.slurm.text.values import SEPARATOR, plain_lines

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
