"""The reverse proxy of docs/status-page.md, a real nginx, in front of the real server."""

from __future__ import annotations

import base64
import http.client
import os
import shutil
import ssl
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from shapleyprio.lab.testbed.machine import SEARCH_PATH, SlurmUnavailableHere, install
from shapleyprio.lab.testbed.processes import wait_until
from tests.daemon.consortium import NAME
from tests.daemon.serving.sites import HOST, Answer, free_port
from tests.daemon.serving.test_documentation import block

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.daemon.consortium import Service
    from tests.daemon.serving.sites import Served

CALLED = "slurm.example.org"
AROUND = """\
daemon off;
pid {folder}/pid;
error_log {folder}/log;
{user}
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {example}
}}
"""


@pytest.fixture(scope="session")
def nginx() -> str:
    """The program; as root it is installed where it is missing."""
    if shutil.which("nginx", path=SEARCH_PATH) is None:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            pytest.skip("no nginx here (Debian: nginx-light)")
        try:
            install(["nginx-light"])
        except SlurmUnavailableHere as reason:
            pytest.skip(f"nginx cannot be installed: {reason}")
    found = shutil.which("nginx", path=SEARCH_PATH)
    assert found is not None
    return found


@dataclass(frozen=True)
class Proxy:
    """How to ask it."""

    port: int
    trusting: ssl.SSLContext

    def ask(self, path: str, password: str | None = None, method: str = "GET") -> Answer:
        """Asks by the name that the certificate has."""
        headers = {"Host": CALLED}
        if password is not None:
            login = base64.b64encode(f"prometheus:{password}".encode()).decode()
            headers["Authorization"] = f"Basic {login}"
        connection = http.client.HTTPSConnection(HOST, self.port, timeout=20, context=self.trusting)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()


@pytest.fixture
def proxy(nginx: str, opened: Served, tmp_path: Path) -> Iterator[Proxy]:
    """The documented example, but for its ports and the folder of its files."""
    port = free_port()
    example = block("nginx")
    for documented, ours in (
        ("listen 443", f"listen {HOST}:{port}"),
        ("127.0.0.1:9817", f"{HOST}:{opened.port}"),
        ("/etc/nginx", str(tmp_path)),
    ):
        assert documented in example
        example = example.replace(documented, ours)
    key, certificate = tmp_path / "shapleyprio.key", tmp_path / "shapleyprio.crt"
    words = ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-days", "2"]
    words += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", f"/CN={CALLED}"]
    words += ["-addext", f"subjectAltName=IP:{HOST}", "-keyout", str(key)]
    subprocess.run([*words, "-out", str(certificate)], check=True, capture_output=True)
    hashed = ["openssl", "passwd", "-apr1", "swordfish"]
    line = subprocess.run(hashed, check=True, capture_output=True, text=True).stdout
    (tmp_path / "shapleyprio.users").write_text(f"prometheus:{line}")
    config = tmp_path / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""  # nobody else gets to the folder
    config.write_text(AROUND.format(folder=tmp_path, user=user, example=example))
    process = subprocess.Popen([nginx, "-c", str(config)])
    try:
        proxy = Proxy(port, ssl.create_default_context(cafile=str(certificate)))
        wait_until(lambda: answers(proxy), real_seconds=60, what="nginx to answer")
        yield proxy
    finally:
        process.terminate()
        process.wait(60)


def answers(proxy: Proxy) -> bool:
    try:
        return proxy.ask("/").status == 401
    except ConnectionRefusedError:
        return False


def test_who_logs_in_reads_what_this_host_reads(proxy: Proxy, steered: Service) -> None:
    for path in ("/", "/metrics", "/api/status", "/api/status?pool="):
        answer = proxy.ask(path, "swordfish")
        assert (answer.status, NAME in answer.text) == (200, True), path
    assert proxy.ask("/", "swordfish", "POST").status == 405


def test_who_does_not_log_in_reads_nothing(proxy: Proxy, steered: Service) -> None:
    for path in ("/", "/metrics", "/api/status"):
        for password in (None, "", "trout"):
            answer = proxy.ask(path, password)
            assert (answer.status, NAME in answer.text) == (401, False), path


def test_questions_are_not_passed_on(proxy: Proxy) -> None:
    for password in (None, "swordfish"):
        assert proxy.ask("/ask/status?columns=80", password).status == 404


def test_who_guesses_is_slowed_down(proxy: Proxy) -> None:
    asked = [proxy.ask("/", str(guess)).status for guess in range(60)]
    assert set(asked) == {401, 429}
    assert asked.count(429) > 20


def test_nothing_is_passed_on_in_clear(proxy: Proxy) -> None:
    connection = http.client.HTTPConnection(HOST, proxy.port, timeout=20)
    connection.request("GET", "/metrics")
    assert connection.getresponse().status == 400
    connection.close()
