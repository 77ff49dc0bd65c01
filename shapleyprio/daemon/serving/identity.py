"""Who asks: proven by the kernel on the Unix socket, by a credential of munge on the network."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from shapleyprio.daemon.answering.inquiries import Asker, payload
from shapleyprio.slurm.access import Access, Authentication, Rights
from shapleyprio.slurm.munge import Munge
from shapleyprio.slurm.port import SlurmError, SlurmRefusedError

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment

PEER = "shapleyprio.peer"
"""Key of the number of the user at the other end of a Unix socket."""

END = "shapleyprio.end"
"""Key of the server's own end of a connection: host and port."""

SCHEME = "Munge"
"""What the header Authorization begins with."""

KEPT_SECONDS = 60.0
"""Seconds for which rights and settings are not read again."""

MOST_KEPT = 1000
ROOT = 0

Key = TypeVar("Key")
Known = TypeVar("Known")


class UnprovenError(Exception):
    """The asker is not proven; the message says what is missing."""


class Askers:
    """Finds out who asks, and what they may see.

    Args:
        access: what Slurm knows of users.
        munge: made of the socket of munged.
        clock: seconds of a clock that never goes back.
    """

    def __init__(
        self,
        access: Access,
        munge: Callable[[Path | None], Munge] = Munge,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._munge = munge
        self._authentications: _Remembered[None, Authentication] = _Remembered(clock)
        self._rights: _Remembered[str, Rights] = _Remembered(clock)
        self._accounts: _Remembered[tuple[str, str], str] = _Remembered(clock)

    def asker(self, environ: WSGIEnvironment, target: str) -> Asker:
        """Returns who sent a request.

        Args:
            environ: of the request.
            target: its path and query.

        Raises:
            UnprovenError: it brings no credential, or one that proves nothing here.
            SlurmError: munge does not answer.
        """
        number = environ.get(PEER)
        if number is None:
            number = self._by_credential(environ, target)
        try:
            name = pwd.getpwuid(number).pw_name
        except KeyError:
            raise UnprovenError(f"this host has no user with the UID {number}") from None
        return Asker(
            name,
            lambda: self._rights_of(number, name),
            lambda named: self._accounts.get(
                (name, named), lambda: self._access.account(name, named)
            ),
        )

    def _by_credential(self, environ: WSGIEnvironment, target: str) -> int:
        scheme, _, credential = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.casefold() != SCHEME.casefold():
            raise UnprovenError("a munge credential is required")
        socket = self._authentication().munge_socket
        try:
            number, said = self._munge(socket).decode(credential.strip())
        except SlurmRefusedError as error:
            raise UnprovenError(str(error)) from None
        wanted = payload(environ["REQUEST_METHOD"], target, *environ[END])
        if said != wanted:
            raise UnprovenError(
                "the credential is for another question or server (between client and daemon "
                "there must be no proxy and no other address)"
            )
        return number

    def _rights_of(self, number: int, name: str) -> Rights:
        if number in {ROOT, os.geteuid()} or number == self._authentication().slurm_user:
            return Rights(operator=True)
        return self._rights.get(name, lambda: self._access.rights(name))

    def _authentication(self) -> Authentication:
        """Returns Slurm's settings; while it is away, those that there are without any."""
        try:
            return self._authentications.get(None, self._access.authentication)
        except SlurmError:
            return self._authentications.last(None, Authentication())


class _Remembered(Generic[Key, Known]):
    """What was read of Slurm, for a while; several threads may ask."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._found: dict[Key, tuple[float, Known]] = {}

    def get(self, key: Key, read: Callable[[], Known]) -> Known:
        """Returns what was read lately, or reads it."""
        until, found = self._found.get(key, (0.0, None))
        if found is None or self._clock() >= until:
            if len(self._found) >= MOST_KEPT:
                self._found.clear()
            found = read()
            self._found[key] = (self._clock() + KEPT_SECONDS, found)
        return found

    def last(self, key: Key, default: Known) -> Known:
        """Returns what was read last, however long ago."""
        found = self._found.get(key)
        return default if found is None else found[1]
