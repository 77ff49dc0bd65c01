"""Lines of sacct that were printed before, and what they said: they need not be read again.

A line is the same if all its fields are, whatever the delimiter was. Of a job that runs, the
seconds that it has run are left out: they change all the time. Of a line its hash is kept. It has
64 bits and depends on a secret of this process, so none can be made to equal another's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.slurm.forgetting import FORGOTTEN_FROM, forget_others
from shapleyprio.slurm.port import Malformed
from shapleyprio.slurm.text.accounting import accounting_line
from shapleyprio.slurm.text.values import SEPARATOR, plain_lines

PENDING, RUNNING = "PENDING", "RUNNING"


class KnownRecords:
    """Reads the lines of sacct, each once; those of jobs that wait say nothing.

    Args:
        weight, weight_of: what to count as a processor, as `accounting_line` has it.
    """

    def __init__(self, weight: str, weight_of: Mapping[str, str] | None = None) -> None:
        self._weight = weight
        self._weight_of = weight_of
        self._known: dict[int, JobRecord] = {}
        self._waiting: set[int] = set()

    def read(self, texts: Iterable[str], delimiter: str) -> Iterator[JobRecord | Malformed]:
        """Yields what each line says: the same object as before, if the line is the same.

        Args:
            texts: of ``sacct -npX`` with `FIELDS`, each some whole lines.
            delimiter: the text after each field.
        """
        printed: list[JobRecord | Malformed] = []
        waiting: list[int] = []
        for lines, between in plain_lines(texts, delimiter):
            if between != SEPARATOR:
                found = [accounting_line(lines[0], self._weight, between, self._weight_of)]
                yield from (one for one in found if not _waits(one))
                continue
            found = self._found(lines, waiting)
            printed += found
            yield from found
        forget_others(self._known, printed)
        if len(self._waiting) > FORGOTTEN_FROM * len(waiting):
            self._waiting = set(waiting)

    def _found(self, lines: Sequence[str], waiting: list[int]) -> list[JobRecord | Malformed]:
        """Returns what the lines say; those of jobs that wait go to `waiting`."""
        known, known_to_wait = self._known, self._waiting
        found: list[JobRecord | Malformed] = []
        for line, number in zip(lines, map(hash, lines), strict=True):
            if number in known_to_wait:
                waiting.append(number)
                continue
            record = known.get(number) or known.get(hash(_timeless(line)))
            if record is not None:
                found.append(record)
                continue
            new = accounting_line(line, self._weight, SEPARATOR, self._weight_of)
            if _waits(new):
                known_to_wait.add(number)
                waiting.append(number)
                continue
            if isinstance(new, JobRecord):
                is_running = new.state == RUNNING and new.nodes
                known[hash(_timeless(line)) if is_running else number] = new
            found.append(new)
        return found


def _waits(found: JobRecord | Malformed) -> bool:
    return isinstance(found, JobRecord) and found.state == PENDING


def _timeless(text: str) -> str:
    """Returns a line without its last field, the seconds that its job has executed."""
    return text[: text.rfind(SEPARATOR, 0, -1)]
