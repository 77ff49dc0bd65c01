"""The files of a small site: two partitions, two faculties, users with shares of their own."""

from __future__ import annotations

from pathlib import Path

SLURM_CONF = """\
ClusterName=small
SlurmctldHost=head(10.0.0.1)
SlurmctldParameters=idle_on_node_suspend
AuthType=auth/munge
# a comment
include weights.conf
SchedulerType=sched/backfill
SchedulerParameters=bf_window=2880,bf_max_job_user=7,max_rpc_cnt=160,\\
bf_continue,default_queue_depth=1000,frobnicate=3
SelectType=select/cons_res
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
TopologyPlugin=topology/tree
PreemptType=preempt/qos
PreemptMode=REQUEUE,GANG
AccountingStorageEnforce=limits,qos,safe,nojobs
NodeName=DEFAULT Sockets=2 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=64000 MemSpecLimit=4000
NodeName=a[1-2] Weight=5 Feature=fast
NodeName=b[1-2] CPUs=4 Gres=gpu:2 State=DRAIN
PartitionName=DEFAULT MaxTime=2-0 DefMemPerCPU=2048 State=UP
PartitionName=short Nodes=a[1-2],b1 PriorityTier=10 OverSubscribe=NO AllowAccounts=physics
PartitionName=long Nodes=ALL Default=YES QOS=low \
TRESBillingWeights="CPU=1.0,Mem=0.25G,GRES/gpu=8"
"""

WEIGHTS = """\
PriorityType=priority/multifactor
PriorityWeightFairshare=50000
PriorityWeightAge = 1000
priorityweightqos=2000
PriorityWeightTRES=CPU=1000,GRES/gpu=3000
"""

DUMP = """\
# To edit this file start with a cluster line for the new cluster
Cluster - 'small':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'science':Description='a:b=c':Organization='uni':Fairshare=60
Account - 'biology':Description='bio':Organization='uni':Fairshare=40:GrpTRES=cpu=6,gres/gpu=2
Parent - 'science'
Account - 'physics':Description='p':Organization='uni':Fairshare=2147483647:GrpTRESMins=cpu=9
Parent - 'physics'
User - 'ann':DefaultAccount='physics':Fairshare=3:MaxJobs=4:QOS='+high'
User - 'ben':DefaultAccount='physics':Fairshare=1
"""

QOS = """\
Name|Priority|GraceTime|Preempt|PreemptMode|Flags|UsageFactor|GrpTRES|MaxTRESPU|MaxJobsPU|MaxTRESPA
normal|0|00:00:00||||||||
low|10|00:00:30||cluster|DenyOnLimit,NoReserve|0.500000|cpu=12,gres/gpu=1||3|cpu=8
high|1000|00:00:00|low,normal|requeue||1.000000||cpu=4,node=2||
"""

ORGANIZATIONS = """\
[[organization]]
name = "Science & Co"
accounts = ["science"]
nodes = ["a[1-2]"]
[[organization]]
name = "biology"
accounts = ["biology"]
nodes = ["b1"]
"""

HEADER = "JobIDRaw|Account|User|Partition|QOS|Submit|Start|ElapsedRaw|AllocCPUS|State|Timelimit"


def write_site(folder: Path) -> None:
    """Writes all files of the site."""
    for name, text in (
        ("slurm.conf", SLURM_CONF),
        ("weights.conf", WEIGHTS),
        ("dump", DUMP),
        ("qos", QOS),
        ("who.toml", ORGANIZATIONS),
    ):
        (folder / name).write_text(text)
