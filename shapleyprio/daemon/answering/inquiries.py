"""Questions to the daemon from users, who may not read its store: who asks what."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from threading import Lock
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode

from shapleyprio.common.wording import DAY
from shapleyprio.slurm.access import Rights
from shapleyprio.slurm.port import PendingQueue, Slurm, SlurmError

FOLDER = "/ask/"
"""What the paths of all questions begin with."""

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "explain": ("job", "user", "account", "what_if"),
    "status": ("columns", "waits"),
}
"""Command that can be asked -> the keys of its question, one of which it needs. Those of `status`
have the width of a terminal; ``waits`` asks for how long jobs wait, too. ``what_if`` has an
`AskedJob`."""

LONGEST_VALUE = 255
MOST_COLUMNS = 10_000
LONGEST_LIMIT = 366 * DAY
MOST_PROCESSORS = 2**31 - 1
KEPT_SECONDS = 3.0
"""Seconds for which one look into Slurm's queue answers all who ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedJob:
    """A job that somebody may submit.

    Attributes:
        limit: its time limit in seconds.
        processors: that it asks for.
        partition: to which it is submitted.
        account: for which; empty for the default account of who asks.
    """

    limit: int
    processors: int
    partition: str
    account: str

    def as_text(self) -> str:
        """Returns what `read` reads.

        >>> AskedJob(limit=60, processors=2, partition="short", account="").as_text()
        '60,2,short,'
        """
        return f"{self.limit},{self.processors},{self.partition},{self.account}"

    @classmethod
    def read(cls, text: str) -> Self:
        """Reads a job.

        Raises:
            ValueError: it is none; the message is one line.
        """
        match text.split(","):
            case [limit, processors, partition, account] if partition and all(
                number.isascii() and number.isdecimal() for number in (limit, processors)
            ):
                job = cls(
                    limit=int(limit),
                    processors=int(processors),
                    partition=partition,
                    account=account,
                )
                if 0 < job.limit <= LONGEST_LIMIT and 0 < job.processors <= MOST_PROCESSORS:
                    return job
        raise ValueError(
            f"a job has a time limit of 1 s to {LONGEST_LIMIT // DAY} days, 1 to "
            f"{MOST_PROCESSORS} processors, one partition, and at most one account"
        )


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question to the daemon.

    Attributes:
        command: of shapleyprio, whose answer is wanted.
        key: what it is about, one of `COMMANDS`.
        value: of the key, such as a job's number.
        pool: for `status`, which of the pools that split the cluster is meant; None for all.
    """

    command: str
    key: str
    value: str
    pool: str | None = None

    @property
    def target(self) -> str:
        """The path and query of the request."""
        pool = {} if self.pool is None else {"pool": self.pool}
        return f"{FOLDER}{self.command}?{urlencode({self.key: self.value, **pool})}"

    @classmethod
    def read(cls, path: str, query: str) -> Inquiry:
        """Reads a request.

        Raises:
            ValueError: it is no question; the message says why.
        """
        command = path.removeprefix(FOLDER)
        if command not in COMMANDS:
            raise ValueError(f"known paths: {', '.join(FOLDER + name for name in COMMANDS)}")
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=2)
        pools = [value for key, value in pairs if key == "pool" and command == "status"]
        rest = [pair for pair in pairs if pair[0] in COMMANDS[command] and pair[1]]
        if len(rest) != 1 or len(pools) > 1 or len(rest) + len(pools) != len(pairs):
            raise ValueError(f"one parameter expected: {', '.join(COMMANDS[command])}")
        ((key, value),) = rest
        inquiry = cls(command, key, value, *pools)
        inquiry.check()
        return inquiry

    def check(self) -> None:
        """Checks what it says.

        Raises:
            ValueError: that cannot be answered; the message says why.
        """
        for name, said in ((self.key, self.value), ("pool", self.pool or "")):
            if len(said) > LONGEST_VALUE:
                raise ValueError(f"{name} is longer than {LONGEST_VALUE} characters")
        if self.command == "status" and not (
            self.value.isdecimal() and 0 < int(self.value) <= MOST_COLUMNS
        ):
            raise ValueError(f"{self.key} is a number from 1 to {MOST_COLUMNS}")
        if self.key == "what_if":
            AskedJob.read(self.value)


@dataclass(frozen=True, slots=True)
class InquiryAnswer:
    """The answer of a command.

    Attributes:
        value: what it writes as JSON.
        lines: what it prints else.
        code: its exit code.
    """

    value: Mapping[str, Any]
    lines: tuple[str, ...]
    code: int = 0


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks.

    Attributes:
        user: login name.
        rights: reads what the user may see of others' jobs; raises SlurmError.
        account: reads to which account the user's job goes that names one, or none: empty if to
            none; raises SlurmError.
    """

    user: str
    rights: Callable[[], Rights]
    account: Callable[[str], str] = lambda _: ""


def payload(method: str, target: str, host: str, port: int) -> str:
    """Returns what a credential says that proves who asks: this question, at this server.

    Args:
        method: of the request.
        target: its path and query.
        host: of the server's end of the connection, so that a credential that somebody else was
            sent is worth nothing here.
        port: so.

    >>> payload("GET", "/ask/explain?job=7", "::ffff:10.0.0.1", 9817)
    'shapleyprio GET /ask/explain?job=7 at 10.0.0.1 9817'
    """
    address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return f"shapleyprio {method} {target} at {address} {port}"


class RecentQueue:
    """Slurm's queue, looked into seldom, however many ask.

    Args:
        slurm: where it is.
        clock: seconds of a clock that never goes back.
    """

    def __init__(self, slurm: Slurm, clock: Callable[[], float] = time.monotonic) -> None:
        self._slurm = slurm
        self._clock = clock
        self._reading = Lock()
        self._found: PendingQueue | SlurmError | None = None
        self._until = 0.0

    def pending(self) -> PendingQueue:
        """Returns the jobs that wait, as of some seconds ago at most.

        Raises:
            SlurmError: it could not be read, some seconds ago at most.
        """
        with self._reading:
            if self._found is None or self._clock() >= self._until:
                try:
                    self._found = self._slurm.pending()
                except SlurmError as error:
                    self._found = error
                self._until = self._clock() + KEPT_SECONDS
            found = self._found
        if isinstance(found, SlurmError):
            raise found
        return found
