"""New jobs get the last known points while the store is away, by a journal on the daemon's host.

Pending jobs keep their points. A new job gets those of its organization in the last cycle, noted
in the journal before they are written into Slurm. When the store is back, it imports the journal,
and the daemon finds out which writes took effect, as after a crash.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import structlog

from shapleyprio.config import Config
from shapleyprio.config.segments import Segment
from shapleyprio.daemon.pushing.lease import LeaseHeldError
from shapleyprio.daemon.pushing.push import Ours, Stamp, Wanted, foreign, live_keys, plan
from shapleyprio.daemon.pushing.urgency import Limits, most_urgent
from shapleyprio.slurm.channels import Channel, Claims
from shapleyprio.slurm.port import Slurm
from shapleyprio.slurm.remembering import Source
from shapleyprio.store import ClusterStore, Journal, NewPush, StoreBusyError, Transaction

BATCH_SECONDS = 60.0
"""How long a process that we start may go on writing: no other process can take over meanwhile."""

AWAY = "; the store was away"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastKnown:
    """What the last cycle found out that got as far as its writes.

    Attributes:
        cycle: its number.
        wanted: which organization has how many points, and why.
        claims: the jobs' organizations.
        given: values that the table of points may have given.
        least: as `push.plan` has it.
        keys: of all jobs that are on record, or were looked at.
    """

    cycle: int
    wanted: Wanted
    claims: Claims
    given: frozenset[int]
    least: int | None
    keys: frozenset[str]


class CutOff:
    """Steers one ledger's new jobs while the store is away.

    Args:
        channel: where it writes, to each job.
        slurm: the cluster.
        segment: what the ledger has of it.
        limits: how many writes are made at a time.
        journal: where they are noted.

    Attributes:
        last_known: None until a cycle has got so far; nothing is steered before.
    """

    def __init__(
        self, channel: Channel, slurm: Slurm, segment: Segment, limits: Limits, journal: Journal
    ) -> None:
        self._channel = channel
        self._slurm = slurm
        self._segment = segment
        self._limits = limits
        self._journal = journal
        self._noted: dict[str, NewPush] = {}
        self.last_known: LastKnown | None = None

    def steer(self, source: Source) -> int:
        """Gives jobs that have come since the last cycle the points of then.

        What Slurm did not take is written again the next time: accounting may not know the job yet.

        Args:
            source: of the jobs that wait.

        Returns:
            how many writes Slurm took.

        Raises:
            SlurmError: Slurm is away or refuses.
            StoreError: the journal cannot be written; nothing was written into Slurm.
        """
        known = self.last_known
        if known is None:
            return 0
        queue = self._segment.queue(source.pending())
        came = [job for job in queue.jobs if live_keys([job]).isdisjoint(known.keys)]
        targets = self._channel.targets(self._slurm, came, known.claims)
        new = [one for one in targets if not {one.key, one.base_key} & self._noted.keys()]
        stamp = Stamp(known.cycle, at=source.controller().time)
        reasons = {name: reason + AWAY for name, reason in known.wanted.reasons.items()}
        wanted = Wanted(points=known.wanted.points, reasons=reasons)
        ours = Ours(given=known.given, points=known.wanted.points)
        others = foreign(self._channel, new, {}, ours)
        new = [one for one in new if one not in others]
        needed = plan(self._channel, new, {}, wanted, stamp, known.given, known.least)
        planned = most_urgent(needed, queue.jobs, self._limits)
        again = [
            noted
            for one in targets
            if (noted := self._noted.get(one.key)) is not None and one.value == noted.old
        ]
        if planned:
            self._journal.note(self._segment.ledger, planned)
            self._noted |= {push.key: push for push in planned}
        values = {push.target: push.new for push in [*planned, *again]}
        if not values:
            return 0
        refused = self._slurm.write(self._channel.name, values, lambda: BATCH_SECONDS)
        written = len(values) - len(refused)
        log.warning(
            "the store is away: new jobs got the points of the last cycle",
            jobs=written,
            refused=len(refused),
        )
        return written

    def hand_over(self, store: ClusterStore) -> None:
        """Gives the store what was written without it.

        Args:
            store: of the ledger.

        Raises:
            StoreError: the journal still has it.
        """
        hand_over(self._journal, store)
        self._noted = {}


def hand_over(journal: Journal, store: ClusterStore) -> None:
    """Gives a ledger's store what a daemon wrote into Slurm without it, as writes to be settled.

    Args:
        journal: that has them.
        store: of the ledger.

    Raises:
        StoreError: the journal still has them.
    """
    pushes = journal.pushes(store.cluster)
    if not pushes:
        return

    def keep(transaction: Transaction) -> None:
        channels = {push.channel for push in pushes}
        known = {name: transaction.pushes.managed_values(name).keys() for name in channels}
        # what is on record was handed over before a crash: these jobs were all new
        transaction.pushes.plan([one for one in pushes if one.key not in known[one.channel]])

    store.transact(keep)
    journal.forget(store.cluster)
    log.info("the store has caught up with what was written without it", jobs=len(pushes))


@contextmanager
def journal_of(config: Config, *, create: bool) -> Iterator[Journal | None]:
    """Opens the journal that is configured.

    Args:
        config: in force.
        create: whether to make it if there is none.

    Yields:
        it; None if none is configured, or there is none.

    Raises:
        LeaseHeldError: another process of this host has it, and so steers.
        StoreError: it cannot be used.
    """
    path = config.store.journal
    if path is None:
        yield None
        return
    with ExitStack() as stack:
        try:
            journal = stack.enter_context(Journal.open(path, create=create))
        except StoreBusyError as error:
            raise LeaseHeldError(
                f"another process of this host has {path} (store.journal); stop it first"
            ) from error
        yield journal
