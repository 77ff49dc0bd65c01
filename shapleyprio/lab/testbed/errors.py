"""Errors of the private Slurm."""

from __future__ import annotations

from shapleyprio.slurm.port import SlurmError


class TestbedError(SlurmError):
    """A daemon or a command of the private Slurm failed."""

    __test__ = False  # pytest, this is no test class


class SlurmUnavailableHere(SlurmError):  # noqa: N818 - it is a state of the machine
    """This machine cannot have a private Slurm; the message says why and what helps."""
