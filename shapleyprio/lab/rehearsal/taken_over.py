"""Which keys of slurm.conf a rehearsal takes over, and what the others might change."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from types import MappingProxyType

from shapleyprio.lab.testbed.configuration import LONGEST_GUARD

SETTINGS = MappingProxyType(
    {
        key.lower(): key
        for key in (
            *("PriorityType", "PriorityFlags", "PriorityCalcPeriod", "PriorityMaxAge"),
            *("PriorityDecayHalfLife", "PriorityUsageResetPeriod", "PriorityFavorSmall"),
            *("PriorityWeightAge", "PriorityWeightAssoc", "PriorityWeightFairshare"),
            *("PriorityWeightJobSize", "PriorityWeightPartition", "PriorityWeightQOS"),
            *("PriorityWeightTRES", "FairShareDampeningFactor", "AccountingStorageEnforce"),
            *("PreemptType", "PreemptMode", "PreemptExemptTime", "PreemptParameters"),
            *("SchedulerType", "SchedulerParameters", "SelectType", "SelectTypeParameters"),
            *("DefMemPerCPU", "DefMemPerNode", "CompleteWait"),
        )
    }
)
"""In small letters -> as Slurm writes them."""

PARTITION = MappingProxyType(
    {
        key.lower(): key
        for key in (
            *("PriorityTier", "PriorityJobFactor", "MaxNodes", "MaxCPUsPerNode", "OverSubscribe"),
            *("Shared", "PreemptMode", "GraceTime", "QOS", "LLN", "TRESBillingWeights"),
            *("DefMemPerCPU", "DefMemPerNode"),
        )
    }
)

NODE = MappingProxyType(
    {
        key.lower(): key
        for key in (
            *("CPUs", "Boards", "Sockets", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore"),
            *("RealMemory", "Weight", "Feature", "Features"),
        )
    }
)

EFFECTS: Sequence[tuple[re.Pattern[str], str]] = tuple(
    (re.compile(pattern), effect)
    for pattern, effect in (
        ("topology.*|switchasnode.*", "jobs on several nodes may span more switches"),
        ("licenses", "no job waits for a license"),
        ("jobsubmitplugins|clifilterplugins", "jobs are as accounting has them in the end"),
        ("suspend.*|resume.*|power.*", "nodes do not sleep, so no job waits for one to boot"),
        ("(prolog|epilog|healthcheck|prep|resv).*", "a node is free as soon as its job has ended"),
        ("gres", "generic resources other than GPUs do not count"),
        ("prioritysitefactor.*|priorityparameters", "the site factor of the plugin is missing"),
        ("burstbuffer.*", "no job waits for a burst buffer"),
        ("mcs.*|exclusiveuser|exclusivetopo", "users and groups share nodes"),
        ("reqresv", "jobs need no reservation"),
        ("corespec.*|cpuspec.*", "all cores of a node take jobs"),
        ("downnodes|nodestate", "nodes are up all the time"),
        ("partitionstate", "the partition is up all the time"),
        ("future", "nodes with State=FUTURE are not there"),
        ("preemptmode", "no job is suspended or takes turns with another"),
        ("federationparameters", "jobs go to no other cluster"),
        ("overtimelimit", "jobs last as long as they did, whatever their limit"),
        ("maxcpuspersocket", "a job may have all cores of a socket"),
    )
)
"""What of a key that is left out might matter."""

HARMLESS = re.compile(
    # hosts, files, ports, accounts of the system, and who talks to whom how
    r"slurm.*|auth.*|cred.*|clustername|control.*|backup.*|state.*|jobcomp.*|jobacct.*|jobcred.*|"
    r"acctgather.*|accountingstor.*|grestypes|mail.*|mpi.*|proctrack.*|task.*|switch.*|launch.*|plug.*|"
    r"propagate.*|private.*|tree.*|route.*|reboot.*|returntoservice|message.*|tcp.*|eio.*|batch.*|"
    r"unkillable.*|minjobage|max(jobcount|jobid|stepcount|dbdmsgs|arraysize|nodecount|batch.*)|"
    r"firstjobid|tmp.*|use.*|vsize.*|wait.*|kill.*|inactive.*|get.*|group.*|bcast.*|srun.*|track.*|"
    r"communication.*|cache.*|defaultstorage.*|checkpoint.*|cryptotype|job(file|container|requeue)"
    r".*|enforcepartlimits|interactive.*|cpufreq.*|ext.*|log.*|x11.*|debug.*|disablerootjobs|"
    r"include|cgroup.*|hash.*|certm.*|tls.*|data.*|node(hostname|addr|features.*)|port|reason|"
    r"frontend.*|fastschedule|scron.*|dependency.*|requeue.*|reconfigflags|schedulertimeslice|"
    r"allowspec.*|resourcelimits|metrics.*|namespace.*|"
    # who may submit what: only jobs that were accepted are submitted
    r"allow.*|deny.*|alloc.*|alternate|hidden|rootonly|default|maxtime|defaulttime|minnodes|cpubind|"
    r"maxmemper.*|defcpuper.*|defmempergpu|nodes|partitionname|nodename|nodeset"
)

_OTHERS = re.compile(r"gres/|license/|bb/", re.IGNORECASE)
GPU = "gres/gpu"
_LIMITS = ("limits", "qos", "safe")
_PREEMPT_MODES = frozenset({"off", "cancel", "requeue", "within"})
_SCHEDULER = frozenset(
    {
        *("assoc_limit_stop", "batch_sched_delay", "default_queue_depth", "defer", "defer_batch"),
        *("ignore_numa", "ignore_prefer_validation", "max_array_tasks", "pack_serial_at_end"),
        *("partition_job_depth", "reduce_completing_frag", "sched_interval", "spec_cores_first"),
        *("sched_max_job_start", "sched_min_interval", "time_min_as_soft_limit"),
    }
)
_SCHEDULER_HARMLESS = re.compile(
    r"max_rpc_cnt|max_script_size|.*_user_top|no_backup.*|no_env.*|nohold_.*|build_queue.*|"
    r"requeue_setup.*|.*_wait_nodes|step_.*|allow_zero_lic|.*hetjob.*|correspond.*|delay_boot|"
    r"bb_.*|disable_job_shrink|permit_job_expansion|max_sched_time|bf_yield_.*|bf_licenses"
)
_LONGEST_CYCLE = 3600
_REAL_CYCLE = 30
_REAL_PASS = 4

ONE_USER = frozenset({"bf_max_job_user", "bf_max_job_user_part"})
"""All jobs are one user's here, and each user of an account has an account."""

UNKNOWN_KEY = "is not known to a rehearsal"


def effect_of(key: str) -> str | None:
    """Returns what a key that is left out might change; None if it is of no importance here."""
    for pattern, effect in EFFECTS:
        if pattern.fullmatch(key):
            return effect
    return None if HARMLESS.fullmatch(key) else UNKNOWN_KEY


def known_tres(text: str, accounted: Container[str]) -> str:
    """Returns a list such as ``CPU=1.0,GRES/gpu=8`` without what is not accounted.

    >>> known_tres("CPU=1.0,GRES/gpu=8,license/x=1", {GPU})
    'CPU=1.0,GRES/gpu=8'
    """
    parts = ((part, part.partition("=")[0].lower()) for part in text.split(",") if part)
    return ",".join(part for part, name in parts if not _OTHERS.match(name) or name in accounted)


def enforced(text: str) -> str:
    """Returns which limits of accounts are kept; that jobs have an account always is."""
    asked = {part.strip().lower() for part in text.split(",")}
    return ",".join(["associations", *(one for one in _LIMITS if asked & {one, "all"})])


def preempt_modes(text: str) -> tuple[str, bool]:
    """Returns those modes of preemption that are kept, and whether these are all."""
    modes = [mode for mode in text.split(",") if mode]
    kept = [mode for mode in modes if mode.lower() in _PREEMPT_MODES]
    return ",".join(kept) or "OFF", len(kept) == len(modes)


def scheduler_parameters(text: str, *, speed: int) -> tuple[str, list[tuple[str, str]]]:
    """Returns the parameters for an accelerated clock; and those left out, with their effects.

    Times of policy stay as they are. How long a pass of scheduling may take is a guard against
    real slowness, and grows with the speed.
    """
    kept: dict[str, str] = {}
    left: list[tuple[str, str]] = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        key, _, value = part.partition("=")
        if key.lower() in ONE_USER:
            kept.setdefault("bf_max_job_assoc", f"bf_max_job_assoc={value}")
            left.append((key, "it counts for each user of an account (bf_max_job_assoc)"))
        elif _SCHEDULER_HARMLESS.fullmatch(key.lower()):
            continue
        elif key.lower() in _SCHEDULER or key.lower().startswith(("bf_", "preempt")):
            kept[key.lower()] = part
        else:
            left.append((key, UNKNOWN_KEY))
    kept["bf_max_time"] = f"bf_max_time={min(_LONGEST_CYCLE, _REAL_CYCLE * speed)}"
    kept["max_sched_time"] = f"max_sched_time={min(LONGEST_GUARD, _REAL_PASS * speed)}"
    return ",".join(kept.values()), left


def select_parameters(text: str, *, memory: bool) -> str:
    """Returns SelectTypeParameters, without memory if that is not to count.

    >>> select_parameters("CR_Core_Memory,CR_LLN", memory=False)
    'CR_Core,CR_LLN'
    """
    if memory:
        return text
    parts = ("CR_CPU" if part == "CR_Memory" else part for part in text.split(","))
    return ",".join(part.removesuffix("_Memory") for part in parts)


def left_out(keys: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields keys that are left out and might matter, and what they might change.

    Args:
        keys: in small letters -> as they were written.
    """
    for key, written in keys.items():
        if (effect := effect_of(key)) is not None:
            yield written, effect
