"""A seeded life: what happens to the cluster and its clock, to the daemon and to its store."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from shapleyprio.daemon.accounting.cluster_clock import AccountingError, ClockError
from shapleyprio.daemon.pushing.lease import LeaseHeldError
from shapleyprio.slurm.port import SlurmError
from shapleyprio.store import StoreConflictError, StoreError
from tests.daemon.consortium import NOW, config
from tests.daemon.faults.cluster import ACCOUNTS, NODES, QOS, FaultyCluster
from tests.daemon.faults.daemon import LEASE_SECONDS, Killed
from tests.daemon.faults.estimator import FAULTS, Estimation
from tests.daemon.faults.stores import CHANGING, READING
from tests.daemon.faults.world import DAY, HOUR, World
from tests.daemon.scripted_accounting import runs_since

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from shapleyprio.config import Config
    from shapleyprio.fairness.runs import RunKey
    from shapleyprio.fairness.tenure import Kind
    from tests.daemon.faults.daemon import AnyDaemon
    from tests.daemon.faults.estimator import FAULTS, Estimation
from tests.daemon.faults.stores import FaultyStore

NAMES = ["physics", "biology", "chemistry"]
SINCE = "2027-01-15T07:00:00Z"
OPENED = NOW - HOUR
HORIZONS = {"unlimited": None, "10m": 600, "2h": 2 * HOUR, "3d": 3 * DAY}
CHANNELS = ["site_factor", "site_factor", "nice", "qos", "association"]
EVENTS = 16
OVERLAP = 300
MOST_MOMENTS = 70
"""A cycle has about so many: statements, commits, questions and writes."""


class Life:
    """What happens is decided by the seed alone.

    Args:
        seed: of all chances.
        store: where the daemon keeps its books.
        begin: starts a process of the daemon, by a configuration, the cluster and its name.
        estimates: whether the rule is the one that asks for estimates until all works again.

    Attributes:
        events: what has happened.
        estimation: of contributions; None for a rule that asks for none.
        has_journal: whether the daemon goes on while the store is away.
        claims: kind and name -> its holders as configured, one after the other, each with the
            seconds in which a cycle may have taken that in.
        splits: runs that were pruned later -> node -> processors.
        pruned_before: runs that were there when somebody pruned -> up to when all others had been
            pruned by then.
    """

    def __init__(
        self,
        seed: int,
        store: FaultyStore,
        begin: Callable[[Config, FaultyCluster, str], AnyDaemon],
        *,
        estimates: bool = False,
    ) -> None:
        self.chance = Random(seed)
        self.events: list[str] = []
        self.store = store
        self.name = f"life{seed}"
        delay = self.chance.choice([0, 0, 20, 90])
        self.slurm = FaultyCluster(self.name, Random(seed + 10**9), delay=delay)
        self.slurm.moments = store.moments
        self.world = World(self.slurm, self.chance)
        self.estimation = Estimation(store.url, self.name) if estimates else None
        self.channel = self.chance.choice(CHANNELS)
        self.has_journal = self.chance.random() < 0.5
        self.claims: dict[tuple[Kind, str], list[tuple[str, list[int]]]] = {}
        self.splits: dict[RunKey, Mapping[str, int]] = {}
        self.pruned_before: dict[RunKey, int] = {}
        self._begin = begin
        self._daemon: AnyDaemon | None = None
        self._horizon = self._good_horizon = self.chance.choice(list(HORIZONS))
        self._holders: dict[tuple[Kind, str], str] = {}
        self._unsettled: set[tuple[Kind, str]] = set()
        self._store_may_fail = False
        for node in NODES:
            self._claim("node", node, self.chance.choice(NAMES))
        for account in ACCOUNTS[:4]:
            self._claim("account", account, self.chance.choice(NAMES))
        journal = "with a journal" if self.has_journal else "without a journal"
        self._note(
            f"by {self.channel}, {journal}, horizon {self._horizon}, accounting {delay} s late"
        )

    @property
    def horizon(self) -> int | None:
        return HORIZONS[self._horizon]

    def live(self) -> None:
        """Lets things happen."""
        happenings: dict[Callable[[], object], int] = {
            **self.world.happenings(),
            self.run: 14,
            self.run_before_a_late_record: 3 if self.slurm.delay else 0,
            self.die: 6,
            self.hurt_the_estimator: 0 if self.estimation is None else 12,
            self.freeze: 0 if self.has_journal else 3,  # nobody would take over
            self.prune: 2,
            self.restart: 1,
            self.accept_the_clock: 2,
            self.fail_over: 2,
            self.break_the_store: 6 if self.has_journal else 2,
            self.be_undone: 3,
            self.kill_the_server: 2 if self.store.has_server else 0,
            self.move: 3,
            self.change_horizon: 1,
            self.lose_messages: 3 if self.channel == "association" else 0,
        }
        for happening in self.chance.choices(
            list(happenings), weights=list(happenings.values()), k=EVENTS
        ):
            self._note(happening())
        while self.estimation is not None and self.estimation.to_come:
            self.world.bring_up()
            self._note(self.hurt_the_estimator())

    def settle(self) -> None:
        """Everything works again, until all that happened is accounted; ranks are by balance."""
        self._note("everything works again")
        if self.estimation is not None:
            self._stop()
            self.estimation = None
        self.slurm.malformed.clear()
        self.slurm.write_on()
        self.slurm.lose_changes(0)
        self.world.bring_up()
        self.slurm.wait(1000)
        self.slurm.wait(max(0, self.slurm.latest_clock - self.slurm.clock))
        while (failure := self._try(self._cycle)) is not None:
            self._note(_shown(failure))
            assert isinstance(failure, ClockError | AccountingError | SlurmError), failure
            self.slurm.wait(900)
        self.slurm.wait(OVERLAP + 2)  # what may be late is read once more
        assert self._try(self._cycle) is None

    def roll_back(self) -> None:
        """Has everything put back."""
        assert self._try(lambda daemon: daemon.roll_back()) is None

    # -- the daemon

    def run(self) -> str:
        """Runs a cycle."""
        failure = self._try(self._cycle)
        return f"runs a cycle at {self.slurm.clock}{_shown(failure)}"

    def run_before_a_late_record(self) -> str:
        """The clock goes ahead between two cycles, and a late record bears a time of before."""
        if self._try(self._cycle) is not None:
            return "fails, so that no clock is set"
        return f"runs a cycle, {self.world.end_a_job_and_step_ahead()}, {self.run()}"

    def prune(self) -> str:
        self._remember_runs()
        failure = self._try(lambda daemon: daemon.prune())
        return f"prunes at {self.slurm.clock}{_shown(failure)}"

    def die(self) -> str:
        """Is killed within a cycle, or while it prunes."""
        prunes = self.store.fault is None and self.chance.random() < 0.15  # we read it first
        moment = self.chance.randrange(MOST_MOMENTS)
        if prunes:
            self._remember_runs()

        def happens(name: str) -> None:
            raise Killed(name)

        self.store.moments.arm(moment, happens)
        failure = self._try(lambda daemon: daemon.prune() if prunes else self._cycle(daemon))
        self.store.moments.disarm()
        return f"is killed at moment {moment} of {self.slurm.clock}{_shown(failure)}"

    def freeze(self) -> str:
        """Stands still at a question to Slurm, until another one has steered for a while."""
        moment = self.chance.randrange(MOST_MOMENTS)
        others: list[AnyDaemon | None] = []

        def happens(name: str) -> None:
            # within a transaction the server would end it, see test_two_daemons
            if name in {READING, CHANGING}:
                self.store.moments.arm(0, happens)
                return
            token = self.slurm.token
            self._daemon = None
            self._note(f"meanwhile another one runs a cycle{_shown(self._try(self._cycle))}")
            self.slurm.token = token
            others.append(self._daemon)

        self.store.moments.arm(moment, happens)
        failure = self._try(self._cycle)
        self.store.moments.disarm()
        assert failure is not None or not others, "it went on as if it still had the lease"
        return f"had been frozen at moment {moment}{_shown(failure)}"

    def restart(self) -> str:
        """Stops, and is started again."""
        self._stop()
        return "stops"

    def accept_the_clock(self) -> str:
        """An admin has the ledger go on from the clock as it is, with the daemon stopped."""
        self._stop()
        failure: BaseException | None = None

        def accept(daemon: AnyDaemon) -> None:
            nonlocal failure
            try:
                daemon.accept_clock()
            except AccountingError as error:
                failure = error
                if not any(why in str(error) for why in ("nothing to accept", "changed hands")):
                    raise

        failure = self._try(accept) or failure
        self._stop()
        return f"accepts the clock, {self.slurm.clock}{_shown(failure)}"

    def fail_over(self) -> str:
        """A daemon on another head node takes over; nobody sets the clock meanwhile."""
        if self._try(self._cycle) is not None:
            return "fails, so that none takes over"
        self._stop()
        self.slurm.boot += 1
        failure = self._try(self._cycle)
        return f"stops, and another head node takes over{_shown(failure)}"

    def move(self) -> str:
        """A node or an account changes hands, by the configuration."""
        kind, name = self.chance.choice(list(self.claims))
        organization = self.chance.choice(NAMES)
        self._claim(kind, name, organization)
        self._stop()
        return f"stops; {kind} {name} is {organization}'s from now on"

    def change_horizon(self) -> str:
        self._horizon = self.chance.choice(list(HORIZONS))
        self._stop()
        return f"stops; the horizon is {self._horizon} from now on"

    def hurt_the_estimator(self) -> str:
        """Its worker is killed, stopped, slow or short of memory when it is asked next."""
        assert self.estimation is not None
        self.slurm.wait(40)  # an estimate is due
        faults = self.estimation.to_come or FAULTS
        self.estimation.fault = fault = self.chance.choice(faults)
        ran = self.run()
        self.estimation.fault = None
        return f"{ran} while the estimator is {fault}"

    def lose_messages(self) -> str:
        """Accounting takes the next changes of accounts, and slurmctld never hears of them."""
        lost = self.chance.randint(1, 4)
        self.slurm.lose_changes(lost)
        return f"loses the next {lost} messages, {self.run()}"

    # -- the store

    def break_the_store(self) -> str:
        """Its disk is full, or mounted to be read only, during some cycles, and jobs come."""
        fault = self.chance.choice(self.store.faults)
        events = []
        with self.store.broken(fault):
            for _ in range(self.chance.randint(2, 4)):
                events += [self.world.submit() for _ in range(self.chance.randint(0, 2))]
                events.append(self.chance.choice([self.run, self.run, self.die])())
        return f"{', '.join(events)} while the store is {fault}"

    def be_undone(self) -> str:
        """The database undoes a transaction, and the next one too, for the sake of others."""
        moment = self.chance.randrange(MOST_MOMENTS)
        left = [CHANGING] * self.chance.randint(1, 3)

        def happens(name: str) -> None:
            if name != CHANGING:  # who only reads is in nobody's way
                self.store.moments.arm(0, happens)
                return
            left.pop()
            if left:
                self.store.moments.arm(0, happens)
            raise StoreConflictError(name)

        self.store.moments.arm(moment, happens)
        failure = self._try(self._cycle)
        self.store.moments.disarm()
        return f"runs a cycle while others undo it at moment {moment}{_shown(failure)}"

    def kill_the_server(self) -> str:
        """The database's server is killed within a cycle, and started again."""
        moment = self.chance.randrange(MOST_MOMENTS)

        def happens(_name: str) -> None:
            self._store_may_fail = True
            self.store.kill_server()

        self.store.moments.arm(moment, happens)
        failure = self._try(self._cycle)
        self.store.moments.disarm()
        self._store_may_fail = False
        return f"runs a cycle while the server is killed at moment {moment}{_shown(failure)}"

    # -- details

    def _cycle(self, daemon: AnyDaemon) -> None:
        standings = daemon.run()
        if self.estimation is None:
            assert sum(row.contribution - row.utility for row in standings) == 0
        self._unsettled.clear()
        self._good_horizon = self._horizon

    def _try(self, work: Callable[[AnyDaemon], object]) -> BaseException | None:
        """Has the daemon do something; returns by what it failed, if it may fail by that."""
        slurm_may_fail = self.slurm.may_fail
        daemon = None
        try:
            daemon = self._daemon or self._start()
            for kind in self._unsettled:
                self.claims[kind][-1][1].append(self.slurm.clock)
            work(daemon)
        except Killed as killed:
            if self._daemon is not None:
                self._daemon.kill()
            self._daemon = None
            self.store.forget_connections()
            return killed
        except (StoreError, AccountingError, SlurmError) as failure:
            if isinstance(failure, LeaseHeldError):
                may_be = daemon is not self._daemon
            elif isinstance(failure, SlurmError):
                may_be = slurm_may_fail
            else:
                may_be = self._may_fail_by(failure)
            if not may_be:
                raise
            return failure
        return None

    def _may_fail_by(self, failure: StoreError | AccountingError) -> bool:
        if isinstance(failure, StoreError):
            return self.store.fault is not None or self._store_may_fail
        if isinstance(failure, ClockError):
            return self.slurm.latest_clock > self.slurm.clock + 1
        was_lengthened = self._horizon != self._good_horizon and "horizon" in str(failure)
        self._horizon = self._good_horizon
        self._stop()
        return was_lengthened

    def _start(self) -> AnyDaemon:
        daemon = self._begin(self._configured(), self.slurm, self.name)
        try:
            while not daemon.try_to_take():
                self.slurm.wait(LEASE_SECONDS + 1)
        except BaseException:
            daemon.kill()
            raise
        self._daemon = daemon
        return daemon

    def _stop(self) -> None:
        if self._daemon is not None:
            self._daemon.stop()
            self._daemon = None

    def _claim(self, kind: Kind, name: str, organization: str) -> None:
        history = self.claims.setdefault((kind, name), [])
        if not history or history[-1][0] != organization:
            history.append((organization, []))
            self._unsettled.add((kind, name))

    def _configured(self) -> Config:
        organizations = [
            {
                "name": organization,
                "qos": qos,
                **{
                    f"{kind}s": [
                        name
                        for (of, name), history in self.claims.items()
                        if (of, history[-1][0]) == (kind, organization)
                    ]
                    for kind in ("node", "account")
                },
            }
            for organization, qos in zip(NAMES, QOS, strict=True)
        ]
        return config(
            *organizations,
            fairness={
                "rule": "directcontr" if self.estimation is None else "shapley",
                "horizon": self._horizon,
                "since": SINCE,
            },
            push={"channel": self.channel, "most_writes": 8},
            service={"overlap": f"{OVERLAP}s", "keep_history": "3650d", "keep_pushes": "3650d"},
        )

    def _remember_runs(self) -> None:
        with self.store.open().cluster(self.name).reading() as view:
            self.splits |= {run.key: run.processors for run, _ in view.runs.all_runs()}
            watermark = view.ledger.watermark()
        if watermark is not None:
            for run in runs_since(OPENED, self.slurm.rows().values()):
                self.pruned_before.setdefault(run.key, watermark.pruned_until)

    def _note(self, event: object) -> None:
        self.events.append(str(event))


def _shown(failure: BaseException | None) -> str:
    return "" if failure is None else f": {type(failure).__name__} {failure}"
