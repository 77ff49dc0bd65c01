"""The daemon of a life: cycles, lease and store of one process."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Protocol

from shapleyprio.daemon.accounting.accepted_clock import accept_clock
from shapleyprio.daemon.pushing.lease import Lease, LeaseHeldError
from shapleyprio.daemon.pushing.rollback import roll_back
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.slurm.port import SlurmError
from shapleyprio.store import Journal, StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from shapleyprio.config import Config
    from shapleyprio.slurm.port import Slurm
    from shapleyprio.store import StandingRow, Store
    from tests.daemon.faults.estimator import Estimation

LEASE_SECONDS = 10


class Killed(BaseException):
    """The process dies: no handler of errors sees it, and what was not committed is undone."""


class SeenSlurm(Protocol):
    """What a daemon of a life sees of the cluster, beside the port."""

    token: int

    @property
    def now(self) -> int:
        """Seconds that never go back."""


class AnyDaemon(Protocol):
    """One process of the daemon, without its schedule and its threads."""

    def try_to_take(self) -> bool:
        """Takes the lease, if it can be had by now."""

    def run(self) -> list[StandingRow]:
        """Runs a cycle."""

    def prune(self) -> int:
        """Deletes what no value depends on."""

    def accept_clock(self) -> None:
        """Lets the ledger go on from a clock that is behind it."""

    def roll_back(self) -> None:
        """Puts everything back."""

    def stop(self) -> None:
        """Gives the lease back, and ends."""

    def kill(self) -> None:
        """Ends; does nothing if it has ended."""


class LivingDaemon:
    """A daemon within the process of the test.

    Args:
        config: as read.
        slurm: the cluster, which is shown the token before anything is done under it.
        store: as this process has opened it.
        name: of the cluster.
        journal: file with which it goes on while the store is away; None to wait for it.
        estimation: begins its estimates; None for a rule that asks for none.
    """

    def __init__(
        self,
        config: Config,
        slurm: Any,
        store: Store,
        name: str,
        journal: Path | None,
        estimation: Estimation | None = None,
    ) -> None:
        self._slurm: Slurm = slurm
        self._seen: SeenSlurm = slurm

        def clock() -> int:
            return self._seen.now

        self._opened = ExitStack()
        opened = (
            None
            if journal is None
            else self._opened.enter_context(Journal.open(journal, create=True))
        )
        rows = store.cluster(name)
        self._lease = Lease(rows, seconds=LEASE_SECONDS, journal=opened, clock=clock)
        self._overlap = config.service.overlap
        estimates = None if estimation is None else estimation.begin(self._lease.store)
        if estimates is not None:
            self._opened.callback(estimates.stop)
        self._cycle = Cycle(
            config, slurm, self._lease.store, clock=clock, journal=opened, estimates=estimates
        )

    def try_to_take(self) -> bool:
        return self._lease.try_to_take()

    def run(self) -> list[StandingRow]:
        self._show_token()
        try:
            return list(self._cycle.run().ranked.standings)
        except LeaseHeldError:
            raise
        except StoreError:
            with suppress(SlurmError):
                self._cycle.go_on()
            raise

    def prune(self) -> int:
        self._show_token()
        return self._cycle.prune()

    def accept_clock(self) -> None:
        self._show_token()
        accept_clock(self._lease.store, self._slurm.controller(), overlap=self._overlap, user="ann")

    def roll_back(self) -> None:
        self._show_token()
        roll_back(self._lease.store, self._slurm)

    def stop(self) -> None:
        self._lease.release()
        self.kill()

    def kill(self) -> None:
        self._opened.close()

    def _show_token(self) -> None:
        self._seen.token = self._lease._token or 0
