"""One process at a time steers a cluster: a lease in the store, with a token that only grows.

No host's clock decides. A process that wants the lease watches it for the lease's length, on a
monotonic clock, and takes it if it sees no sign of life. Each transaction of the holder is such a
sign, and fails once another process has the lease. The holder writes elsewhere only within half
the length after a committed sign of life, or gives another one first; a process that it started to
write there is ended before any other process can have the lease.

A holder with a journal continues while it cannot give a sign of life. So its lease can be
taken only by a process that has this journal, which proves that the holder has ended, or by one
with `--take-over`.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread

import structlog

from shapleyprio.common.errors import Remedy
from shapleyprio.slurm.running import running_seconds
from shapleyprio.store import (
    ClusterStore,
    Journal,
    LeaseRow,
    Leases,
    StoreBusyError,
    StoreError,
)

BEATS = 5
"""Signs of life that a holder gives within the length of its lease."""

WATCH_SECONDS = 1.0
"""At most so often is a lease looked at that another process has."""

log = structlog.get_logger(__name__)


class LeaseHeldError(StoreError):
    """Another process steers this cluster, or this one does no more; the message says which."""

    exit_code = 6


class Lease:
    """The right to write into one cluster's Slurm, held by one process at a time.

    Threads may share it.

    Args:
        store: of the cluster, where the lease is kept.
        seconds: without a sign of life after which another process may take it.
        journal: with which this process goes on while the store is away; None to stop then.
        take_over: whether to take it even from a holder with a journal, which is said to be gone.
        clock: see `running_seconds`.

    Attributes:
        store: the same, whose transactions fail while this process does not have the lease.
        seconds: as above, from the next time on that it is taken.
    """

    def __init__(
        self,
        store: ClusterStore,
        *,
        seconds: int,
        journal: Journal | None = None,
        take_over: bool = False,
        clock: Callable[[], float] = running_seconds,
    ) -> None:
        self.store = store.fenced(self)
        self.seconds = seconds
        self._plain = store
        self._journal = journal
        self._take_over = take_over
        self._clock = clock
        self._host = socket.gethostname()
        self._holder = uuid.uuid4().hex
        self._token: int | None = None
        self._length = seconds
        self._alive_at = 0.0
        self._seen: LeaseRow | None = None
        self._seen_at = 0.0
        self._renewing = Lock()
        self._asked_at: float | None = None
        self._ended = Event()
        self._beating: Thread | None = None

    @property
    def is_ours(self) -> bool:
        """Whether this process has the lease, as far as it knows."""
        return self._token is not None

    @property
    def leads(self) -> bool:
        """Whether this process has the lease for sure: no other process can have taken it yet."""
        if self._token is None:
            return False
        return self._journal is not None or self._clock() - self._alive_at < self._length

    @property
    def silent_seconds(self) -> float:
        """For how long the store has owed the beating thread an answer; 0 if it owes none."""
        asked_at = self._asked_at
        return 0.0 if asked_at is None else self._clock() - asked_at

    # -- the fence

    def begin(self, lease: Leases) -> Callable[[], None]:
        """Gives a sign of life within a transaction, as the protocol `Fence` has it.

        Raises:
            LeaseHeldError: the lease is not ours.
        """
        began, token = self._clock(), self._token
        if token is None or not lease.renew(self._holder, token):
            self._lose(token)
            raise self._held(lease.read())

        def committed() -> None:
            if token == self._token:
                self._alive_at = max(self._alive_at, began)

        return committed

    def check(self) -> float:
        """Makes sure that no other process has the lease, without asking the store too often.

        Returns:
            for how many seconds no other process can take it.

        Raises:
            LeaseHeldError: the lease is not ours.
            StoreError: the store cannot be asked.
        """
        if not self._is_fresh():
            with self._renewing:
                if not self._is_fresh():
                    self._renew()
        return self._alive_at + self._length - self._clock()

    # -- taking and giving back

    @contextmanager
    def held(self) -> Iterator[ClusterStore]:
        """Has the lease within the context, which yields `store`.

        Raises:
            LeaseHeldError: another process has it and shows signs of life.
            StoreError: the store cannot be used.
        """
        self.take()
        self.keep()
        try:
            yield self.store
        finally:
            self.release()

    def take(self) -> None:
        """Takes the lease; one whose holder is dead or frozen, after watching it for its length.

        Raises:
            LeaseHeldError: another process has it and shows signs of life.
            StoreError: the store cannot be used.
        """
        first: LeaseRow | None = None
        while not self.try_to_take():
            seen = self._seen
            if first is not None and seen is not None and seen.shows_life_since(first):
                raise self._held(seen)
            if seen is not None and self._is_kept(seen) and self._is_silent(seen):
                raise self._kept(seen)
            first = first or seen
            time.sleep(self._rest())

    def try_to_take(self) -> bool:
        """Takes the lease if it is free, or has been seen without a sign of life for its length.

        That of a holder with a journal is taken only if it has ended for sure, and then at once.

        Returns:
            whether it is ours now.

        Raises:
            StoreError: the store cannot be used.
        """
        with self._plain.reading() as view:
            found = view.lease.read()
        now = self._clock()
        if found is not None and found.is_held and not self._has_ended(found):
            if self._seen is None or found.shows_life_since(self._seen):
                self._seen, self._seen_at = found, now
            if self._is_kept(found) or not self._is_silent(found):
                return False
        try:
            return self._take_instead_of(found)
        except StoreBusyError:  # its holder's transaction goes on, or another one was quicker
            return False

    def keep(
        self,
        on_taken: Callable[[], None] = lambda: None,
        on_lost: Callable[[LeaseHeldError], None] = lambda _: None,
    ) -> None:
        """Gives signs of life from now on, on a thread of its own, or waits for the lease.

        Args:
            on_taken: called on that thread when it has taken the lease.
            on_lost: called on that thread when it finds out that another process has it.
        """
        self._ended.clear()
        self._beating = Thread(
            target=self._beat, args=(on_taken, on_lost), name="lease", daemon=True
        )
        self._beating.start()

    def release(self) -> bool:
        """Gives the lease back, if the store can be used, and gives no more signs of life.

        Returns:
            whether it is given back, or was not ours.
        """
        self._ended.set()
        if self._beating is not None:
            self._beating.join(self.seconds)
            if self._beating.is_alive():
                return False  # the store does not answer, nor would it now
        token, self._token = self._token, None
        if token is None:
            return True
        try:
            with self._plain.transaction() as transaction:
                transaction.lease.release(self._holder, token)
        except StoreError:
            return False
        return True

    # -- details

    def _has_ended(self, found: LeaseRow) -> bool:
        """Returns whether its holder had the journal that we have now."""
        return self._journal is not None and found.holder in self._journal.holders()

    def _is_kept(self, seen: LeaseRow) -> bool:
        """Returns whether it is its holder's even without a sign of life."""
        return seen.has_journal and not self._take_over

    def _is_silent(self, seen: LeaseRow) -> bool:
        return self._clock() - self._seen_at > seen.ttl

    def _is_fresh(self) -> bool:
        return self._token is not None and self._clock() - self._alive_at < self._length / 2

    def _renew(self) -> None:
        with self.store.transaction():
            pass

    def _take_instead_of(self, found: LeaseRow | None) -> bool:
        began = self._clock()
        if self._journal is not None:
            self._journal.add_holder(self._holder)
        with self._plain.transaction() as transaction:
            token = transaction.lease.take(
                self._holder,
                self._host,
                os.getpid(),
                ttl=self.seconds,
                instead_of=found,
                has_journal=self._journal is not None,
            )
        if token is not None:
            if self._journal is not None:
                self._journal.keep_holder(self._holder)
            self._length, self._alive_at, self._seen = self.seconds, began, None
            self._token = token
        return token is not None

    def _beat(
        self, on_taken: Callable[[], None], on_lost: Callable[[LeaseHeldError], None]
    ) -> None:
        ours = self.is_ours
        while not self._ended.wait(self._rest()):
            self._asked_at = self._clock()
            try:
                if not ours:
                    ours = self.try_to_take()
                    if ours:
                        on_taken()
                else:
                    self._renew()
            except LeaseHeldError as lost:
                ours = False
                on_lost(lost)
            except StoreError as error:
                log.debug("cannot show a sign of life", why=str(error))
            finally:
                self._asked_at = None

    def _rest(self) -> float:
        length = self._length if self.is_ours else self._seen.ttl if self._seen else self.seconds
        return min(WATCH_SECONDS, length / BEATS) if not self.is_ours else length / BEATS

    def _lose(self, token: int | None) -> None:
        if token == self._token:
            self._token = None

    def _held(self, other: LeaseRow | None) -> LeaseHeldError:
        cluster = self.store.cluster
        if other is None or not other.is_held or other.holder == self._holder:
            return LeaseHeldError(f"this process does not steer cluster {cluster}")
        return LeaseHeldError(
            f"process {other.pid} on {other.host} steers cluster {cluster}; stop it first",
            Remedy.STAND_BY,
        )

    def _kept(self, other: LeaseRow) -> LeaseHeldError:
        return LeaseHeldError(
            f"process {other.pid} on {other.host} shows no sign of life, but may steer cluster"
            f" {self.store.cluster} by its store.journal: start the daemon there; if it is gone for"
            " good, run `shapleyprio daemon --take-over` here once"
        )
