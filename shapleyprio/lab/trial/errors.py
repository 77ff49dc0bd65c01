"""Errors of a trial."""

from __future__ import annotations

from shapleyprio.slurm.port import SlurmError


class TrialError(SlurmError):
    """An arm could not be run to its end; the message says which, and why."""
