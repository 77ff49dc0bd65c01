"""Findings about a configuration on a cluster, with the way out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is.

    An error keeps the daemon from doing what is configured, a warning is most likely not what
    was meant, and a notice is good to know.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that `check` has to say.

    Attributes:
        severity: how bad it is.
        subject: what it is about, such as ``organization physics`` or ``PriorityType``.
        message: what was found, one line.
        remedy: what to do about it, one line.
    """

    severity: Severity
    subject: str
    message: str
    remedy: str

    def of(self, whose: str) -> Finding:
        """Returns the same about a part of the cluster."""
        return replace(self, subject=f"{whose}: {self.subject}")
