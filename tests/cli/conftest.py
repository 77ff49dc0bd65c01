"""The command line on a simulated cluster: only the way to Slurm is replaced."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from shapleyprio.cli import (
    answers,
    daemon,
    db,
    export,
    first,
    main,
    ownership,
    pause,
    resume,
    rollback,
)
from shapleyprio.config.toml import literal
from shapleyprio.daemon.steering import composition
from shapleyprio.store import Store
from tests.daemon.consortium import BIOLOGY, PHYSICS, Cluster, by_directcontr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from shapleyprio.slurm.port import Slurm


@dataclass
class CommandLine:
    """Runs commands with a configuration in a file.

    Attributes:
        folder: with the configuration and the store.
        slurm: what the commands speak to.
    """

    folder: Path
    slurm: Cluster

    @property
    def file(self) -> Path:
        return self.folder / "shapleyprio.toml"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'store.db'}"

    def configure(self, **sections: Any) -> None:
        """Writes the configuration."""
        self.write(self.file, PHYSICS, BIOLOGY, **sections)

    def write(
        self,
        file: Path,
        *organizations: Mapping[str, Any],
        pool: Sequence[Mapping[str, Any]] = (),
        **sections: Mapping[str, Any],
    ) -> None:
        """Writes a configuration of these organizations and pools."""
        tables = {"store": {"url": self.url}, **by_directcontr(sections)}
        text = "".join(f"[{name}]\n{_lines(keys)}\n" for name, keys in tables.items()) + "".join(
            f"[[{name}]]\n{_lines(one)}\n"
            for name, several in (("organization", organizations), ("pool", pool))
            for one in several
        )
        file.write_text(text, encoding="utf-8")

    def run(self, *arguments: str) -> Result:
        """A command; with the configuration that was written, unless another is named."""
        own = [] if "--config" in arguments else ["--config", str(self.file)]
        return CliRunner().invoke(main, [*arguments, *own])

    def store(self) -> Store:
        return Store.open(self.url)


def _lines(keys: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {literal(value)}\n" for key, value in keys.items())


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    with shell_in(tmp_path, monkeypatch) as shell:
        yield shell


@contextmanager
def shell_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """Biology has used the whole cluster for ten seconds, and a job of physics waits."""
    slurm = Cluster()
    slurm.fill("biology")
    slurm.submit("physics", nice=3, processing_time=9)
    slurm.wait(10)

    shell = CommandLine(folder, slurm)
    shell.configure()
    with speaking_to(lambda *_: slurm, monkeypatch):
        yield shell


@contextmanager
def speaking_to(connect: Callable[..., Slurm], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Has commands speak to what `connect` returns."""
    commands = (answers, daemon, db, export, first, ownership, pause, resume, rollback)
    for module in (composition, *commands):
        monkeypatch.setattr(module, "connect", connect)
    monkeypatch.setenv("COLUMNS", "200")
    yield


@pytest.fixture
def steered(shell: CommandLine) -> CommandLine:
    """One cycle has run, just now: what it found is out of date after two minutes."""
    assert shell.run("daemon", "--once").exit_code == 0
    return shell
