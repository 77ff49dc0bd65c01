"""Access to the page: certificates and passwords as the configuration names them."""

from __future__ import annotations

import base64
import binascii
import hmac
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from shapleyprio.config import ConfigError, MetricsSection
from shapleyprio.config.secret_files import exposure

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Security:
    """How the server protects its answers.

    Attributes:
        tls: what every connection is encrypted by; None for plain HTTP.
        credentials: ``username:password`` that every request must bring, None for none.
    """

    tls: ssl.SSLContext | None = None
    credentials: bytes | None = None

    def admits(self, authorization: str) -> bool:
        """Returns whether a request with that Authorization header (empty: without) may read."""
        if self.credentials is None:
            return True
        scheme, _, encoded = authorization.partition(" ")
        try:
            given = base64.b64decode(encoded.strip(), validate=True)
        except (binascii.Error, ValueError):
            return False
        return scheme.lower() == "basic" and hmac.compare_digest(given, self.credentials)


def read_security(metrics: MetricsSection) -> Security:
    """Reads the files that the configuration names.

    Raises:
        ConfigError: one is missing, not what it should be, or a secret that others may read.
    """
    tls = None
    if metrics.tls_certificate is not None and metrics.tls_key is not None:
        tls = _tls(metrics.tls_certificate, metrics.tls_key, metrics.tls_client_ca)
    credentials = None
    if metrics.username is not None and metrics.password_file is not None:
        credentials = f"{metrics.username}:{_password(metrics.password_file)}".encode()
    return Security(tls, credentials)


def _tls(certificate: Path, key: Path, client_ca: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _text_of("tls_certificate", certificate)
    _keep_from_others("tls_key", key)
    _text_of("tls_key", key)
    try:
        # OpenSSL would ask the terminal for the passphrase of a key that has one
        context.load_cert_chain(certificate, key, password=_no_passphrase)
    except _PassphraseError:
        raise _refusal("tls_key", key, "has a passphrase; store it without one") from None
    except ssl.SSLError as error:
        raise _bad_pair(certificate, key, error) from None
    if client_ca is not None:
        _text_of("tls_client_ca", client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
        _or_refuse(
            lambda: context.load_verify_locations(client_ca),
            "tls_client_ca",
            client_ca,
            "holds no certificate of an authority in PEM",
        )
    return context


class _PassphraseError(Exception):
    """A key is encrypted."""


def _no_passphrase() -> str:
    raise _PassphraseError


def _bad_pair(certificate: Path, key: Path, error: ssl.SSLError) -> ConfigError:
    if error.reason == "KEY_VALUES_MISMATCH":
        return _refusal("tls_key", key, f"is not the key of the certificate {certificate}")
    _or_refuse(
        lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(certificate),
        "tls_certificate",
        certificate,
        "holds no certificate in PEM; it begins with -----BEGIN CERTIFICATE-----",
    )
    return _refusal("tls_key", key, f"cannot be used with {certificate} ({error.reason or error})")


def _or_refuse(action: Callable[[], Result], field: str, file: Path, what: str) -> Result:
    try:
        return action()
    except ssl.SSLError:
        raise _refusal(field, file, what) from None


def _password(file: Path) -> str:
    _keep_from_others("password_file", file)
    password = _text_of("password_file", file).removesuffix("\n").removesuffix("\r")
    if not password or not password.isprintable():
        raise _refusal("password_file", file, "must hold the password in one line, nothing else")
    return password


def _keep_from_others(field: str, file: Path) -> None:
    try:
        exposed = exposure(file)
    except OSError as error:
        raise _unreadable(field, file, error) from None
    if exposed:
        raise _refusal(field, file, exposed)


def _text_of(field: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise _unreadable(field, file, error) from None
    except UnicodeDecodeError:
        raise _refusal(field, file, "is not text in UTF-8") from None


def _unreadable(field: str, file: Path, error: OSError) -> ConfigError:
    remedy = "correct the path, or let the daemon's user read it"
    return _refusal(field, file, f"cannot be read ({error.strerror}); {remedy}")


def _refusal(field: str, file: Path, what: str) -> ConfigError:
    return ConfigError([f"metrics.{field}: {file} {what}"])
