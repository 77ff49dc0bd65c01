"""A consortium, its queue and its past, the same on every machine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from random import Random

from shapleyprio.common.wording import DAY
from shapleyprio.config import Config
from shapleyprio.fairness.runs import JobRecord
from shapleyprio.fairness.tenure import Kind
from shapleyprio.lab.simulated import DEFAULT_SETTINGS, SimulatedSlurm, SimulatedSpec
from shapleyprio.slurm.port import Malformed
from shapleyprio.slurm.text.values import SEPARATOR

CLUSTER = "bench"
NOW = 1_767_225_600
"""Where the past ends: midnight, so that days begin at multiples of 86,400."""

RECORDS_A_DAY = 10_000
ORGANIZATIONS = tuple(f"organization{number}" for number in range(1, 9))
NODES_EACH = 16
PROCESSORS_A_NODE = 8
PROCESSORS = len(ORGANIZATIONS) * NODES_EACH * PROCESSORS_A_NODE
SPARE_NODE = "spare"
"""Belongs to no organization: work there is used by an organization and contributed by none."""

PARTITIONS: Mapping[str, tuple[str, ...]] = {
    name: tuple(f"{name}-{number:02}" for number in range(1, NODES_EACH + 1))
    for name in ORGANIZATIONS
}
NODES = tuple(node for nodes in PARTITIONS.values() for node in nodes)
HOLDERS: Mapping[Kind, Mapping[str, str]] = {
    "account": {name: name for name in ORGANIZATIONS},
    "node": {node: name for name, nodes in PARTITIONS.items() for node in nodes},
}

CONFIG = Config.model_validate(
    {
        "organization": [
            {"name": name, "accounts": [name], "partitions": [name]} for name in ORGANIZATIONS
        ],
        "push": {"most_raises_of_user": 10_000},  # all jobs are one user's
    }
)


class BusyCluster(SimulatedSlurm):
    """A full simulated cluster with a queue, and records of a past that it did not live.

    Args:
        pending: jobs that wait, the organizations' in turn; none of them fits.
        running: jobs that run.
    """

    def __init__(self, *, pending: int, running: int) -> None:
        super().__init__(
            SimulatedSpec(
                cluster=CLUSTER,
                nodes={**dict.fromkeys(NODES, PROCESSORS_A_NODE), SPARE_NODE: PROCESSORS_A_NODE},
                partitions={**PARTITIONS, "all": NODES},
                accounts=dict.fromkeys(ORGANIZATIONS),
                settings=replace(DEFAULT_SETTINGS, calc_period_seconds=DAY),
            ),
            now=NOW,
        )
        self.past: list[JobRecord] = []
        for number in range(running):
            self.submit(_organization(number), processing_time=30 * DAY)
        self.advance(NOW)
        too_many = sum(self.free[node] for node in NODES) + 1
        for number in range(pending):
            self.submit(_organization(number), processors=too_many, processing_time=3600)

    def records(self, since: int, until: int) -> Iterator[JobRecord | Malformed]:
        """Yields the records of jobs that existed at some time in [since, until]."""
        yield from (record for record in self.past if record.end is None or record.end >= since)
        yield from super().records(since, until)

    def change_places(self, turn: int) -> None:
        """Corrects one old record of every organization so that each takes another's place."""
        self.past = rotated(ORGANIZATIONS, turn, begin=NOW - 1000, end=NOW - 10, node=SPARE_NODE)


def rotated(
    accounts: Collection[str], rotation: int, *, begin: int, end: int, node: str
) -> list[JobRecord]:
    """Returns a record of each account, so large that with each rotation all change places."""
    return [
        JobRecord(
            job_id=10**9 + number,
            label=str(10**9 + number),
            account=account,
            user="user",
            partition="all",
            submit=begin,
            eligible=begin,
            start=begin,
            end=end,
            limit=None,
            elapsed=end - begin,
            suspended=0,
            state="COMPLETED",
            nodes=(node,),
            processors=10**6 * (1 + (number + rotation) % len(accounts)),
        )
        for number, account in enumerate(accounts)
    ]


def days_of(records: int) -> int:
    """Returns how many days of past there are for so many records."""
    return -(-records // RECORDS_A_DAY)


def day_of_records(days_ago: int, records: int) -> Iterator[str]:
    """Yields lines of sacct on jobs that ended that many days ago, in the order of their ends.

    `SEPARATOR` stands after each field.

    The same day has the same jobs, however long the past is.
    """
    random = Random(days_ago)  # noqa: S311  # the same numbers every time is what is wanted
    begin = NOW - days_ago * DAY
    first_id = 10**8 - days_ago * RECORDS_A_DAY
    for number in range(records):
        end = begin + (number * DAY) // records
        elapsed = min(int(random.expovariate(1 / 3600)) + 1, DAY)
        wait = int(random.expovariate(1 / 1800))
        account = random.choice(ORGANIZATIONS)
        nodes = PARTITIONS[random.choice(ORGANIZATIONS)]
        node = random.randrange(NODES_EACH - 1)
        several = random.random() < 0.2
        cpus = 2 * PROCESSORS_A_NODE if several else random.randint(1, PROCESSORS_A_NODE)
        prefix, _, index = nodes[node].rpartition("-")
        node_list = f"{prefix}-[{index}-{node + 2:02}]" if several else nodes[node]
        job_id = first_id + number
        fields = (
            "COMPLETED" if random.random() < 0.9 else "CANCELLED by 1000",
            *(job_id, job_id, account, f"user{number % 97}", "all"),
            *(end - elapsed - wait, end - elapsed, end, "00:00:00"),
            *(cpus, f"billing={cpus},cpu={cpus},mem={cpus * 4}G,node={1 + several}", node_list),
            *(end - elapsed - wait, "1440", elapsed),
        )
        yield "".join(f"{field}{SEPARATOR}" for field in fields)


def _organization(number: int) -> str:
    return ORGANIZATIONS[number % len(ORGANIZATIONS)]
