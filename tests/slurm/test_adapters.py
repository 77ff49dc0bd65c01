"""An adapter is chosen by its name in the configuration, and another one needs an entry alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from shapleyprio.cli import main
from shapleyprio.common.errors import ConfigError
from shapleyprio.config import connect, load_config
from shapleyprio.slurm.adapters import ADAPTERS
from shapleyprio.slurm.command_line.adapter import CommandLineSlurm
from shapleyprio.slurm.port import AdapterInUse, Connection, Slurm
from tests.daemon.consortium import Cluster

if TYPE_CHECKING:
    from collections.abc import Mapping

ORGANIZATIONS = """
[[organization]]
name = "physics"
accounts = ["physics"]
partitions = ["pa"]

[[organization]]
name = "biology"
accounts = ["biology"]
partitions = ["pb"]
"""


def written(folder: Path, **slurm: str) -> Path:
    file = folder / "shapleyprio.toml"
    file.write_text(
        "[slurm]\n"
        + "".join(f'{key} = "{value}"\n' for key, value in slurm.items())
        + f'[store]\nurl = "sqlite:///{folder / "store.db"}"\n'
        + '[metrics]\naddress = "off"\n'
        + ORGANIZATIONS
    )
    return file


def test_slurms_own_commands_are_the_usual_way(tmp_path: Path) -> None:
    assert isinstance(connect(load_config(written(tmp_path))), CommandLineSlurm)


def test_a_name_that_no_adapter_has_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"slurm\.adapter"):
        load_config(written(tmp_path, adapter="telepathy"))


def test_an_adapter_that_is_registered_serves_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster()
    cluster.fill("biology")
    cluster.submit("physics", processing_time=9)
    cluster.wait(10)
    connections: list[Connection] = []

    def connected(connection: Connection) -> Slurm:
        connections.append(connection)
        return cluster

    monkeypatch.setitem(_registry(), "second", connected)
    file = written(tmp_path, adapter="second", timeout="7s", bin_directory="/opt/slurm/bin")
    for arguments in (["daemon", "--once"], ["explain", "2"], ["rollback"]):
        result = CliRunner().invoke(main, [*arguments, "--config", str(file)])
        assert result.exit_code == 0, result.output
    assert cluster.writes
    assert set(map(type, connections)) == {Connection}
    assert connections[0] == Connection(timeout_seconds=7, bin_directory=Path("/opt/slurm/bin"))


def test_status_says_which_adapter_stands_in_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster()
    file = written(tmp_path, adapter="auto")
    monkeypatch.setitem(_registry(), "auto", lambda _: cluster)
    for name, said in (("pyslurm", False), ("command_line", True)):
        monkeypatch.setattr(cluster, "adapter", lambda name=name: AdapterInUse(name=name))
        assert CliRunner().invoke(main, ["daemon", "--once", "--config", str(file)]).exit_code == 0
        status = CliRunner().invoke(main, ["status", "--config", str(file)]).output
        assert ("adapter command_line instead of pyslurm" in status) == said
        cluster.wait(30)


def _registry() -> dict[str, object]:
    registry: Mapping[str, object] = ADAPTERS
    assert isinstance(registry, dict)
    return registry
