"""Takes over what decides about the order of jobs from a site's slurm.conf."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType

from shapleyprio.lab.rehearsal.site_files import ConfLine, SiteError, conf_lines
from shapleyprio.lab.rehearsal.taken_over import (
    GPU,
    NODE,
    PARTITION,
    SETTINGS,
    left_out,
    preempt_modes,
)
from shapleyprio.replay.workloads.layout import LoggedNode
from shapleyprio.slurm.text.values import UnreadableError, hosts, whole

MOST_PROCESSORS = 1 << 20
MOST_GPUS = 64
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,199}")
"""A partition, account or QOS whose name can stand anywhere."""

PLAIN_VALUE = re.compile(r"[A-Za-z0-9_.,:/=+-]*")
"""A value of an account or a QOS in which nothing means something else to sacctmgr."""

DEFAULT = "DEFAULT"
_SPECIAL = ("state", "memspeclimit", "procs", "gres")
_GPUS = re.compile(
    r"gpu(?::((?:[A-Za-z]|[0-9]+[A-Za-z][\w.-])[\w.-]*))?(?::([0-9]{1,9}))?(?:\([^)]*\))?"
)
_ABSENT = frozenset({"future", "external"})
_SHAPE = ("sockets", "socketsperboard", "boards", "corespersocket", "threadspercore")


@dataclass(frozen=True, slots=True)
class SiteNode:
    """A node of the site.

    Attributes:
        processors: how many CPUs it has.
        memory: MiB.
        options: of its line in slurm.conf.
        gpus: such as ``gpu:a100:2``; empty without any.
        features: that jobs may ask for.
    """

    processors: int
    memory: int
    options: str
    gpus: str
    features: frozenset[str]


@dataclass(frozen=True, slots=True)
class SitePartition:
    """A partition of the site.

    Attributes:
        nodes: names.
        options: of its line in slurm.conf.
    """

    nodes: tuple[str, ...]
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteConf:
    """What a rehearsal takes over from slurm.conf.

    Attributes:
        file: it was read from.
        files: that one and those that it includes.
        settings: of the cluster, by name.
        nodes, partitions: by name.
        default: the partition of jobs that name none.
        accounted: GPUs that are accounted, such as ``gres/gpu:a100``.
        left_out: key -> what might differ since it is left out.
    """

    file: Path
    files: tuple[Path, ...]
    settings: Mapping[str, str]
    nodes: Mapping[str, SiteNode]
    partitions: Mapping[str, SitePartition]
    default: str
    accounted: frozenset[str]
    left_out: Mapping[str, str]

    @property
    def layout(self) -> dict[str, LoggedNode]:
        """The nodes as a log's layout has them."""
        inside: dict[str, list[str]] = {node: [] for node in self.nodes}
        for name, partition in sorted(self.partitions.items()):
            for node in partition.nodes:
                inside[node].append(name)
        return {
            name: LoggedNode(node.processors, tuple(inside[name]))
            for name, node in self.nodes.items()
        }


def read_slurm_conf(file: Path) -> SiteConf:
    """Reads slurm.conf.

    Raises:
        SiteError: it cannot be read, or has no nodes or partitions.
    """
    reader = _Reader(file)
    for line in conf_lines(file):
        reader.add(line)
    return reader.conf()


class _Reader:
    """Gathers what lines say."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._files = {file: None}
        self._settings: dict[str, str] = {}
        self._nodes: dict[str, SiteNode] = {}
        self._sets: dict[str, tuple[frozenset[str], str]] = {}
        self._partitions: list[tuple[ConfLine, dict[str, str]]] = []
        self._defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}}
        self._left: dict[str, str] = {}
        self._accounted: set[str] = set()

    def add(self, line: ConfLine) -> None:
        self._files[line.file] = None
        if line.key == "nodename":
            self._add_node(line)
        elif line.key == "partitionname":
            self._add_partition(line)
        elif line.key == "nodeset":
            feature, text = (line.keys.get(key, "") for key in ("feature", "nodes"))
            nodes = self._hosts(line, "Nodes", text) if text or not feature else ()
            self._sets[line.value] = frozenset(nodes), feature
        else:
            for key, value in line.words:
                self._add_setting(line, key, value)

    def conf(self) -> SiteConf:
        if not self._nodes:
            raise SiteError(f"{self._file}: has no line NodeName=...; give the whole slurm.conf")
        partitions, default = {}, ""
        for line, keys in self._partitions:
            name = line.value
            partitions[name] = self._partition(line, keys)
            if keys.get("default", "").lower() == "yes" or not default:
                default = name
        if not partitions:
            raise SiteError(f"{self._file}: has no line PartitionName=...")
        within = {node for partition in partitions.values() for node in partition.nodes}
        return SiteConf(
            file=self._file,
            files=tuple(self._files),
            settings=MappingProxyType(self._settings),
            nodes={name: node for name, node in self._nodes.items() if name in within},
            partitions=partitions,
            default=default,
            accounted=frozenset(self._accounted),
            left_out=MappingProxyType(dict(sorted(self._left.items()))),
        )

    def _add_setting(self, line: ConfLine, written: str, value: str) -> None:
        key = written.lower()
        if key == "accountingstoragetres":
            named = line.taken(written, value).lower().split(",")
            self._accounted |= {one for one in named if one.split(":")[0] == GPU}
        if key not in SETTINGS:
            self._leave_out({key: written})
            return
        value = self._taken(line, SETTINGS[key], value)
        if key == "selecttype" and value == "select/cons_res":
            value = "select/cons_tres"  # which later releases alone have, and decides alike
        self._settings[SETTINGS[key]] = value

    def _taken(self, line: ConfLine, key: str, text: str) -> str:
        """Returns what is taken over of a value."""
        value = line.taken(key, text)
        if key != "PreemptMode":
            return value
        value, is_whole = preempt_modes(value)
        if not is_whole:
            self._leave_out({key.lower(): key})
        return value

    def _add_node(self, line: ConfLine) -> None:
        keys = self._keys(line)
        if keys is None:
            return
        state = keys.get("state", "unknown").lower()
        if state in _ABSENT:
            self._leave_out({"future": f"NodeName={line.value[:80]}"})
            return
        if state not in {"unknown", "up", "cloud", "idle"}:
            self._leave_out({"nodestate": f"State={state}"})
        node = self._node(line, keys)
        for name in self._hosts(line, "NodeName", line.value):
            self._nodes[name] = node

    def _node(self, line: ConfLine, keys: dict[str, str]) -> SiteNode:
        options = {key: keys[key] for key in NODE if key in keys}
        if keys.get("procs"):
            options.setdefault("cpus", keys["procs"])
        counts = {
            key: self._count(line, key, options[key]) for key in ("cpus", *_SHAPE) if key in options
        }
        shape = [counts[key] for key in _SHAPE if key in counts]
        processors = counts.get("cpus") or prod(shape) or 1
        memory = self._memory(line, keys)
        options["realmemory"] = str(memory)
        written = (f"{NODE[key]}={line.taken(NODE[key], value)}" for key, value in options.items())
        if processors > MOST_PROCESSORS:
            raise line.error("CPUs", f"{processors:,} are more than a node has")
        features = filter(None, f"{keys.get('feature', '')},{keys.get('features', '')}".split(","))
        return SiteNode(
            processors, memory, " ".join(written), self._gpus(line, keys), frozenset(features)
        )

    def _gpus(self, line: ConfLine, keys: dict[str, str]) -> str:
        """Returns the GPUs among generic resources, each with its number."""
        gpus = []
        for part in re.findall(r"[^,()]+(?:\([^)]*\))?", keys.get("gres", "")):
            found = _GPUS.fullmatch(part)
            if found is None:
                self._leave_out({"gres": f"Gres={part[:80]}"})
                continue
            count = self._count(line, "Gres", found[2] or "1", MOST_GPUS)
            gpus += [f"gpu:{found[1]}:{count}" if found[1] else f"gpu:{count}"] * (count > 0)
        return ",".join(gpus)

    def _memory(self, line: ConfLine, keys: dict[str, str]) -> int:
        memory = self._count(line, "RealMemory", keys.get("realmemory", "1"), 1 << 40)
        reserved = self._count(line, "MemSpecLimit", keys.get("memspeclimit", "0"), 1 << 40)
        return max(memory - reserved, 1)

    def _add_partition(self, line: ConfLine) -> None:
        keys = self._keys(line)
        if keys is None:
            return
        if not NAME.fullmatch(line.value):
            raise line.error("PartitionName", f"{line.value[:80]!r} is not a partition name")
        if keys.get("state", "up").lower() != "up":
            self._leave_out({"partitionstate": f"State={keys['state']}"})
        self._partitions.append((line, keys))

    def _partition(self, line: ConfLine, keys: dict[str, str]) -> SitePartition:
        options = {}
        for key in PARTITION:
            if key not in keys:
                continue
            if value := self._taken(line, PARTITION[key], keys[key]):
                options[PARTITION[key]] = value
        nodes = tuple(dict.fromkeys(self._nodes_of(line, keys.get("nodes", ""))))
        return SitePartition(nodes, MappingProxyType(options))

    def _nodes_of(self, line: ConfLine, text: str) -> Iterator[str]:
        for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
            if part.upper() == "ALL":
                yield from self._nodes
            elif part in self._sets:
                named, feature = self._sets[part]
                for name, node in self._nodes.items():
                    if name in named or feature in node.features:
                        yield name
            elif part not in {"(null)", '""'}:
                found = self._hosts(line, "Nodes", part)
                missing = [node for node in found if node not in self._nodes]
                if missing and not self._has_absent():
                    raise line.error("Nodes", f"no line NodeName=... has {missing[0]}")
                yield from (node for node in found if node in self._nodes)

    def _has_absent(self) -> bool:
        return any(key.startswith("NodeName=") for key in self._left)

    def _keys(self, line: ConfLine) -> dict[str, str] | None:
        """Returns all keys of a node's or partition's line; None if it sets the defaults."""
        known = {*(NODE if line.key == "nodename" else PARTITION), *_SPECIAL}
        self._leave_out({k.lower(): k for k, _ in line.words if k.lower() not in known})
        keys = {**self._defaults[line.key], **line.keys}
        if line.value == DEFAULT:
            self._defaults[line.key] = keys
            return None
        return keys

    def _leave_out(self, keys: Mapping[str, str]) -> None:
        self._left.update(left_out(keys))

    def _hosts(self, line: ConfLine, key: str, text: str) -> tuple[str, ...]:
        try:
            return hosts(key, text)
        except UnreadableError as error:
            raise SiteError(f"{line.file}:{line.number}: {error}") from None

    def _count(self, line: ConfLine, key: str, text: str, most: int = MOST_PROCESSORS) -> int:
        try:
            return whole(NODE.get(key, key), text, 0, most)
        except UnreadableError as error:
            raise SiteError(f"{line.file}:{line.number}: {error}") from None
