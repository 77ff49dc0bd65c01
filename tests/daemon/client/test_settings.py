"""Where users find the daemon, and what they read when it cannot be found."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from shapleyprio.cli import asked_daemon as asking
from shapleyprio.cli import main
from shapleyprio.common.errors import ConfigError
from shapleyprio.daemon.answering.inquiries import Inquiry
from shapleyprio.daemon.client import ClientSettings, DaemonError, ask, load_settings, settings_of

ROOT = Path(__file__).parents[3]
QUESTION = Inquiry("explain", "job", "7")


def written(folder: Path, text: str) -> Path:
    file = folder / "client.toml"
    file.write_text(text)
    return file


def test_the_file_that_ships_can_be_read_and_so_can_what_it_mentions(tmp_path: Path) -> None:
    text = (ROOT / "client.toml.example").read_text()
    shown = "".join(line.removeprefix("#") for line in text.splitlines(keepends=True))
    keys = "".join(line for line in shown.splitlines(keepends=True) if " = " in line)
    assert load_settings(ROOT / "client.toml.example").socket == Path("/run/shapleyprio/socket")
    both = keys.replace("unix:/run/shapleyprio/socket", "http://head")
    settings = load_settings(written(tmp_path, both))
    assert (settings.host, settings.port) == ("head", 9817)
    assert settings.munge_socket == Path("/run/munge/munge.socket.2")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", 'url: is missing; add for instance url = "unix:/run'),
        ('uri = "x"', "uri: unknown key; known keys: url, munge_socket"),
        ("url = 7", "url: is not a string"),
        ("url = ", "not valid TOML"),
        ('url = "head:9817"', "is not http://HOST:PORT or unix:/PATH"),
        ('url = "http://head:x"', "is not http://HOST:PORT"),
        ('url = "http://head/page"', "is not http://HOST:PORT"),
        ('url = "unix:run"', "is not http://HOST:PORT"),
        ('url = "https://head"', "is not http://HOST:PORT"),
        ('url = "http://head"\nmunge_socket = "a"', "munge_socket: 'a' is not an absolute path"),
    ],
)
def test_a_mistake_is_reported_with_the_file_and_the_remedy(
    tmp_path: Path, text: str, why: str
) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_settings(file)
    (problem,) = caught.value.problems
    assert problem.startswith(f"{file}: ")
    assert why in problem


def refusal(settings: ClientSettings) -> tuple[int, str]:
    with pytest.raises(DaemonError) as caught:
        ask(settings, QUESTION)
    return caught.value.exit_code, str(caught.value)


def test_a_daemon_that_is_away_is_reported_with_what_that_means(tmp_path: Path) -> None:
    code, line = refusal(settings_of(f"unix:{tmp_path}/socket"))
    assert (code, "No such file" in line, "no daemon steers" in line) == (3, True, True)
    assert "\n" not in line


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.0 200 OK\r\n\r\n<html>", b'HTTP/1.0 200 OK\r\n\r\n{"lines": 7}', b"?\r\n"],
)
def test_what_is_no_daemon_is_not_believed(tmp_path: Path, answer: bytes) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "socket"))
    listening.listen()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    with listening:
        code, _ = refusal(settings_of(f"unix:{tmp_path}/socket"))
    assert code == 3


# -- which way a command takes


def way(
    monkeypatch: pytest.MonkeyPatch, *words: str, client: Path, config: Path, **variables: str
) -> str:
    """The daemon's URL, or "store"."""
    found: list[str] = []

    @click.command
    @click.option("--config", "config_path", type=Path, envvar="OUR_CONFIG", default=config)
    @asking.url_option
    @click.pass_context
    def command(context: click.Context, config_path: Path, url: str | None) -> None:
        daemon = asking.daemon_to_ask(context, config_path, url)
        found.append("store" if daemon is None else daemon.url)

    monkeypatch.setattr(asking, "DEFAULT_FILE", client)
    result = CliRunner().invoke(command, words, env=variables)
    return found[0] if found else f"{result.exception} {result.output}"


def test_the_command_line_decides_then_the_environment_then_what_may_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, config = written(tmp_path, 'url = "http://client"'), tmp_path / "config"
    config.write_text("")

    def taken(*words: str, **variables: str) -> str:
        return way(monkeypatch, *words, client=client, config=config, **variables)

    ours, url = {"OUR_CONFIG": "/c"}, {"SHAPLEYPRIO_URL": "http://variable"}
    assert taken("--config", "/c", **url) == "store"
    assert taken("--url", "http://option", **ours) == "http://option"
    assert "give one" in taken("--url", "http://option", "--config", "/c")
    assert taken(**url, **ours) == "http://variable"
    assert taken(**ours) == "store"
    assert taken() == "store"
    assert "is not http" in taken("--url", "ftp://x")
    config.unlink()
    assert taken() == "http://client"
    client.unlink()
    assert taken() == "store"  # which then says how to make a configuration


def test_a_configuration_that_is_not_ones_own_sends_one_to_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, config = tmp_path / "client.toml", tmp_path / "config"
    config.write_text("")
    monkeypatch.setattr(os, "access", lambda *_: False)
    found = way(monkeypatch, client=client, config=config)
    assert found.startswith(f"you may not read {config}")
    assert "SHAPLEYPRIO_URL" in found
    written(tmp_path, 'url = "http://client"')
    assert way(monkeypatch, client=client, config=config) == "http://client"


@pytest.mark.parametrize("words", ["explain 7", "explain --user ann", "status", "status --json"])
def test_the_commands_ask_the_daemon_and_end_with_one_line_if_it_is_away(words: str) -> None:
    result = CliRunner().invoke(main, [*words.split(), "--url", "unix:/nonexistent/socket"])
    assert (result.exit_code, result.stdout) == (3, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("shapleyprio: the daemon at unix:/nonexistent/socket does not answer")
