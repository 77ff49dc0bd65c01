"""Every key of the configuration file's sections: its type, default and meaning.

Attributes are named like the keys. Durations are seconds, and what the file calls "unlimited",
"strict" or "off" is None.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from shapleyprio.config.values import (
    AUTO,
    AbsolutePath,
    AdapterName,
    ChannelName,
    Count,
    Influence,
    Instant,
    LeaseSeconds,
    ListenAddress,
    LogFormat,
    LogLevel,
    Memory,
    Names,
    OptionalText,
    Rule,
    Seconds,
    SecondsOrOff,
    SecondsOrUnlimited,
    SlurmNames,
    SocketPath,
    Switch,
    Timeout,
    Url,
    Weight,
)
from shapleyprio.fairness.rules import DEFAULT_RULE, RULES
from shapleyprio.slurm.adapters import DEFAULT_ADAPTER
from shapleyprio.slurm.channels import CHANNELS, DEFAULT_CHANNEL


class ConfigSection(BaseModel):
    """A table of the file: frozen, and keys that it does not know are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


def key(default: Any, description: str, example: Any = None) -> Any:
    """Makes a key of the file: its default as one would write it there (... if required).

    The default is also the example, unless another one says more.
    """
    return Field(
        default, description=description, examples=[default if example is None else example]
    )


def section(type_: type[ConfigSection], description: str) -> Any:
    """Makes a table of the file that may be left out."""
    return Field(default_factory=type_, description=description)


class SlurmSection(ConfigSection):
    """[slurm]."""

    cluster: OptionalText = key(
        None,
        "ClusterName. Read from Slurm if left out; otherwise it must be Slurm's.",
        "mycluster",
    )
    adapter: AdapterName = key(
        DEFAULT_ADAPTER,
        "Adapter to Slurm: command_line runs Slurm's commands; pyslurm calls Slurm's library where "
        "possible, and must be built for the cluster's release (docs/pyslurm.md); auto takes "
        "pyslurm if it fits.",
    )
    bin_directory: AbsolutePath = key(
        None,
        "Directory of Slurm's commands. The PATH is searched if left out.",
        "/opt/slurm/bin",
    )
    timeout: Timeout = key("30s", "Time limit of one Slurm command.")
    allow_unenforced_accounts: Switch = key(
        False,
        "Whether to write priorities although AccountingStorageEnforce lacks `associations`, so "
        "that any user can submit jobs to any account.",
    )


class FairnessSection(ConfigSection):
    """[fairness]."""

    weight: Weight = key(
        "cpus",
        "Unit of a processor: CPUs, billing units, or the units of a generic resource.",
        "gres/gpu",
    )
    horizon: SecondsOrUnlimited = key(
        "30d",
        "Age from which work gains no more worth, so that old work loses influence on the order.",
    )
    rule: Rule = key(
        DEFAULT_RULE,
        "Rule that ranks the organizations: "
        + "; ".join(f"{name} ranks by {rule.criterion}" for name, rule in RULES.items())
        + ".",
    )
    guarantee: SecondsOrOff = key(
        "off",
        "Wait after which a job goes before all others, while its organization, with that job, "
        "uses no more of its partition than it brings (docs/operations.md). The weight has to be "
        "cpus.",
        "4h",
    )
    guarantee_ahead: Switch = key(
        False,
        "Whether these jobs go first early enough to start by then: as much earlier as running "
        "jobs, by their time limits, may hold the processors that they need.",
        True,
    )
    leave_out_accounts: Names = key(
        (),
        "Accounts, with unclaimed ones below them, that take no part: their jobs earn and cost "
        "nothing, and no priority is written to them.",
        ["test", "staff"],
    )
    leave_out_partitions: SlurmNames = key(
        (),
        "Partitions that take no part, likewise.",
        ["test"],
    )
    since: Instant = key(
        None,
        "Earlier work does not count. One horizon before the first start if left out; a date "
        "alone means midnight UTC. After the first start it has no effect, and `check` says so.",
        "2026-01-01T00:00:00+01:00",
    )

    @property
    def tres(self) -> str:
        """Slurm's name of the weight among the trackable resources of a node."""
        return "cpu" if self.weight == "cpus" else self.weight


class PushSection(ConfigSection):
    """[push]."""

    channel: ChannelName = key(
        DEFAULT_CHANNEL,
        "What priorities are written to: "
        + "; ".join(f"{name} is {channel.written}" for name, channel in CHANNELS.items())
        + ".",
    )
    influence: Influence = key(
        "strict",
        "Priority points between the first and the last organization; strict: more than all other "
        "priority factors together between any two.",
        10000,
    )
    table: AbsolutePath = key(
        None,
        "File from which Slurm's Lua script gives new jobs their points at submission "
        "(slurm_conf/README.md), for the channel site_factor alone. Every cycle writes it.",
        "/var/spool/shapleyprio/points",
    )
    touch: Switch = key(
        True,
        "Whether pending jobs follow new association priorities at once, by an update without a "
        "change; else they follow after PriorityCalcPeriod. For the channel "
        + ", ".join(name for name, channel in CHANNELS.items() if channel.follows_late)
        + " alone.",
        False,
    )
    most_writes: Count = key(
        10_000,
        "Most writes into Slurm in one cycle. Jobs that start next come first; the rest is left to "
        "the following cycles.",
    )
    most_raises_of_user: Count = key(
        2_000,
        "Most writes in one cycle that raise jobs of one user, so that many jobs or changes of "
        "nice of one user do not delay other users' jobs.",
    )


class ServiceSection(ConfigSection):
    """[service]."""

    poll_interval: Seconds = key("30s", "Longest time from one cycle to the next.")
    new_jobs_interval: SecondsOrOff = key(
        "5s",
        "Time from one poll for new and changed jobs to the next. If there are any, a cycle runs "
        "at once.",
    )
    lease: LeaseSeconds = key(
        "10s",
        "A standby takes over when the daemon that steers has shown no sign of life for this long "
        "(docs/operations.md). It shows five in that time, each a write into the store.",
    )
    overlap: Seconds = key(
        "1h", "How far back each cycle reads accounting again, for late or changed records."
    )
    keep_history: Seconds = key("90d", "How long past cycles and standings are kept for `history`.")
    keep_runs: Seconds = key(
        "70d",
        "How long finished runs are kept for `report`, also beyond the horizon: a month and the "
        "one before it. Balances do not depend on it.",
    )
    keep_pushes: Seconds = key(
        "7d",
        "How long past writes into Slurm are kept for `history`: up to one for each pending job "
        "whenever the order changes. A rollback does not depend on it.",
    )
    socket: SocketPath = key(
        AUTO,
        "Unix socket on which users of this host ask for `explain` and `status` (docs/explain.md); "
        "auto: `socket` in the unit's RUNTIME_DIRECTORY, /run/shapleyprio.",
        "/run/shapleyprio/socket",
    )
    log_format: LogFormat = key("console", "Lines for people, or one JSON object a line.", "json")
    log_level: LogLevel = key("info", "Lowest severity that is logged.")


class StoreSection(ConfigSection):
    """[store]."""

    url: Url = key(
        "sqlite:////var/lib/shapleyprio/shapleyprio.db",
        "The database that holds records, balances and priorities.",
    )
    journal: AbsolutePath = key(
        None,
        "File on a disk of this host. With it new jobs get the last known points while the store "
        "is away; a standby then takes over only from a daemon that was stopped "
        "(docs/operations.md).",
        "/var/lib/shapleyprio/journal",
    )


class MetricsSection(ConfigSection):
    """[metrics]."""

    address: ListenAddress = key(
        "127.0.0.1:9817",
        "Address of metrics, status page and users' questions. Metrics and page answer on loopback "
        "only (docs/status-page.md).",
    )


class DriftSection(ConfigSection):
    """[drift]."""

    interval: SecondsOrOff = key(
        "1h",
        "Time from one replay to the next. It needs the package `shapleyprio-replay` "
        "(docs/install.md).",
    )
    window: Seconds = key("7d", "Length of the replayed past.")
    most_organizations: Count = key(
        12, "With more organizations coalitions are sampled; each additional one doubles the time."
    )
    time_limit: Timeout = key("10m", "Time limit of a replay; one that takes longer is stopped.")
    memory_limit: Memory = key(
        "4G", "Limit of a replay's address space; one that needs more is stopped."
    )


class EstimationSection(ConfigSection):
    """[estimation]."""

    recompute: Seconds = key(
        "30s",
        "Shortest time from one estimate to the next while jobs of several organizations wait; at "
        "most half of `longest_age`. "
        "Estimates need the package `shapleyprio-replay` (docs/install.md).",
    )
    longest_age: Seconds = key(
        "15m", "Age from which an estimate is not used; the rule directcontr then ranks."
    )
    coalitions: Count = key(
        500,
        "How many coalitions are valued with more than 10 organizations; with fewer, all. More "
        "make estimates more exact and take longer.",
    )
    time_limit: Timeout = key(
        "2m",
        "Time limit of an estimate, and of forecasts of starts; one that takes longer is stopped.",
    )
    memory_limit: Memory = key(
        "4G",
        "Limit of the address space of estimates, and of forecasts; one that needs more is "
        "stopped.",
    )


class ConsortiumSection(ConfigSection):
    """[consortium]."""

    name: OptionalText = key(
        None, "Name of the consortium, for `status` and the status page.", "Northern universities"
    )
    stale_after: Seconds = key(
        "10m",
        "Age from which the balances of another cluster in the pool are stale: they count as of "
        "its last cycle.",
    )
