"""The organizations of the demo, and the configuration that names them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CLUSTER = "demo"
CPUS_PER_NODE = 4
POLL_SECONDS = 60
COMMAND_TIMEOUT_SECONDS = 30
LEASE_SECONDS = 10

DRIFT_SECONDS = 300
"""Seconds between two replays; a few real ones, so that people see the drift change."""

DRIFT_LIMIT_SECONDS = 120
"""Real seconds for a replay."""

ESTIMATE_LIMIT_SECONDS = 120
"""Real seconds for an estimate of contributions."""


@dataclass(frozen=True, slots=True)
class DemoMember:
    """An organization of the demo; its account and its partition have its name.

    Attributes:
        name: with a first letter that no other has.
        nodes: what it owns.
        color: distinct from the others' for color-blind eyes too (Okabe and Ito).
        habit: how it uses the cluster.
    """

    name: str
    nodes: tuple[str, ...]
    color: str
    habit: str

    @property
    def letter(self) -> str:
        """Stands for one of its jobs."""
        return self.name[0].upper()


MEMBERS = (
    DemoMember("astronomy", ("a1", "a2"), "#e69f00", "floods the queue from the start"),
    DemoMember("biology", ("b1", "b2"), "#56b4e9", "submits steadily, more than it owns"),
    DemoMember("climate", ("c1", "c2"), "#00b383", "lends its nodes, asks late and little"),
)
PROCESSORS = sum(CPUS_PER_NODE * len(member.nodes) for member in MEMBERS)


def write_configuration(directory: Path, *, speed: int, address: str | None = None) -> Path:
    """Writes shapleyprio.toml into the directory, where the store will be too.

    Args:
        directory: of the demo's state.
        speed: of the cluster's clock, on which the daemon's time limits run as well.
        address: where the daemon serves its page and metrics, and then live drift among them.
    """
    file = directory.resolve() / "shapleyprio.toml"
    organizations = (
        f'\n[[organization]]\nname = "{member.name}"\n'
        f'accounts = ["{member.name}"]\npartitions = ["{member.name}"]\n'
        for member in MEMBERS
    )
    file.write_text(
        f'[slurm]\ncluster = "{CLUSTER}"\ntimeout = "{COMMAND_TIMEOUT_SECONDS * speed}s"\n'
        f'\n[service]\npoll_interval = "{POLL_SECONDS}s"\nlease = "{LEASE_SECONDS * speed}s"\n'
        f'\n[store]\nurl = "sqlite:///{file.with_name("shapleyprio.db")}"\n'
        f'\n[metrics]\naddress = "{address or "off"}"\n'
        f'\n[drift]\ninterval = "{f"{DRIFT_SECONDS}s" if address else "off"}"\n'
        f'time_limit = "{DRIFT_LIMIT_SECONDS * speed}s"\n'
        f'\n[estimation]\ntime_limit = "{ESTIMATE_LIMIT_SECONDS * speed}s"\n'
        f"{''.join(organizations)}",
        encoding="utf-8",
    )
    return file
