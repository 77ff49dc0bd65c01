"""The files that come with the program, wherever it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

PACKAGE = Path(__file__).parents[1]

SHARE = "share"
"""Folder of an installed package with what is at the root of a checkout."""

PURPOSES: Mapping[str, str] = {
    "README.md": "what shapleyprio is and does",
    "CHANGELOG.md": "what changed in each release",
    "CONTRIBUTING.md": "how to change shapleyprio",
    "SECURITY.md": "how to report a vulnerability, and what the daemon may do",
    "shapleyprio.toml.example": "every key of the configuration, for /etc/shapleyprio",
    "client.toml.example": "where users' commands find the daemon, for /etc/shapleyprio",
    "systemd/README.md": "how the daemon runs under systemd",
    "systemd/shapleyprio.service": "the daemon's unit, for /etc/systemd/system",
    "systemd/shapleyprio-report.service": "writes last month's report, for /etc/systemd/system",
    "systemd/shapleyprio-report.timer": "runs it every month, for /etc/systemd/system",
    "systemd/shapleyprio.sysusers": "its user, for /etc/sysusers.d/shapleyprio.conf",
    "systemd/shapleyprio.tmpfiles": "its directories, for /etc/tmpfiles.d/shapleyprio.conf",
    "slurm_conf/README.md": "how priorities get into Slurm, and which channel to take",
    "slurm_conf/*.conf": "settings for slurm.conf, for the channel of that name",
    "slurm_conf/job_submit.lua": "gives new jobs their points, for the folder of slurm.conf",
    "slurm_conf/shapleyprio_points.lua": "module of job_submit.lua, for the same folder",
    "grafana/dashboards/overview.json": "dashboard: who is owed, who owes, how far from fair",
    "grafana/dashboards/organization.json": "dashboard: one organization",
    "grafana/dashboards/health.json": "dashboard: the daemon itself",
    "grafana/alerts/shapleyprio.rules.yml": "alerts for Prometheus",
    "grafana/prometheus/shapleyprio.yml": "lets Prometheus collect the metrics and load the alerts",
    "grafana/provisioning/datasources/shapleyprio.yml": "names Prometheus to Grafana",
    "grafana/provisioning/dashboards/shapleyprio.yml": "lets Grafana load the dashboards",
    "docs/*.md": "documentation",
    "docs/demo.svg": "picture in the documentation",
    "docs/images/*": "picture in the documentation",
    "docs/examples/pozidriv.toml": "organizations of a real cluster, for `shapleyprio replay`",
    "docs/examples/phillips.toml": "organizations of a second cluster of its site, a pool with it",
    "docs/examples/usc.toml": "organizations of a university's cluster, for `shapleyprio replay`",
    "docs/examples/usc.slurm.conf": "the slurm.conf of its shape, for `shapleyprio rehearse`",
    "docs/examples/hpc2n.toml": "two users of a cluster of 2004, for `shapleyprio rehearse`",
    "docs/examples/hpc2n.slurm.conf": "a slurm.conf of its shape, for the same",
    "docs/examples/swf.awk": "turns a log in the Standard Workload Format into what sacct prints",
    "docs/examples/settings.py": "judges the same jobs under many settings of Slurm's weights",
    "docs/examples/polling.toml": "how often the daemon must look, for `shapleyprio trials`",
    "docs/examples/trials.toml": "real days of contention, for `shapleyprio trials`",
    "docs/examples/whole.toml": "the same with whole jobs, for `shapleyprio trials`",
}
"""Name below the root of a checkout, or a pattern of names -> what the file is for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedFile:
    """A file that comes with the program.

    Attributes:
        name: relative to the root of a checkout.
        path: where it is.
        purpose: what it is for, in a few words.
    """

    name: str
    path: Path
    purpose: str


def find(name: str) -> Path:
    """Returns the path of a file or folder, by its name below the root of a checkout.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    for root in (PACKAGE / SHARE, PACKAGE, PACKAGE.parent):
        if (root / name).exists():
            return root / name
    raise FileNotFoundError(f"{PACKAGE / SHARE / name} is missing: reinstall shapleyprio")


def shipped_files() -> tuple[ShippedFile, ...]:
    """Returns all files that users may read or copy, in the order of `PURPOSES`, then by name.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    return tuple(
        ShippedFile(name=name, path=path, purpose=_title(path) or purpose)
        for pattern, purpose in PURPOSES.items()
        for name, path in _matching(pattern)
    )


def _matching(pattern: str) -> list[tuple[str, Path]]:
    folder, _, last = pattern.rpartition("/")
    if "*" not in last:
        return [(pattern, find(pattern))]
    found = sorted(path for path in find(folder).iterdir() if path.is_file())
    return [(f"{folder}/{path.name}", path) for path in found if fnmatchcase(path.name, last)]


def _title(path: Path) -> str:
    """Returns the heading of a document in the folder of documents, empty for other files."""
    if path.parent.name != "docs" or path.suffix != ".md":
        return ""
    with path.open(encoding="utf-8") as file:
        first = file.readline()
    return first.removeprefix("# ").strip() if first.startswith("# ") else ""
