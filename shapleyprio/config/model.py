"""The whole configuration file, and what its keys must not contradict."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field, model_validator

from shapleyprio.config.consortium import (
    Organization,
    Pool,
    alike_in_pools,
    misnamed,
    parents_of,
    split_twice,
    unparented,
)
from shapleyprio.config.keys import (
    ConfigSection,
    ConsortiumSection,
    DriftSection,
    EstimationSection,
    FairnessSection,
    MetricsSection,
    PushSection,
    ServiceSection,
    SlurmSection,
    StoreSection,
    section,
)
from shapleyprio.config.toml import Path
from shapleyprio.fairness.rules import RULES, DirectContr
from shapleyprio.fairness.shapley import unions_of
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.points_table import CHANNEL


class ContradictionError(ValueError):
    """Keys that are each right but not together.

    Attributes:
        problems: where, and what is wrong there.
    """

    def __init__(self, problems: list[tuple[Path, str]]) -> None:
        super().__init__("; ".join(text for _, text in problems))
        self.problems = problems


class Config(ConfigSection):
    """The whole file."""

    slurm: SlurmSection = section(SlurmSection, "Connection to Slurm.")
    fairness: FairnessSection = section(FairnessSection, "Measure and rule of fairness.")
    push: PushSection = section(PushSection, "Priorities that are written into Slurm.")
    service: ServiceSection = section(ServiceSection, "Schedule, history and log of the daemon.")
    store: StoreSection = section(StoreSection, "Database.")
    metrics: MetricsSection = section(MetricsSection, "Metrics and status page.")
    drift: DriftSection = section(
        DriftSection, "Replay of the last days, which computes how far they were from fair."
    )
    estimation: EstimationSection = section(
        EstimationSection, 'Estimates of contributions, for the rule "shapley".'
    )
    consortium: ConsortiumSection = section(
        ConsortiumSection, "The consortium, if it has several clusters."
    )
    pools: tuple[Pool, ...] = Field(
        (),
        alias="pool",
        description="Interchangeable processors, one table for each pool: clusters, or partitions "
        "of them. Organizations are served by the sum of their balances at all clusters of the "
        "pool. The daemons need one store (docs/operations.md).",
    )
    organizations: tuple[Organization, ...] = Field(
        (),
        alias="organization",
        description="A member of the consortium, one table for each. Ties go to the first in the "
        "file.",
    )

    @property
    def parents(self) -> dict[str, str]:
        """Organization -> its parent, of those that have one."""
        return parents_of(self.organizations)

    @property
    def unions(self) -> tuple[int, ...] | None:
        """The number of each organization's union; None if all stand alone."""
        return unions_of([one.name for one in self.organizations], self.parents)

    @property
    def guarantees(self) -> dict[str, int]:
        """Organization -> seconds after which its jobs go first; the others have no guarantee."""
        usual = self.fairness.guarantee
        return {
            one.name: seconds
            for one in self.organizations
            if (seconds := usual if one.guarantee is None else one.guarantee)
        }

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Config:
        problems = [
            *_no_organization(self.organizations),
            *_claimed_twice("name", [(member.name,) for member in self.organizations]),
            *unparented(self.organizations),
            *_claimed_twice("name", [(pool.name,) for pool in self.pools], "pool"),
            *misnamed(self.pools),
            *split_twice(self.pools),
            *_claimed_twice("accounts", [member.accounts for member in self.organizations]),
            *_left_out_and_claimed(self.fairness.leave_out_accounts, self.organizations),
            *_claimed_twice("qos", [(member.qos,) for member in self.organizations]),
            *_claimed_twice("users", [member.users for member in self.organizations]),
            *_claimed_twice("groups", [member.groups for member in self.organizations]),
            *_claimed_twice("queues", [member.queues for member in self.organizations]),
        ]
        problems += _table_of_another_channel(self.push)
        problems += _guarantee_in_another_weight(self)
        problems += _estimates_too_old(self)
        problems += alike_in_pools(self.pools, self.push.channel, table=self.push.table is not None)
        if CHANNELS[self.push.channel].carrier == "QOS":
            problems += _no_qos(self.organizations, self.push.channel)
        if problems:
            raise ContradictionError(problems)
        return self


def _no_organization(organizations: tuple[Organization, ...]) -> Iterator[tuple[Path, str]]:
    if not organizations:
        yield (
            ("organization",),
            "there is none; add an [[organization]] table, "
            "or let `shapleyprio init` write a file for your cluster",
        )


def _claimed_twice(
    key: str, claims: list[tuple[str | None, ...]], table: str = "organization"
) -> Iterator[tuple[Path, str]]:
    first: dict[str, int] = {}
    for index, names in enumerate(claims):
        for name in names:
            if name and first.setdefault(name, index) != index:
                yield (
                    (table, index, key),
                    f"{name!r} is already taken by {table}[{first[name] + 1}]; "
                    "leave it to one of them",
                )


def _left_out_and_claimed(
    left_out: tuple[str, ...], organizations: tuple[Organization, ...]
) -> Iterator[tuple[Path, str]]:
    for index, organization in enumerate(organizations):
        for account in organization.accounts:
            if account in left_out:
                yield (
                    ("organization", index, "accounts"),
                    f"{account!r} is in fairness.leave_out_accounts, too; take it out of one of "
                    "them",
                )


def _table_of_another_channel(push: PushSection) -> Iterator[tuple[Path, str]]:
    if push.table is not None and push.channel != CHANNEL:
        yield (
            ("push", "table"),
            f'gives new jobs site factors, but push.channel is "{push.channel}"; '
            f'leave it out, or set push.channel to "{CHANNEL}"',
        )


def _estimates_too_old(config: Config) -> Iterator[tuple[Path, str]]:
    longest = config.estimation.longest_age
    if RULES[config.fairness.rule].estimates and 2 * config.estimation.recompute > longest:
        yield (
            ("estimation", "recompute"),
            f"is more than half of longest_age ({longest} s), so {DirectContr.name} would rank "
            "now and then; make it shorter, or longest_age at least twice as long",
        )


def _guarantee_in_another_weight(config: Config) -> Iterator[tuple[Path, str]]:
    weights: list[tuple[Path, str | None]] = [(("fairness", "weight"), config.fairness.weight)]
    weights += [(("pool", index, "weight"), pool.weight) for index, pool in enumerate(config.pools)]
    for where, weight in weights if config.guarantees else ():
        if weight not in {None, "cpus"}:
            yield (
                where,
                f"is {weight!r}, but a guarantee has to know what waiting jobs ask for, and Slurm "
                "lists only their CPUs; leave out `guarantee`, or take cpus",
            )


def _no_qos(organizations: tuple[Organization, ...], channel: str) -> Iterator[tuple[Path, str]]:
    for index, organization in enumerate(organizations):
        if organization.accounts and not organization.qos:
            yield (
                ("organization", index, "qos"),
                f'is missing, but push.channel is "{channel}"; '
                "name the QOS its jobs run under, or choose another channel",
            )
