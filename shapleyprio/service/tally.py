"""What became of accounting's records in a cycle, in numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """What became of the records of a cycle.

    Attributes:
        seen: records read, those of jobs that wait left out.
        kept: runs that were new or had changed.
        unstarted: records of jobs that have not started.
        quarantined: lines that could not be read, and records from the future.
        late: records that came after their run had been pruned.
        withdrawn: unfinished runs that accounting no longer knows of.
    """

    seen: int = 0
    kept: int = 0
    unstarted: int = 0
    quarantined: int = 0
    late: int = 0
    withdrawn: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, name) + getattr(other, name) for name in Tally.__slots__))
