"""Files for TLS and the password: what is wrong with them is said clearly."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from shapleyprio.config import ConfigError, MetricsSection, load_config
from shapleyprio.serving.security import Security, read_security
from tests.serving.sites import Certificates

ONE = '[[organization]]\nname = "physics"\n'


def refusal(**settings: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        read_security(MetricsSection(**settings))
    (problem,) = caught.value.problems
    return problem


def written(folder: Path, text: str | bytes, mode: int = 0o600) -> str:
    file = folder / "file"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    file.chmod(mode)
    return str(file)


def test_without_settings_everybody_may_read() -> None:
    assert read_security(MetricsSection()) == Security()
    assert Security().admits("")


@pytest.mark.parametrize("text", ["swordfish", "swordfish\n", "swordfish\r\n"])
def test_the_password_is_the_line_in_its_file(tmp_path: Path, text: str) -> None:
    settings = {"username": "p", "password_file": written(tmp_path, text)}
    assert read_security(MetricsSection.model_validate(settings)).credentials == b"p:swordfish"


@pytest.mark.parametrize("text", ["", "\n", "two\nlines\n"])
def test_a_file_that_holds_no_password_is_refused(tmp_path: Path, text: str) -> None:
    file = written(tmp_path, text)
    assert refusal(username="p", password_file=file) == (
        f"metrics.password_file: {file} must hold the password in one line, nothing else"
    )


def test_a_password_in_another_encoding_is_refused(tmp_path: Path) -> None:
    answer = refusal(username="p", password_file=written(tmp_path, "schlüssel".encode("latin-1")))
    assert answer.endswith("is not text in UTF-8")


@pytest.mark.parametrize("mode", [0o644, 0o602])
def test_a_secret_that_others_may_read_is_refused(
    tmp_path: Path, certificates: Certificates, mode: int
) -> None:
    file = written(tmp_path, "swordfish", mode)
    how = f"{file} is open to every user of this host; chmod o= {file}"
    assert refusal(username="p", password_file=file) == f"metrics.password_file: {how}"
    assert refusal(**certificates.settings(tls_key=file)) == f"metrics.tls_key: {how}"


@pytest.mark.parametrize("key", ["tls_certificate", "tls_key", "tls_client_ca"])
def test_a_file_that_is_missing_is_named(certificates: Certificates, key: str) -> None:
    assert refusal(**certificates.settings(**{key: "/no/such"})) == (
        f"metrics.{key}: /no/such cannot be read (No such file or directory); "
        "correct the path, or let the daemon's user read it"
    )


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("tls_certificate", "holds no certificate in PEM; it begins with"),
        ("tls_client_ca", "holds no certificate of an authority in PEM"),
        ("tls_key", "cannot be used with"),
    ],
)
def test_a_file_that_is_something_else_is_named(
    tmp_path: Path, certificates: Certificates, key: str, answer: str
) -> None:
    file = written(tmp_path, "nothing of the kind")
    message = refusal(**certificates.settings(**{key: file}))
    assert message.startswith(f"metrics.{key}: {file} {answer}")


def test_the_key_of_another_certificate_is_refused(certificates: Certificates) -> None:
    key = certificates.folder / "client.key"
    answer = refusal(**certificates.settings(tls_key=str(key)))
    assert answer.startswith(f"metrics.tls_key: {key} is not the key of the certificate")


def test_a_key_with_a_passphrase_is_refused_and_nobody_asked_for_it(
    tmp_path: Path, certificates: Certificates
) -> None:
    key = tmp_path / "locked.key"
    words = ["openssl", "ec", "-in", str(certificates.folder / "host.key"), "-aes128"]
    words += ["-passout", "pass:secret", "-out", str(key)]
    subprocess.run(words, check=True, capture_output=True)
    key.chmod(0o600)
    assert refusal(**certificates.settings(tls_key=str(key))) == (
        f"metrics.tls_key: {key} has a passphrase; store it without one"
    )


@pytest.mark.parametrize(
    ("key", "needed"),
    [
        ("tls_certificate", "tls_key"),
        ("tls_key", "tls_certificate"),
        ("tls_client_ca", "tls_certificate"),
        ("password_file", "username"),
    ],
)
def test_half_a_setting_is_refused_where_it_stands(tmp_path: Path, key: str, needed: str) -> None:
    file = tmp_path / "shapleyprio.toml"
    file.write_text(f'[metrics]\n{key} = "/some/file"\n{ONE}')
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    assert caught.value.problems == [
        f"{file}:2: metrics.{key}: is of no use without metrics.{needed}; give both or neither"
    ]


def test_a_name_with_a_colon_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "shapleyprio.toml"
    file.write_text(f'[metrics]\nusername = "a:b"\npassword_file = "/p"\n{ONE}')
    with pytest.raises(ConfigError, match=r":2: metrics.username: 'a:b' is not a name without a"):
        load_config(file)
