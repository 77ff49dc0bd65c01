"""The configuration files of a private Slurm: their text, and where they are written."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from shapleyprio.common.wording import DAY
from shapleyprio.lab.testbed.machine import program, slurm_release

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from shapleyprio.slurm.releases import Release


EVERYTHING = "all"  # the default partition, over all nodes
ACCOUNTING_DATABASE = "slurm_acct_db"
LONGEST_GUARD = 60_000  # seconds; Slurm keeps most of them in 16 bits
LONGEST_BACKFILL = 43_200  # minutes, as far as Slurm's backfilling can look ahead


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """What a private cluster shall look like.

    Attributes:
        name: of the cluster.
        partitions: partition -> its nodes; a default partition "all" is added, unless one of that
            name is among them.
        partition_options: partition -> what else stands in its line of slurm.conf.
        cpus_per_node: of every node that cpus does not name.
        cpus: node -> its CPUs.
        node_options: node -> its shape as slurm.conf has it, instead of the CPUs.
        gres: node -> its GPUs, such as ``gpu:2`` or ``gpu:a100:2,gpu:v100:1``.
        speed: cluster seconds per real second at most.
        longest_limit: seconds; backfilling looks ahead as far as a job with this limit may run.
        reserved_for: for so many of each partition's first jobs backfilling reserves processors;
            0 for all.
        epoch: second at which the accelerated clock starts; None means now.
        extra: slurm.conf settings that replace or add to ours; one without a value removes ours.
    """

    name: str = "testbed"
    partitions: Mapping[str, Sequence[str]] = field(
        default_factory=lambda: MappingProxyType({"pa": ("a1", "a2"), "pb": ("b1", "b2")})
    )
    partition_options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    cpus_per_node: int = 4
    cpus: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    node_options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    gres: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    speed: int = 1
    longest_limit: int = DAY
    reserved_for: int = 0
    epoch: int | None = None
    extra: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every node once, in the order of the partitions."""
        return tuple(dict.fromkeys(node for nodes in self.partitions.values() for node in nodes))

    @property
    def port_count(self) -> int:
        """How many ports from the base port on the cluster uses."""
        return 11 + len(self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPaths:
    """Where a private cluster runs.

    Attributes:
        directory: of its whole state.
        base_port: its first port.
        user: that its daemons run as.
        host: short name of the machine.
    """

    directory: Path
    base_port: int
    user: str
    host: str

    @property
    def munge_socket(self) -> Path:
        """The socket of the cluster's own munged."""
        return self.directory / "munge.sock"

    @property
    def munge_key(self) -> Path:
        """The key of the cluster's own munged."""
        return self.directory / "etc" / "munge.key"

    @property
    def database(self) -> Path:
        """The files of the cluster's own MariaDB."""
        return self.directory / "mysql"

    @property
    def database_socket(self) -> Path:
        """The socket of the cluster's own MariaDB."""
        return self.directory / "mysql.sock"

    @property
    def slurm_conf(self) -> Path:
        """The file SLURM_CONF names."""
        return self.directory / "etc" / "slurm.conf"

    @property
    def slurmdbd_conf(self) -> Path:
        """The file of slurmdbd, which it expects beside slurm.conf."""
        return self.directory / "etc" / "slurmdbd.conf"

    @property
    def devices(self) -> Path:
        """The folder of files that stand for GPUs."""
        return self.directory / "gpus"

    @property
    def steps(self) -> Path:
        """The script that slurmd starts for each job of a cluster on an accelerated clock."""
        return self.directory / "etc" / "slurmstepd"

    @property
    def controller_port(self) -> int:
        """The port of slurmctld."""
        return self.base_port + 10


def steps_script(slurmstepd: str) -> str:
    """Returns the script that runs slurmstepd on the machine's clock; jobs stay on the cluster's.

    It wakes up once in a second of its clock, so that hundreds of running jobs would keep a machine
    busy on an accelerated one; and nobody asks it what time it is.
    """
    return f'#!/bin/sh\nunset LD_PRELOAD\nexec {slurmstepd} "$@"\n'


def slurm_conf(spec: ClusterSpec, paths: ClusterPaths) -> str:
    """Returns the text of slurm.conf."""
    settings = _slurm_settings(spec, paths) | _slurm_guards(spec.speed)
    if spec.gres:
        settings |= {"GresTypes": "gpu", "AccountingStorageTRES": "gres/gpu"}
    ours = {name.lower(): name for name in settings}
    for name, value in spec.extra.items():
        settings[ours.get(name.lower(), name)] = value
    lines = [f"{name}={value}" for name, value in settings.items() if value]
    for number, node in enumerate(spec.nodes):
        cpus = spec.cpus.get(node, spec.cpus_per_node)
        plain = f"CPUs={cpus} Sockets=1 CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory=4000"
        lines.append(
            f"NodeName={node} NodeHostname={paths.host} NodeAddr=127.0.0.1"
            f" Port={paths.controller_port + 1 + number} {spec.node_options.get(node, plain)}"
            " State=UNKNOWN" + (f" Gres={spec.gres[node]}" if node in spec.gres else "")
        )
    limits = "State=UP MaxTime=INFINITE DefaultTime=60"
    for partition, nodes in spec.partitions.items():
        options = spec.partition_options.get(partition, "")
        lines.append(
            f"PartitionName={partition} Nodes={','.join(nodes)} {limits} {options}".rstrip()
        )
    if EVERYTHING not in spec.partitions:
        everything = f"Nodes={','.join(spec.nodes)} Default=YES"
        lines.append(f"PartitionName={EVERYTHING} {everything} {limits}")
    return "\n".join(lines) + "\n"


def gres_conf(spec: ClusterSpec, paths: ClusterPaths) -> str:
    """Returns the text of gres.conf: each GPU of a node is one of our empty files."""
    lines = ["AutoDetect=off"]
    for node, resources in spec.gres.items():
        first = 0
        for kind, count in gpus_in(resources):
            files = f"{paths.devices}/[{first}-{first + count - 1}]"
            lines.append(f"NodeName={node} Name=gpu {f'Type={kind} ' * bool(kind)}File={files}")
            first += count
    return "\n".join(lines) + "\n"


def gpus_in(resources: str) -> Iterator[tuple[str, int]]:
    """Yields the types of GPUs, empty where there are none, and how many of each there are.

    >>> list(gpus_in("gpu:a100:2,gpu:v100:1")), list(gpus_in("gpu:2"))
    ([('a100', 2), ('v100', 1)], [('', 2)])
    """
    for resource in resources.split(","):
        _, *kind, count = resource.split(":")
        yield "".join(kind), int(count)


def slurmdbd_conf(spec: ClusterSpec, paths: ClusterPaths) -> str:
    """Returns the text of slurmdbd.conf."""
    run, log = paths.directory / "run", paths.directory / "log"
    settings = {
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={paths.munge_socket}",
        "DbdHost": "localhost",
        "DbdPort": str(paths.base_port),
        "CommunicationParameters": "NoInAddrAny",
        "SlurmUser": paths.user,
        "PidFile": str(run / "slurmdbd.pid"),
        "LogFile": str(log / "slurmdbd.log"),
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "localhost",
        "StorageUser": paths.user,
        "StorageLoc": ACCOUNTING_DATABASE,
    }
    if spec.speed > 1:
        settings["AuthInfo"] = _munge_info(paths, spec.speed)
        settings |= {
            "MessageTimeout": _guard(10, spec.speed),
            "TCPTimeout": _guard(2, spec.speed),
        }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def cgroup_conf(release: Release) -> str:
    """Returns the text of cgroup.conf, which keeps slurmd from looking for cgroups.

    It does so even where nothing uses them; CgroupPlugin=disabled exists since Slurm 23.11.
    """
    return f"CgroupPlugin={'disabled' if release.series >= '23.11' else 'cgroup/v1'}\n"


def _slurm_settings(spec: ClusterSpec, paths: ClusterPaths) -> dict[str, str]:
    directory = paths.directory
    return {
        "ClusterName": spec.name,
        "SlurmctldHost": f"{paths.host}(127.0.0.1)",
        "SlurmctldPort": str(paths.controller_port),
        "SlurmUser": paths.user,
        "SlurmdUser": paths.user,
        "AuthType": "auth/munge",
        "AuthInfo": _munge_info(paths, spec.speed),
        "CredType": "cred/munge",
        "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny",
        "StateSaveLocation": str(directory / "state"),
        "SlurmdSpoolDir": f"{directory}/spool/%n",
        "SlurmctldPidFile": str(directory / "run" / "slurmctld.pid"),
        "SlurmdPidFile": f"{directory}/run/slurmd-%n.pid",
        "SlurmctldLogFile": str(directory / "log" / "slurmctld.log"),
        "SlurmdLogFile": f"{directory}/log/slurmd-%n.log",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "SwitchType": "switch/none",
        "MpiDefault": "none",
        "JobAcctGatherType": "jobacct_gather/linux",
        "PropagateResourceLimits": "NONE",
        "SlurmdParameters": "config_overrides",
        "ReturnToService": "2",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core",
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": _scheduler_parameters(spec),
        "PriorityType": "priority/multifactor",
        "PriorityCalcPeriod": "00:01:00",
        "PriorityMaxAge": "1-0",
        "PriorityWeightAge": "1000",
        "PriorityWeightFairshare": "0",
        "PriorityWeightJobSize": "0",
        "PriorityWeightPartition": "0",
        "PriorityWeightQOS": "0",
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": "localhost",
        "AccountingStoragePort": str(paths.base_port),
        # the link to slurmdbd does not use AuthInfo
        "AccountingStoragePass": str(paths.munge_socket),
        "AccountingStorageEnforce": "associations,qos,limits",
        "KillWait": "2",
        "MinJobAge": "300",
        "SlurmctldTimeout": "30",
        "SlurmdTimeout": "60",
        "CompleteWait": "0",
        "MessageTimeout": "10",
        "MaxJobCount": "50000",
    }


def _slurm_guards(speed: int) -> dict[str, str]:
    """Sets guards against real slowness, which grow with the speed: they count cluster seconds."""
    if speed == 1:
        return {}
    return {
        "MessageTimeout": _guard(10, speed),
        "TCPTimeout": _guard(2, speed),
        "EioTimeout": _guard(60, speed),
        "BatchStartTimeout": _guard(30, speed),
        "UnkillableStepTimeout": _guard(60, speed),
        "SlurmctldTimeout": _guard(30, speed),
        "SlurmdTimeout": _guard(300, speed),
        "JobAcctGatherFrequency": "0",
    }


def _munge_info(paths: ClusterPaths, speed: int) -> str:
    socket = f"socket={paths.munge_socket}"
    if speed == 1:
        return socket
    # munge itself refuses credentials that live longer than an hour
    return f"{socket},ttl={min(3600, 300 * speed)},cred_expire={120 * speed}"


def _scheduler_parameters(spec: ClusterSpec) -> str:
    backfill = "bf_interval=2"
    if spec.speed > 1:
        backfill = f"bf_interval=30,bf_max_time={min(3600, 30 * spec.speed)}"
    backfill += f",bf_window={min(-(-spec.longest_limit // 60), LONGEST_BACKFILL)}"
    backfill += f",bf_job_part_count_reserve={spec.reserved_for}"
    # by default reservations come too late, and jobs that delay the first one start before it
    backfill += ",bf_resolution=1,bf_window_linear=1"
    return (
        "batch_sched_delay=0,sched_interval=5,sched_min_interval=100000,"
        f"{backfill},bf_max_job_test=1000,bf_continue,default_queue_depth=1000,requeue_delay=1"
    )


def _guard(seconds: int, speed: int) -> str:
    return str(min(LONGEST_GUARD, seconds * speed))


def write_files(spec: ClusterSpec, paths: ClusterPaths) -> None:
    """Makes the folders, and writes configuration and munge's key; an old key stays."""
    for folder in ("", "etc", "run", "log", "state", "spool"):
        (paths.directory / folder).mkdir(parents=True, exist_ok=True)
    paths.directory.chmod(0o755)
    _write(paths.slurm_conf, slurm_conf(spec, paths).encode(), 0o644)
    _write(paths.slurmdbd_conf, slurmdbd_conf(spec, paths).encode(), 0o600)
    if spec.gres:
        _write(paths.slurm_conf.with_name("gres.conf"), gres_conf(spec, paths).encode(), 0o644)
        paths.devices.mkdir(exist_ok=True)
        most = max(sum(n for _, n in gpus_in(gpus)) for gpus in spec.gres.values())
        for number in range(most):
            (paths.devices / str(number)).touch()
    cgroups = cgroup_conf(slurm_release())
    _write(paths.slurm_conf.with_name("cgroup.conf"), cgroups.encode(), 0o644)
    _write(paths.steps, steps_script(program("slurmstepd")).encode(), 0o755)
    if not paths.munge_key.exists():
        _write(paths.munge_key, secrets.token_bytes(128), 0o600)


def _write(path: Path, content: bytes, mode: int) -> None:
    path.unlink(missing_ok=True)
    path.touch(mode)
    path.write_bytes(content)
