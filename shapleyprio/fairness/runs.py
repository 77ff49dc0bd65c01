"""From accounting records to runs: which processors worked for whom, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from shapleyprio.common.records import record


def split(total: int, nodes: Sequence[str], sizes: Mapping[str, int]) -> dict[str, int]:
    """Splits processors over nodes in proportion to the nodes' sizes, by largest remainder.

    No node gets more than its size, unless the run holds more than all of them have (a node
    shrank, or Slurm shares its processors). Among equal remainders the first node gets more, so
    that the same arguments always give the same split.

    Args:
        total: processors of the run.
        nodes: that it runs on, at least one.
        sizes: node -> its processors; a node that is not there counts as large as an equal part,
            so that the parts are equal where nothing is known.

    >>> split(132, ["large", "small"], {"large": 128, "small": 4})
    {'large': 128, 'small': 4}
    >>> split(5, ["a", "b", "c"], {})
    {'a': 2, 'b': 2, 'c': 1}
    """
    if len(nodes) == 1:
        return {nodes[0]: total}
    equal = -(-total // len(nodes))
    weights = [sizes.get(node, equal) for node in nodes]
    everything = sum(weights)
    if not everything:
        weights, everything = [1] * len(nodes), len(nodes)
    parts, remainders = zip(
        *(divmod(total * weight, everything) for weight in weights), strict=True
    )
    most = sorted(range(len(nodes)), key=lambda place: -remainders[place])
    more = set(most[: total - sum(parts)])
    return {node: parts[place] + (place in more) for place, node in enumerate(nodes)}


UNFINISHED_STATES = frozenset(
    {"PENDING", "RUNNING", "SUSPENDED", "REQUEUE_HOLD", "STOPPED", "CONFIGURING"}
)
"""States in which a record's end, if it shows one, is not final."""


@record
class JobRecord:
    """One row of Slurm's accounting: one execution of a job, or its wait for one.

    Attributes:
        job_id: Slurm's own number of the job (an array's task and a component of a
            heterogeneous job have one each).
        label: the name users know it by, such as ``33_4`` or ``120+1``.
        account, user, partition: as accounted.
        submit, start, end: seconds since the epoch; None where not known yet.
        eligible: second from which it could start; None where not known, as while it is held,
            waits for another job, or its array runs as many tasks as it may. It may lie ahead,
            where the job is to begin later or was requeued.
        limit: seconds it may execute; None where unlimited or not known.
        elapsed: seconds executed so far, suspension left out; of a job that runs as of when
            anything else of its record last changed.
        suspended: seconds spent suspended so far.
        state: Slurm's word, without additions (``CANCELLED``, not ``CANCELLED by 0``).
        nodes: that it got, in the order of their names; none if it has not started.
        processors: how many (in the configured weight) it holds on all of them together.
    """

    job_id: int
    label: str
    account: str
    user: str
    partition: str
    submit: int
    eligible: int | None
    start: int | None
    end: int | None
    limit: int | None
    elapsed: int
    suspended: int
    state: str
    nodes: tuple[str, ...]
    processors: int


class RunKey(NamedTuple):
    """Identifies one execution on a cluster: a requeued job keeps its id."""

    job_id: int
    submit: int
    start: int


@record
class Run:
    """One execution of a job, as the theory sees it.

    Attributes:
        key: identity on its cluster.
        label, account, user, state: as accounted.
        partition: where it ran; empty where that is not known.
        release: second from which it could start, such as the end of a hold, or its submission
            where that is not known; not after its start.
        limit: seconds it may execute; None where unlimited or not known.
        begin: second at which the first unit-size part was executed.
        end: second after the last one; None until it is finished.
        paused_at: second after the last one so far; None while it is not suspended.
        processors: node -> processors it holds there.
        counted: whether Slurm said how many it holds on each node; otherwise only their sum is
            known, and they are split in proportion to the nodes' sizes.
    """

    key: RunKey
    label: str
    account: str
    user: str
    partition: str = ""
    state: str
    release: int
    limit: int | None
    begin: int
    end: int | None
    paused_at: int | None = None
    processors: Mapping[str, int]
    counted: bool = False

    @property
    def array_job_id(self) -> int:
        """The id of the array that the job is a task of, as in the label ``33_4``; else its own."""
        array, _, task = self.label.partition("_")
        return int(array) if task and array.isdigit() else self.key.job_id

    @property
    def last_event(self) -> int:
        """The last second at which anything has become of it."""
        return max(self.begin, self.end or 0, self.paused_at or 0)


def run_of(record: JobRecord, sizes: Mapping[str, int]) -> Run | None:
    """Returns the run of a record, or None for a job that got no processors.

    Its processors are split over its nodes in proportion to their sizes (node -> processors).

    A suspended job executes nothing and gives its processors up; accounting has for how long,
    not when. A run that started at s, was suspended for S seconds in all and ended at e counts as
    [s + S, e): the executed parts as the last ones, which is what any pause makes of those after
    it and never worth more than they were. While suspended it counts as [s, s + executed). The
    answer depends on the record alone, so the final record gives the final answer.

    A job that is resized has a record for each size. The later ones have the job's start, and were
    submitted when it was resized.
    """
    if record.start is None or not (record.nodes and record.processors):
        return None
    begin, paused_at = max(record.start, record.submit), None
    end = None if record.state in UNFINISHED_STATES else record.end
    if record.state == "SUSPENDED":
        paused_at = record.start + record.elapsed
    elif record.suspended:
        begin += record.suspended
    if end is not None:
        begin = min(begin, end)
    release = record.submit if record.eligible is None else max(record.submit, record.eligible)
    return Run(
        key=RunKey(record.job_id, record.submit, record.start),
        label=record.label,
        account=record.account,
        user=record.user,
        partition=record.partition,
        state=record.state,
        release=min(release, record.start),
        limit=record.limit,
        begin=begin,
        end=end,
        paused_at=paused_at,
        processors=split(record.processors, record.nodes, sizes),
    )
