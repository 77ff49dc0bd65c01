"""The plan of a rehearsal: a site's jobs on a private Slurm of the site's shape."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import NamedTuple

from shapleyprio.lab.rehearsal.arms import SiteArm
from shapleyprio.lab.rehearsal.site import NONE, Options, SiteSlurm
from shapleyprio.lab.rehearsal.taken_over import (
    GPU,
    SETTINGS,
    enforced,
    known_tres,
    scheduler_parameters,
    select_parameters,
)
from shapleyprio.lab.rehearsal.usage import earn
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import ClusterSpec
from shapleyprio.lab.trial.arms import Arm
from shapleyprio.lab.trial.plan import head_of, of_any_plan
from shapleyprio.replay.workloads.workload import Workload
from shapleyprio.slurm.layout import ROOT

CLUSTER = "rehearsal"
NO_MEMORY = "does not count, since the log has no column ReqTRES"
NO_GPUS = "do not count, since no job of the log asks for any in a column ReqTRES"
NO_FEATURES = "do not count, since no job of the log names any in a column Constraints"
_BETWEEN_FEATURES = re.compile(r"(?:\*[0-9]+|[&|,()\[\]])+")
NORMAL_QOS = "normal"
"""It is there in every new cluster."""


class SiteJob(NamedTuple):
    """What a job names.

    Attributes:
        account, user: of whom it is.
        partition: where it ran.
        qos: empty for the usual one.
        memory: MiB that it asked for; 0 where not known.
        nodes: on which it wanted to run at least; 0 where not known.
        gpus: such as ``a100:2``; empty without any.
        features: of the nodes that it wanted, such as ``ib&(rome|milan)``; empty if any would do.
    """

    account: str
    user: str
    partition: str
    qos: str
    memory: int = 0
    nodes: int = 0
    gpus: str = ""
    features: str = ""


@dataclass(frozen=True)
class SitePlan:
    """Every job with the account, partition and QOS that it had.

    All jobs are one user's here. So each user of an account has an account below it, with the
    user's shares and limits.

    Attributes:
        site: whose Slurm it is.
        workload: as Slurm runs it.
        jobs: what each of its jobs names.
        owners: node -> index of its organization.
        nobody: index of the organization of what no organization claims; None if there is none.
        usage: account, user and organization -> processor-seconds from before.
    """

    site: SiteSlurm
    workload: Workload
    jobs: Sequence[SiteJob]
    owners: Mapping[str, int]
    nobody: int | None
    usage: Mapping[tuple[str, str, int], float]

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Node -> its processors."""
        return {name: node.processors for name, node in self.site.conf.nodes.items()}

    @cached_property
    def _leaves(self) -> Mapping[tuple[str, str, int], str]:
        """Account, user and organization -> the account of these jobs."""
        taken = {*self.site.associations.parents, *(job.account for job in self.jobs)}
        prefix = "u"
        while any(name.startswith(prefix) for name in taken):
            prefix += "u"
        of_jobs = zip(self.jobs, self.workload.organization.tolist(), strict=True)
        named = ((job.account, job.user, u) for job, u in of_jobs)
        different = dict.fromkeys((*named, *self.usage))
        return {leaf: f"{prefix}{number}" for number, leaf in enumerate(different, start=1)}

    @cached_property
    def accounts_of_users(self) -> Mapping[int, Sequence[str]]:
        """Code of a user -> the accounts of this user's jobs."""
        history = self.workload.history
        if history is None:
            return {}
        found: dict[int, dict[str, None]] = {}
        for job, user in enumerate(history.user.tolist()):
            found.setdefault(user, {})[self._leaf(job)] = None
        return {user: tuple(leaves) for user, leaves in found.items()}

    def _leaf(self, job: int) -> str:
        of = self.jobs[job]
        return self._leaves[of.account, of.user, int(self.workload.organization[job])]

    # -- the cluster

    @cached_property
    def _knows_memory(self) -> bool:
        return any(job.memory for job in self.jobs)

    @cached_property
    def _accounted(self) -> frozenset[str]:
        """GPUs that are accounted; none if no job asks for any."""
        wanted = any(job.gpus for job in self.jobs)
        return self.site.conf.accounted | {GPU} if wanted else frozenset()

    @cached_property
    def _features(self) -> frozenset[str]:
        """Those that nodes have."""
        return frozenset().union(*(node.features for node in self.site.conf.nodes.values()))

    def _knows_features(self, of: SiteJob) -> bool:
        """Returns whether a job names no other features than nodes have."""
        return self._features.issuperset(filter(None, _BETWEEN_FEATURES.split(of.features)))

    def preempts(self, arm: Arm) -> bool:
        """Returns whether under an arm jobs may be ended and begin again because of others."""
        return self._settings(arm, 1)["PreemptType"] not in {"", "preempt/none"}

    @property
    def left_out(self) -> Mapping[str, str]:
        """What is left out -> what might differ because of it."""
        counts = "_memory" in self.site.conf.settings.get("SelectTypeParameters", "").lower()
        lacking = {"memory": NO_MEMORY} if counts and not self._knows_memory else {}
        if any(node.gpus for node in self.site.conf.nodes.values()) and not self._accounted:
            lacking["GPUs"] = NO_GPUS
        if self._features and not any(job.features for job in self.jobs):
            lacking["features"] = NO_FEATURES
        if strange := sum(not self._knows_features(job) for job in self.jobs):
            lacking["features"] = (
                f"do not count for {strange:,} jobs that name others than nodes have"
            )
        return {**self.site.left_out, **lacking}

    def spec(self, arm: Arm, *, speed: int) -> ClusterSpec:
        """Returns the site's cluster with an arm's settings."""
        conf = self.site.conf
        return ClusterSpec(
            name=CLUSTER,
            partitions={name: part.nodes for name, part in conf.partitions.items() if part.nodes},
            partition_options={
                name: " ".join(f"{k}={v}" for k, v in self._written(part.options).items())
                for name, part in conf.partitions.items()
            },
            cpus=self.sizes,
            node_options={name: node.options for name, node in conf.nodes.items()},
            gres={n: node.gpus for n, node in conf.nodes.items() if node.gpus and self._accounted},
            speed=speed,
            longest_limit=int(self.workload.limit.max()),
            extra={
                **self._settings(arm, speed),
                **of_any_plan(self.workload),
            },
        )

    def _settings(self, arm: Arm, speed: int) -> dict[str, str]:
        """Returns the site's and the arm's settings; what neither has is as Slurm has it."""
        site = self._written(self.site.conf.settings)
        found = {**dict.fromkeys(SETTINGS.values(), ""), **site, **arm.settings}
        if found["PreemptMode"].upper() in {"", "OFF"}:
            found["PreemptType"] = ""  # jobs were only suspended; Slurm takes no other pair
        scheduler, _ = scheduler_parameters(found["SchedulerParameters"], speed=speed)
        return {
            **found,
            "SchedulerParameters": scheduler,
            "SelectTypeParameters": select_parameters(
                found["SelectTypeParameters"], memory=self._knows_memory
            ),
            **(
                {"AccountingStorageTRES": ",".join(sorted(self._accounted))}
                if self._accounted
                else {}
            ),
            "AccountingStorageEnforce": enforced(found["AccountingStorageEnforce"]),
        }

    def _written(self, keys: Options) -> dict[str, str]:
        """Returns keys for slurm.conf: without QOS, and what does not count."""
        left = {"QOS"} if self._knows_memory else {"QOS", "DefMemPerCPU", "DefMemPerNode"}
        return self._counted({key: value for key, value in keys.items() if key not in left})

    def _counted(self, options: Options) -> dict[str, str]:
        """Returns options without resources that do not count, and those that are empty then."""
        known = {
            key: known_tres(value, self._accounted) if "TRES" in key else value
            for key, value in options.items()
        }
        return {key: value for key, value in known.items() if value}

    # -- accounts and QOS

    def populate(self, cluster: PrivateSlurm, arm: Arm) -> None:
        """Adds QOS and accounts; partitions get their QOS, which have to be there first."""
        qos = self._qos()
        if added := [name for name in qos if name != NORMAL_QOS]:
            cluster.run("sacctmgr", "-i", "add", "qos", ",".join(added))
        for name in qos:
            options = self._counted(self.site.qos.options.get(name, NONE))
            if preempted := self.site.qos.preempted.get(name):
                options["Preempt"] = ",".join(preempted)
            if options:
                words = (f"{key}={value}" for key, value in options.items())
                where = ("where", f"name={name}", "set")
                cluster.run("sacctmgr", "-i", "modify", "qos", *where, *words)
        for name, partition in self.site.conf.partitions.items():
            if "QOS" in partition.options and partition.nodes:
                given = f"QOS={partition.options['QOS']}"
                cluster.run("scontrol", "update", f"PartitionName={name}", given)
        if (user := cluster.paths.user) != ROOT:  # only whom accounting knows may load a file
            named = ("user", user, f"account={ROOT}", "adminlevel=Administrator")
            cluster.run("sacctmgr", "-i", "add", *named, f"cluster={CLUSTER}")
        file = cluster.directory / "associations"
        file.write_text("\n".join(self.associations(arm, user)) + "\n")
        cluster.run("sacctmgr", "-i", "load", f"file={file}", f"cluster={CLUSTER}", timeout=600)
        weight = self._settings(arm, 1)["PriorityWeightFairshare"]
        if self.usage and weight not in {"", "0"}:
            earn(
                cluster,
                {self._leaves[leaf]: used for leaf, used in self.usage.items()},
                self._usage_qos,
                partition=self.site.conf.default,
                memory=self._knows_memory,
            )

    @cached_property
    def _usage_qos(self) -> str:
        taken = {*self.site.qos.options, *(job.qos for job in self.jobs)}
        return next(name for n in count() if (name := f"usage{n or ''}") not in taken)

    def _qos(self) -> tuple[str, ...]:
        partitions = (part.options.get("QOS") for part in self.site.conf.partitions.values())
        earning = [self._usage_qos] if self.usage else []
        named = (*self.site.qos.options, *(job.qos for job in self.jobs), *partitions, *earning)
        return tuple(dict.fromkeys(name for name in named if name))

    def associations(self, arm: Arm, login: str) -> Iterator[str]:
        """Yields the lines of a file for ``sacctmgr load``.

        Args:
            arm: under which jobs run.
            login: of the user who submits all jobs here.
        """
        by_organization = isinstance(arm, SiteArm) and arm.by_organization
        above, options = self._by_organization() if by_organization else self._as_at_the_site()
        below: dict[str, list[str]] = {}
        for account, parent in above.items():
            below.setdefault(parent or ROOT, []).append(account)
        yield f"Cluster - '{CLUSTER}':Fairshare=1"
        usual = ",".join(self._qos()) or NORMAL_QOS
        for parent in (ROOT, *above):
            if parent in below:
                yield f"Parent - '{parent}'"
            for account in below.get(parent, ()):
                own = self._counted(options.get(account, NONE))
                limits = "".join(f":{key}={value}" for key, value in own.items())
                named = f"Description='{account}':Organization='{CLUSTER}'"
                yield f"Account - '{account}':{named}:QOS='{usual}'{limits}"
        for leaf in self._leaves.values():
            yield f"Parent - '{leaf}'"
            yield f"User - '{login}':DefaultAccount='{leaf}':Fairshare=1"

    def _as_at_the_site(self) -> tuple[dict[str, str | None], dict[str, Options]]:
        """Returns account -> the one above it, and its shares and limits."""
        known = self.site.associations
        above: dict[str, str | None] = dict(known.parents)
        options: dict[str, Options] = dict(known.accounts)
        for (account, user, _), leaf in self._leaves.items():
            above.setdefault(account, None)
            above[leaf] = account
            options[leaf] = known.users.get((account, user), NONE)
        return above, options

    def _by_organization(self) -> tuple[dict[str, str | None], dict[str, Options]]:
        owned = self.workload.owned.tolist()
        handles = [handle_of(u) for u in range(len(owned))]
        options: dict[str, Options] = {
            handle: {"Fairshare": str(max(processors, 1))}
            for handle, processors in zip(handles, owned, strict=True)
        }
        above: dict[str, str | None] = dict.fromkeys(handles)
        above |= {leaf: handles[u] for (_, _, u), leaf in self._leaves.items()}
        return above, options

    # -- jobs and the daemon

    def options(self, job: int, arm: Arm) -> tuple[str, ...]:  # noqa: ARG002 - as other plans do
        """Returns the options of sbatch in which jobs differ."""
        of, workload = self.jobs[job], self.workload
        return (
            f"--account={self._leaf(job)}",
            f"--partition={of.partition}",
            f"--ntasks={workload.processors[job]}",
            f"--time={workload.limit[job] // 60}",
            *([f"--qos={of.qos}"] if of.qos else []),
            *self._resources(of, int(workload.processors[job])),
        )

    def _resources(self, of: SiteJob, processors: int) -> Iterator[str]:
        """Yields the options for nodes, features and memory: no more than Slurm can give."""
        nodes = self.site.conf.partitions[of.partition].nodes
        if (least := min(of.nodes, len(nodes), processors)) > 1:
            yield f"--nodes={least}-{len(nodes)}"
        if of.features and self._knows_features(of):
            yield f"--constraint={of.features}"
        if of.gpus:
            yield f"--gpus={of.gpus}"
        if of.memory:
            most = max(self.site.conf.nodes[node].memory for node in nodes)
            yield f"--mem-per-cpu={min(max(of.memory // processors, 1), most)}M"

    def organizations(self, arm: Arm) -> str:  # noqa: ARG002 - as other plans do
        """Returns the tables [[organization]] of the daemon's configuration."""
        tables = []
        for u in range(len(self.workload.organizations)):
            if u == self.nobody:
                continue
            accounts = [leaf for (_, _, own), leaf in self._leaves.items() if own == u]
            nodes = [node for node, owner in self.owners.items() if owner == u]
            head = head_of(u, self.workload)
            parent = "" if head is None else f'parent = "{handle_of(head)}"\n'
            tables.append(
                f'[[organization]]\nname = "{handle_of(u)}"\n{parent}'
                f"accounts = {json.dumps(accounts)}\nnodes = {json.dumps(nodes)}\n"
            )
        return "".join(tables)


def handle_of(u: int) -> str:
    """Returns what an organization is called in the private Slurm."""
    return f"organization{u + 1}"
