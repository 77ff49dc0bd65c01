"""Attacks on the page and the metrics, over real sockets."""

from __future__ import annotations

import os
import resource
import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from shapleyprio.serving import guesses, overview, server
from shapleyprio.serving.server import LocalServer
from tests.serving.sites import HOST, Certificates, Served, basic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

OTHERS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
"""Addresses of this host that stand for those of other clients."""

BEGINNING = b"GET /metrics HTTP/1.1\r\nX-Drip: "


def connections(
    stack: ExitStack, served: Served, number: int, beginning: bytes = b"", client: str = HOST
) -> list[socket.socket]:
    """Connections that have begun to ask."""
    opened = []
    for _ in range(number):
        one = socket.create_connection((HOST, served.port), 20, source_address=(client, 0))
        opened.append(stack.enter_context(one))
        with suppress(OSError):  # closed to make room for the next
            one.sendall(beginning)
    return opened


def drip(ones: Iterable[socket.socket]) -> None:
    for one in ones:
        with suppress(OSError):
            one.sendall(b"a")


def seconds_until_closed(one: socket.socket) -> float:
    """While a byte is sent now and then."""
    one.settimeout(0.05)
    begun = time.monotonic()
    while time.monotonic() < begun + 60:
        try:
            one.sendall(b"a")
            if one.recv(1) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - begun


def is_silent(one: socket.socket) -> bool:
    """Whether a connection is open and nothing has come."""
    one.setblocking(False)
    try:
        one.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is closed because the machine is slow."""
    monkeypatch.setattr(server, "REQUEST_SECONDS", 600.0)
    monkeypatch.setattr(overview, "PATIENCE_SECONDS", 600.0)


@pytest.mark.parametrize("number", [32, 300])
def test_silence_the_metrics_by_connections_that_drip(
    patient: None, opened: Served, number: int
) -> None:
    with ExitStack() as stack:
        ones = connections(stack, opened, number, BEGINNING)
        for _ in range(5):
            drip(ones)
            assert opened.ask("/metrics").status == 200
            assert opened.ask("/api/status").status == 503  # there is no cycle yet
        assert 0 < sum(map(is_silent, ones)) <= server.CONNECTIONS_OF_ONE


def test_hold_a_connection_by_a_byte_now_and_then(
    opened: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "REQUEST_SECONDS", 1.0)
    with ExitStack() as stack:
        (one,) = connections(stack, opened, 1, BEGINNING)
        assert 0.5 < seconds_until_closed(one) < 10


def test_hold_a_connection_by_a_handshake_that_never_ends(
    served: Served, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "REQUEST_SECONDS", 1.0)
    served.open(**certificates.settings())
    with ExitStack() as stack:
        hello = b"\x16\x03\x01\x7f\xff\x01\x00\x7f\xfb\x03\x03"  # of 32 kB, which never come
        one, *_ = connections(stack, served, 40, hello)
        assert served.ask("/metrics", tls=certificates.trusting()).status == 200
        assert seconds_until_closed(one) < 10


def test_keep_others_out_by_taking_every_connection(patient: None, opened: Served) -> None:
    with ExitStack() as stack:
        for client in OTHERS:
            connections(stack, opened, server.CONNECTIONS_OF_ONE, BEGINNING, client)
        ours = connections(stack, opened, 5, BEGINNING)
        connections(stack, opened, server.CONNECTIONS_OF_ONE, BEGINNING, OTHERS[0])
        assert opened.ask("/metrics").status == 200
        assert all(map(is_silent, ours))


def test_silence_the_metrics_by_asking_for_the_page_while_the_store_hangs(
    patient: None, opened: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging = threading.Event()

    def hang(*_: object) -> None:
        hanging.wait(300)
        raise AssertionError

    monkeypatch.setattr(overview, "read_status", hang)
    with ExitStack() as stack, capture_logs():
        stack.callback(hanging.set)
        asked = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        ones = connections(stack, opened, 100, asked)
        assert opened.ask("/").status == 503
        for _ in range(5):
            assert opened.ask("/metrics").status == 200
        assert opened.ask("/metrics", client=OTHERS[0]).status == 200
        until = time.monotonic() + 60
        while sum(map(is_silent, ones)) != server.AT_ONCE:  # the others are refused
            assert time.monotonic() < until
            time.sleep(0.05)


def test_fill_the_memory_by_large_headers(opened: Served) -> None:
    opened.ask("/metrics")
    before = resident()
    line = b"a" * 65_000 + b"\r\n"
    whole = b"GET /metrics HTTP/1.1\r\n" + b"".join(b"H%d: " % i + line for i in range(99))
    body = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n"
    with ExitStack() as stack:

        def push(one: socket.socket, what: bytes) -> None:
            with suppress(OSError):
                for begin in range(0, len(what), 1 << 16):
                    one.sendall(what[begin : begin + (1 << 16)])

        ones = connections(stack, opened, 64)
        pushing = [
            threading.Thread(target=push, args=(one, body + line * 99 if index % 2 else whole))
            for index, one in enumerate(ones)
        ]
        for thread in pushing:
            thread.start()
        for thread in pushing:
            thread.join(60)
        assert resident() - before < 30 << 20
        assert opened.ask("/metrics").status == 200


def resident() -> int:
    """Bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_guess_the_password(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "password"
    file.write_text("swordfish\n")
    file.chmod(0o600)
    served.open(username="prometheus", password_file=str(file))
    right = basic("prometheus", "swordfish")
    with capture_logs() as lines:
        answers = [
            served.ask("/metrics", headers=basic("prometheus", str(guess))).status
            for guess in range(50)
        ]
        assert answers == [401] * guesses.FREE_GUESSES + [429] * (50 - guesses.FREE_GUESSES)
        assert served.ask("/metrics", headers=right).status == 429  # it learns nothing
    assert {line["client"] for line in lines} == {HOST}
    assert len(lines) == guesses.FREE_GUESSES
    assert served.ask("/metrics", headers=right, client=OTHERS[0]).status == 200
    monkeypatch.setattr(guesses, "SECONDS_A_GUESS", 0.1)
    assert served.site._server is not None
    app: Any = served.site._server._connections._app
    app._guesses = guesses.Guesses(clock=lambda: time.monotonic() + 100)
    assert served.ask("/metrics", headers=right).status == 200


def test_learn_what_the_server_is_made_of(opened: Served) -> None:
    asked = [b"GET / HTTP/1.0\r\n\r\n", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"]
    asked += [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a:b\r\n\r\n",
        b"PUT /x HTTP/1.0\r\n\r\n",
    ]
    with ExitStack() as stack:
        for one in asked:
            (connection,) = connections(stack, opened, 1, one)
            head = connection.makefile("rb").read().partition(b"\r\n\r\n")[0].lower()
            assert head.startswith(b"http/1.1 ")
            assert not [word for word in (b"python", b"tornado", b"wsgi") if word in head]


def test_fill_the_log_by_what_is_no_request(
    served: Served, certificates: Certificates, capfd: pytest.CaptureFixture[str]
) -> None:
    served.open(**certificates.settings())
    with ExitStack() as stack, capture_logs() as lines:
        for nonsense in (
            b"\x00" * 100,
            b"GET / HTTP/1.0\r\n\r\n",
            os.urandom(100),
            b"\x16\x03\x01",
        ):
            for one in connections(stack, served, 5, nonsense):
                one.close()
        assert served.ask("/metrics", tls=certificates.trusting()).status == 200
    assert [line for line in lines if line["log_level"] != "debug"] == []
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/status", "/ask/status?columns=80"])
def test_read_the_page_by_giving_ones_own_name_this_address(opened: Served, path: str) -> None:
    for host in ("evil.example", "evil.example:9817", "127.0.0.1.evil.example", "localhost.evil"):
        answer = opened.ask(path, headers={"Host": host})
        assert answer.status == 421, host
        assert "metrics.host_names" in answer.text
    own = (HOST, f"{HOST}:{opened.port}", "[::1]:1", "LOCALHOST:9817", f"{socket.gethostname()}.")
    for host in own:
        assert opened.ask(path, headers={"Host": host}).status in {200, 404, 503}, host
    opened.site.renew(opened.config(host_names=["Slurm.example.org"]))
    assert opened.ask(path, headers={"Host": "slurm.example.org:9817"}).status != 421


@pytest.mark.parametrize("host", ["a:b", "[", "]", "[::1", "::", "a:b:c", "a b", "ä"])
def test_make_a_request_fail_by_a_host_that_is_none(opened: Served, host: str) -> None:
    with ExitStack() as stack, capture_logs() as lines:
        asked = f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1")
        (one,) = connections(stack, opened, 1, asked)
        assert one.makefile("rb").readline().split()[1] in {b"400", b"421"}
    assert [line for line in lines if line["log_level"] != "debug"] == []


@pytest.mark.parametrize("kind", ["application/openmetrics-text", "text/plain"])
@pytest.mark.parametrize("version", ["abc", "1.x", "9" * 5000, ".", "-"])
def test_make_the_metrics_fail_by_a_version_that_is_no_number(
    opened: Served, kind: str, version: str
) -> None:
    with capture_logs() as lines:
        answer = opened.ask("/metrics", headers={"Accept": f"{kind};version={version}"})
    assert (answer.status, lines) == (200, [])
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "shapleyprio_build_info" in answer.text


def test_keep_others_from_asking_by_asking_all_the_time(tmp_path: Path) -> None:
    hanging, worked_on = threading.Event(), threading.Semaphore(0)

    def hang(_environ: object, start_response: Callable[..., object]) -> list[bytes]:
        worked_on.release()
        hanging.wait(300)
        start_response("200 OK", [])
        return []

    local = LocalServer(tmp_path / "socket", hang)
    local.start()
    with ExitStack() as stack:
        stack.callback(local.close)
        stack.callback(hanging.set)

        def ask() -> IO[bytes]:
            one = stack.enter_context(socket.socket(socket.AF_UNIX))
            one.settimeout(60)
            one.connect(str(tmp_path / "socket"))
            one.sendall(b"GET /ask/status HTTP/1.0\r\n\r\n")
            return one.makefile("rb")

        answers = [ask() for _ in range(server.QUESTIONS_AT_ONCE)]
        for _ in answers:  # the server may read requests in another order than they were sent
            assert worked_on.acquire(timeout=60)
        for refused in (ask(), ask()):
            assert b" 503 " in refused.readline()
        hanging.set()
        for answered in answers:
            assert b" 200 " in answered.readline()
