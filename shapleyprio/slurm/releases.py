"""The releases of Slurm."""

from __future__ import annotations

import re
from dataclasses import dataclass

TESTED_RELEASES = ("22.05", "24.11", "26.05")
"""The releases on which all tests were run, from the oldest to the newest."""

_VERSION = re.compile(r"\b([0-9]{2})\.([0-9]{2})(\.[0-9]+[0-9A-Za-z.\-]*)?")


@dataclass(frozen=True, slots=True, order=True)
class Release:
    """A release of Slurm.

    >>> str(Release.parse("slurm-wlm 24.11.5")), Release.parse("24.11.5").series
    ('24.11.5', '24.11')

    Attributes:
        year, month: of the series, such as 24 and 11.
        rest: what follows, such as ``.5``.
    """

    year: int
    month: int
    rest: str = ""

    @classmethod
    def parse(cls, text: str) -> Release | None:
        """Reads what ``scontrol --version`` prints or SLURM_VERSION is, None if it is neither."""
        found = _VERSION.search(text)
        return None if found is None else cls(int(found[1]), int(found[2]), found[3] or "")

    @property
    def series(self) -> str:
        """The part that stands for its features, such as ``24.11``."""
        return f"{self.year:02}.{self.month:02}"

    def __str__(self) -> str:
        """Writes the release as Slurm does."""
        return self.series + self.rest


def untested(release: str) -> str | None:
    """Returns a warning about a release that lies outside the tested ones, else None.

    >>> untested("21.08.8")
    'is older than 22.05, the oldest release this was tested with'
    >>> untested("24.05.1")
    """
    found = Release.parse(release)
    if found is None:
        return "is not a known release"
    if found.series < TESTED_RELEASES[0]:
        return f"is older than {TESTED_RELEASES[0]}, the oldest release this was tested with"
    if found.series > TESTED_RELEASES[-1]:
        return f"is newer than {TESTED_RELEASES[-1]}, the newest release this was tested with"
    return None
