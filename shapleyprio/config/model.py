"""Every key of the configuration file: its type, default and meaning.

Attributes are named like the keys. Durations are seconds, and what the file calls "unlimited",
"strict" or "off" is None.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shapleyprio.config.toml import Path
from shapleyprio.config.values import (
    AbsolutePath,
    ChannelName,
    Count,
    HostLists,
    Influence,
    Instant,
    ListenAddress,
    LogFormat,
    LogLevel,
    LogNames,
    Memory,
    Names,
    OptionalText,
    Processors,
    Seconds,
    SecondsOrOff,
    SecondsOrUnlimited,
    Switch,
    Text,
    Timeout,
    Url,
    UserName,
    Weight,
)
from shapleyprio.slurm.port import Channel


def _key(default: Any, description: str, example: Any) -> Any:
    """A key of the file: its default as one would write it there (... if it must be given)."""
    return Field(default, description=description, examples=[example])


def _section(type_: type[Section], description: str) -> Any:
    return Field(default_factory=type_, description=description)


class Section(BaseModel):
    """A table of the file: frozen, and keys that it does not know are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class SlurmSection(Section):
    """[slurm]."""

    cluster: OptionalText = _key(
        None,
        "ClusterName. Slurm itself is asked if it is left out; if given, it must be the same.",
        "mycluster",
    )
    bin_directory: AbsolutePath = _key(
        None,
        "Where Slurm's commands are. The PATH is searched if it is left out.",
        "/opt/slurm/bin",
    )
    timeout: Timeout = _key("30s", "How long one command of Slurm's may take.", "30s")
    batch_size: Count = _key(500, "How many jobs one update command names at most.", 500)


class FairnessSection(Section):
    """[fairness]."""

    weight: Weight = _key(
        "cpus",
        "What counts as a processor: CPUs, billing units, or the units of a generic resource.",
        "gres/gpu",
    )
    horizon: SecondsOrUnlimited = _key(
        "30d",
        "The age from which a unit of work gains no more worth, so that what was given and taken "
        "long ago loses its sway. Without a limit nothing is ever outweighed by time.",
        "30d",
    )
    since: Instant = _key(
        None,
        "Work done before it does not count. One horizon before the first start if it is left "
        "out; a date alone means midnight UTC.",
        "2026-01-01T00:00:00+01:00",
    )

    @property
    def tres(self) -> str:
        """Slurm's name of the weight among the trackable resources of a node."""
        return "cpu" if self.weight == "cpus" else self.weight


class PushSection(Section):
    """[push]."""

    channel: ChannelName = _key(
        "site_factor",
        "How priorities are written into Slurm: as site factor or nice of the waiting jobs, or "
        "as priority of one QOS for each organization.",
        "site_factor",
    )
    influence: Influence = _key(
        "strict",
        "Priority points between the first and the last organization. Strict order puts a "
        "distance between organizations that no other priority factor can bridge.",
        10000,
    )


class ServiceSection(Section):
    """[service]."""

    poll_interval: Seconds = _key("30s", "Time from one cycle to the next, at most.", "30s")
    new_jobs_interval: SecondsOrOff = _key(
        "5s",
        "Time from one look for newly submitted jobs to the next. If there are any, a cycle comes "
        "at once and gives them their priority.",
        "5s",
    )
    overlap: Seconds = _key(
        "1h",
        "How far back each cycle reads accounting again, for records that come late or change.",
        "1h",
    )
    keep_history: Seconds = _key(
        "90d",
        "How long past cycles and standings are kept for `history`. Today's balances do not "
        "depend on it.",
        "90d",
    )
    keep_pushes: Seconds = _key(
        "7d",
        "How long past writes into Slurm are kept for `history`: there may be one for every "
        "waiting job whenever the order changes. A rollback does not depend on it.",
        "7d",
    )
    log_format: LogFormat = _key(
        "console", "Log lines for people, or one JSON object a line.", "json"
    )
    log_level: LogLevel = _key("info", "The least severity that is logged.", "info")


class StoreSection(Section):
    """[store]."""

    url: Url = _key(
        "sqlite:////var/lib/shapleyprio/shapleyprio.db",
        "The database that holds records, balances and priorities.",
        "sqlite:////var/lib/shapleyprio/shapleyprio.db",
    )


class MetricsSection(Section):
    """[metrics]."""

    address: ListenAddress = _key(
        "127.0.0.1:9817",
        "Where Prometheus finds the metrics and people the status page, or off.",
        "127.0.0.1:9817",
    )
    tls_certificate: AbsolutePath = _key(
        None,
        "File in PEM with the certificate, and with those between it and its authority. With it "
        "the address speaks HTTPS only.",
        "/etc/shapleyprio/tls.crt",
    )
    tls_key: AbsolutePath = _key(
        None,
        "File in PEM with the certificate's private key, without a passphrase. Only the daemon's "
        "user and group may read it.",
        "/etc/shapleyprio/tls.key",
    )
    tls_client_ca: AbsolutePath = _key(
        None,
        "File in PEM with authorities. If given, whoever reads needs a certificate of one of them.",
        "/etc/shapleyprio/clients.crt",
    )
    username: UserName = _key(
        None, "Whoever reads must give this name and the password (basic).", "prometheus"
    )
    password_file: AbsolutePath = _key(
        None,
        "File with nothing but that password. Only the daemon's user and group may read it.",
        "/etc/shapleyprio/password",
    )


class DriftSection(Section):
    """[drift]."""

    interval: SecondsOrOff = _key(
        "1h",
        "Time from one replay of the last window to the next. The packages that replay are "
        "needed for it: `pip install 'shapleyprio[replay]'`.",
        "1h",
    )
    window: Seconds = _key("7d", "How much of the past is replayed.", "7d")
    most_organizations: Count = _key(
        12,
        "With more of them coalitions are sampled, for Ref keeps 2^k schedules of k "
        "organizations: every one more doubles the time.",
        12,
    )
    time_limit: Timeout = _key("10m", "A replay that takes longer is given up.", "10m")
    memory_limit: Memory = _key(
        "4G", "The address space of a replay; one that needs more is given up.", "4G"
    )


class Organization(Section):
    """[[organization]]."""

    name: Text = _key(..., "What it is called in reports and metrics.", "physics")
    accounts: Names = _key(
        (), "Slurm accounts whose jobs are its jobs. Without any it only lends.", ["physics"]
    )
    sub_accounts: Switch = _key(
        True,
        "Whether accounts below those are included, except what another organization claims. "
        "A log does not tell which they are: in a replay of one, only those listed count.",
        False,
    )
    partitions: Names = _key(
        (),
        "Partitions whose nodes it owns. In a replay of a log that names no accounts, an "
        "organization without `accounts`, `users`, `groups` and `queues` has the jobs of its "
        "partitions, too.",
        ["physics"],
    )
    nodes: HostLists = _key(
        (),
        "Nodes it owns, as host lists. They outrank the partitions of other organizations.",
        ["n[001-016]"],
    )
    qos: OptionalText = _key(
        None,
        'The QOS its jobs run under; with the channel "qos" its priority is what is written.',
        "physics",
    )
    users: LogNames = _key(
        (),
        "Only `replay` reads it: users whose jobs are its jobs, unless the account is somebody's. "
        "For logs in SWF, their numbers.",
        [3, 17],
    )
    groups: LogNames = _key(
        (),
        "Only `replay` reads it: groups whose jobs are its jobs, unless account or user is "
        "somebody's. For logs in SWF, their numbers.",
        [1],
    )
    queues: LogNames = _key(
        (),
        "Only `replay` reads it: queues whose jobs are its jobs, unless account, user or group is "
        "somebody's. For logs in SWF, their numbers.",
        [2],
    )
    processors: Processors = _key(
        None,
        "Only `replay` reads it: how many processors it brings, whatever the log tells of its "
        "nodes. If it is left out, each of its nodes counts as many as the log's jobs ever held "
        "there at a time; a log without nodes, such as one in SWF, needs it.",
        64,
    )


class ContradictionError(ValueError):
    """Keys that are each right but not together.

    Attributes:
        problems: where, and what is wrong there.
    """

    def __init__(self, problems: list[tuple[Path, str]]) -> None:
        super().__init__("; ".join(text for _, text in problems))
        self.problems = problems


class Config(Section):
    """The whole file."""

    slurm: SlurmSection = _section(SlurmSection, "How Slurm is reached.")
    fairness: FairnessSection = _section(FairnessSection, "What is measured.")
    push: PushSection = _section(PushSection, "How priorities get into Slurm.")
    service: ServiceSection = _section(ServiceSection, "How the daemon works.")
    store: StoreSection = _section(StoreSection, "Where everything is kept.")
    metrics: MetricsSection = _section(MetricsSection, "What Prometheus and people read.")
    drift: DriftSection = _section(
        DriftSection, "The replay that tells how far what happened is from what was fair."
    )
    organizations: tuple[Organization, ...] = Field(
        (),
        alias="organization",
        description="A member of the consortium, one table for each. Ties between organizations "
        "go to the one that comes first in the file.",
    )

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Config:
        problems = [
            *_no_organization(self.organizations),
            *_claimed_twice("name", [(one.name,) for one in self.organizations]),
            *_claimed_twice("accounts", [one.accounts for one in self.organizations]),
            *_claimed_twice("qos", [(one.qos,) for one in self.organizations]),
            *_claimed_twice("users", [one.users for one in self.organizations]),
            *_claimed_twice("groups", [one.groups for one in self.organizations]),
            *_claimed_twice("queues", [one.queues for one in self.organizations]),
        ]
        problems += _half_given(self.metrics)
        if self.push.channel is Channel.QOS:
            problems += _no_qos(self.organizations)
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


def _claimed_twice(key: str, claims: list[tuple[str | None, ...]]) -> Iterator[tuple[Path, str]]:
    first: dict[str, int] = {}
    for index, names in enumerate(claims):
        for name in names:
            if name and first.setdefault(name, index) != index:
                yield (
                    ("organization", index, key),
                    f"{name!r} is taken by organization[{first[name] + 1}] already; "
                    "leave it to one of them",
                )


def _half_given(metrics: MetricsSection) -> Iterator[tuple[Path, str]]:
    for key, needed in (
        ("tls_certificate", "tls_key"),
        ("tls_key", "tls_certificate"),
        ("tls_client_ca", "tls_certificate"),
        ("username", "password_file"),
        ("password_file", "username"),
    ):
        if getattr(metrics, key) is not None and getattr(metrics, needed) is None:
            yield ("metrics", key), f"is of no use without metrics.{needed}; give both or neither"


def _no_qos(organizations: tuple[Organization, ...]) -> Iterator[tuple[Path, str]]:
    for index, organization in enumerate(organizations):
        if organization.accounts and not organization.qos:
            yield (
                ("organization", index, "qos"),
                'is missing, but push.channel is "qos"; '
                "name the QOS its jobs run under, or choose another channel",
            )
