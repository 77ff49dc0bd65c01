"""Attacks on the page and the metrics, over real sockets."""

from __future__ import annotations

import http.client
import os
import resource
import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest
from selenium.webdriver.common.by import By
from structlog.testing import capture_logs

from shapleyprio.common.wording import visible
from shapleyprio.daemon.serving import overview, server
from shapleyprio.daemon.serving.server import LocalServer
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.store import CycleRow, ExceptionRow, PauseRow, PendingJobs, StandingRow
from tests.daemon.consortium import NAME, NOW
from tests.daemon.serving.sites import HOST, Served
from tests.reports.browsing import DESKTOP, browser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from shapleyprio.store import Store

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
    opened: Served, capfd: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack, capture_logs() as lines:
        for nonsense in (
            b"\x00" * 100,
            b"GET / HTTP/1.0\r\n\r\n",
            os.urandom(100),
            b"\x16\x03\x01",
        ):
            for one in connections(stack, opened, 5, nonsense):
                one.close()
        assert opened.ask("/metrics").status == 200
    assert [line for line in lines if line["log_level"] != "debug"] == []
    assert capfd.readouterr().err == ""


def own_address() -> str:
    """Of this host in the network; a connection to it does not come over loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this host has no address but loopback")
        address: str = probe.getsockname()[0]
    return address


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/status", "/graph"])
def test_read_the_page_from_another_host_by_forged_headers(served: Served, path: str) -> None:
    served.open(address=f"0.0.0.0:{served.port}")
    forged = ("X-Forwarded-For", "X-Real-IP", "X-Remote-User", "Host")
    for headers in ({}, dict.fromkeys(forged, HOST) | {"Forwarded": f"for={HOST}"}):
        network = http.client.HTTPConnection(own_address(), served.port, timeout=20)
        network.request("GET", path, headers=headers)
        answer = network.getresponse()
        assert (answer.status, NAME in answer.read().decode()) == (403, False)
        network.close()
    assert served.ask(path).status in {200, 404, 503}


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/status"])
def test_read_the_page_by_giving_ones_own_name_this_address(opened: Served, path: str) -> None:
    for host in ("evil.example", "evil.example:9817", "127.0.0.1.evil.example", "localhost.evil"):
        answer = opened.ask(path, headers={"Host": host})
        assert answer.status == 421, host
        assert "does not name this host" in answer.text
    own = (HOST, f"{HOST}:{opened.port}", "[::1]:1", "LOCALHOST:9817", f"{socket.gethostname()}.")
    for host in own:
        assert opened.ask(path, headers={"Host": host}).status in {200, 404, 503}, host


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


class Hanging:
    """A server on a UNIX socket whose answers take until they are let go.

    Attributes:
        called: released for each request that is worked on.
    """

    def __init__(self, place: Path, stack: ExitStack) -> None:
        self.called = threading.Semaphore(0)
        self._let_go = threading.Event()
        self._place = place
        self._server = LocalServer(place, self._answer)
        self._server.start()
        stack.callback(self._server.close)
        stack.callback(self.let_go)

    def let_go(self) -> None:
        self._let_go.set()

    def has_clients(self) -> bool:
        return bool(self._server._connections._open)

    def ask(self) -> socket.socket:
        one = socket.socket(socket.AF_UNIX)
        one.settimeout(60)
        one.connect(str(self._place))
        one.sendall(b"GET /ask/status HTTP/1.0\r\n\r\n")
        return one

    def _answer(self, _environ: object, start_response: Callable[..., object]) -> list[bytes]:
        self.called.release()
        self._let_go.wait(300)
        start_response("200 OK", [])
        return []


def test_keep_others_from_asking_by_asking_all_the_time(tmp_path: Path) -> None:
    with ExitStack() as stack:
        hanging = Hanging(tmp_path / "socket", stack)

        def ask() -> IO[bytes]:
            return stack.enter_context(hanging.ask()).makefile("rb")

        answers = [ask() for _ in range(server.QUESTIONS_AT_ONCE)]
        for _ in answers:  # the server may read requests in another order than they were sent
            assert hanging.called.acquire(timeout=60)
        for refused in (ask(), ask()):
            assert b" 503 " in refused.readline()
        hanging.let_go()
        for answered in answers:
            assert b" 200 " in answered.readline()


def test_keep_others_from_asking_by_hanging_up(tmp_path: Path) -> None:
    with ExitStack() as stack:
        hanging = Hanging(tmp_path / "socket", stack)
        for _ in range(server.QUESTIONS_AT_ONCE):
            with hanging.ask():
                assert hanging.called.acquire(timeout=60)
        until = time.monotonic() + 60
        while hanging.has_clients():
            assert time.monotonic() < until
            time.sleep(0.01)
        with hanging.ask() as refused:
            assert b" 503 " in refused.makefile("rb").readline()
        hanging.let_go()
        answer = b""
        while b" 200 " not in answer:  # as soon as the others' work is over
            assert time.monotonic() < until
            with hanging.ask() as answered:
                answer = answered.makefile("rb").readline()


BREAK_OUT = "document.documentElement.dataset.ran=1"
HOSTILE = (
    f"<script>{BREAK_OUT}</script>",
    f"<img src=x onerror={BREAK_OUT}>",
    f"\"' autofocus tabindex=0 onfocus={BREAK_OUT} x='",
    f"</small></th></style></script><svg onload={BREAK_OUT}>",
    "{{ 7 * 7 }}{% raw %}&lt;b&gt;<!--",
    "\u202eyadot\u2066\x1b[2J\x00",
)
"""What others can make names, reasons and messages of."""

OF_NAMES = "script, img, [onfocus], [autofocus], svg[onload], b b, iframe, object, form"


def fill(store: Store) -> None:
    """Every text that the page shows is somebody's, and hostile."""
    with store.cluster(NAME).transaction() as transaction:
        transaction.history.save_cycle(
            CycleRow(number=1, started=NOW, finished=NOW + 1, outcome="ok", t=NOW)
        )
        transaction.history.save_cycle(
            CycleRow(number=2, started=NOW, finished=NOW + 1, outcome="x", message="".join(HOSTILE))
        )
        transaction.history.save_standings(
            StandingRow(
                cycle=1, organization=name, t=NOW, contribution=0, utility=0, score=-place,
                parts=1, all_parts=9, priority=10 - place, pending=1, running=1, processors=1,
                reason=name,
            )
            for place, name in enumerate(HOSTILE)
        )  # fmt: skip
        transaction.observed.save_pending_jobs(
            PendingJobs(organization=name, partition=name, jobs=1, since=NOW) for name in HOSTILE
        )
        transaction.orders.begin_pause(
            PauseRow(since=NOW, user=HOSTILE[1], reason="".join(HOSTILE), keep=False)
        )
        for number, name in enumerate(HOSTILE):
            transaction.orders.begin_exception(
                ExceptionRow(
                    job_id=number, since=NOW, label=name, organization=name, user=name,
                    reason=name, before_all=False,
                )
            )  # fmt: skip


def test_run_code_in_the_browser_of_whoever_reads_the_page_by_a_name(served: Served) -> None:
    fill(served.store)
    served.findings = [Finding(Severity.ERROR, name, name, name) for name in HOSTILE]
    served.open()
    with browser(DESKTOP) as driver:
        driver.get(f"http://{HOST}:{served.port}/")
        text = driver.find_element(By.TAG_NAME, "body").text
        assert driver.find_elements(By.CSS_SELECTOR, OF_NAMES) == []
        assert driver.execute_script("return document.documentElement.dataset.ran") is None
        assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0
        assert driver.get_log("browser") == []  # type: ignore[no-untyped-call]
    shown = [" ".join(visible(name).split()) for name in HOSTILE]
    # balances, waits, exceptions, findings, the pause and the failed cycle
    assert [text.count(name) >= 8 for name in shown] == [True] * len(HOSTILE), text
    assert not any(unseen in text for unseen in "\u202e\u2066\x1b")
