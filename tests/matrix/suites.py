"""Which Slurm releases are tested, on what, and the Debian suites that have them."""

from __future__ import annotations

from dataclasses import dataclass

from shapleyprio.lab.testbed.machine import PACKAGES


@dataclass(frozen=True, slots=True)
class Suite:
    """A Debian suite and the Slurm in it.

    Attributes:
        release: Slurm's, such as ``22.05``.
        name: the suite's code name.
        debian: its version number, or what stands for it before it is released.
    """

    release: str
    name: str
    debian: str


SUITES = (
    Suite("22.05", "bookworm", "12"),
    Suite("24.11", "trixie", "13"),
    Suite("26.05", "forky", "14 (testing)"),
)

BASE_PACKAGES = (
    *PACKAGES,
    *("ca-certificates", "iproute2", "lua5.1", "mount", "python3", "systemd"),
)
"""What a cluster's head node has before shapleyprio comes."""

FOLDERS = ("tests/slurm", "tests/end_to_end", "tests/hostile/test_stolen_operator.py")
"""Where the tests are whose real Slurm is each release, all of them on the testbed."""

TRIALS = (
    "tests/lab/trial/test_real_trial.py::test_who_is_owed_starts_first_and_every_job_has_a_record",
    "tests/lab/rehearsal/test_real_rehearsal.py",
    "tests/lab/rehearsal/test_university.py",
)
"""The trial and the rehearsals that are run on each release; they wait for long."""
