"""The channel that writes the priority of QOS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from shapleyprio.fairness.scale import Scale
from shapleyprio.slurm.channels.base import Channel, Claims, PriorityTarget
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.layout import SHORTEST_CALC_PERIOD, Layout, is_raw
from shapleyprio.slurm.port import PendingJob, Slurm


class Qos(Channel):
    """The priority of one QOS for each organization: one write, however many jobs wait."""

    name = "qos"
    written = "the priority of one QOS for each organization"
    called = "priority of its QOS"
    carrier = "QOS"
    smallest = 0
    largest = 2**31 - 1
    admin_level = "Administrator"
    factor = "QOS"

    def targets(
        self,
        slurm: Slurm,
        pending: Sequence[PendingJob],  # noqa: ARG002 - jobs do not carry it
        claims: Claims,
    ) -> list[PriorityTarget]:
        """Returns the claimed QOS."""
        return [
            PriorityTarget.named(qos, claims.qos[qos], priority)
            for qos, priority in slurm.qos_priorities().items()
            if qos in claims.qos
        ]

    def values(self, slurm: Slurm, keys: Collection[str]) -> Mapping[str, int | None]:  # noqa: ARG002 - it reads all
        """Reads the priorities of all QOS."""
        return dict(slurm.qos_priorities())

    def key_of(self, job: PendingJob) -> str:
        """Returns the job's QOS."""
        return job.qos

    def value(self, original: int, points: int) -> int:  # noqa: ARG002 - it is ours alone
        """Returns the points."""
        return points

    def step_in_points(self, layout: Layout, scale: Scale, organizations: int) -> int:
        """Returns a step's points after Slurm's normalization.

        A QOS's priority is divided by the largest of all QOS and multiplied by PriorityWeightQOS.
        """
        weight = layout.settings.weights.get("QOS", 0)
        if is_raw(layout.settings.flags, "NO_NORMAL_QOS"):
            return weight * scale.step
        largest = max(layout.qos_priorities.values(), default=0)
        return weight * scale.step // max(scale.points(organizations - 1), largest)

    def blocked(self, layout: Layout) -> Finding | None:
        """Demands a weight."""
        if layout.settings.weights.get("QOS"):
            return None
        return Finding(
            Severity.ERROR,
            "PriorityWeightQOS",
            "is 0: the priority of a QOS has no effect",
            "set PriorityWeightQOS=1 and PriorityFlags=NO_NORMAL_QOS in slurm.conf, "
            "or choose another push.channel",
        )

    @property
    def strict_remedy(self) -> str:
        """Other weights, or no normalization of ours."""
        without = "set PriorityFlags=NO_NORMAL_QOS with PriorityWeightQOS=1"
        return f"{super().strict_remedy}, or {without}"

    def demands(self, layout: Layout, claims: Claims) -> Iterator[Finding]:
        """Demands that every QOS is there, and that priorities are computed often."""
        for qos, organization in claims.qos.items():
            if qos not in layout.qos_priorities:
                near = get_close_matches(qos, layout.qos_priorities, n=1)
                hint = f"did you mean {near[0]!r}, or should it be added: " if near else "make it: "
                yield Finding(
                    Severity.ERROR,
                    f"organization {organization}",
                    f"Slurm has no QOS {qos}",
                    f"{hint}sacctmgr add qos {qos}",
                )
        period = layout.settings.calc_period_seconds
        if period > SHORTEST_CALC_PERIOD:
            yield Finding(
                Severity.WARNING,
                "PriorityCalcPeriod",
                f"is {period} s: pending jobs follow the priority of their QOS only that often",
                "set PriorityCalcPeriod=00:01:00 in slurm.conf",
            )

    def stray_jobs(self, pending: Iterable[PendingJob], claims: Claims) -> Iterator[Finding]:
        """Counts jobs of an organization under another QOS than its own."""
        own = {organization: qos for qos, organization in claims.qos.items()}
        strays: Counter[tuple[str, str]] = Counter()
        for job in pending:
            name = claims.of(job)
            if own.get(name) not in {None, job.qos}:
                strays[name, job.qos] += 1
        for (name, qos), count in strays.items():
            yield Finding(
                Severity.WARNING,
                f"organization {name}",
                f"{count} of its pending jobs are under QOS {qos} and do not get its priority",
                f"sacctmgr modify account ACCOUNT set qos={own[name]} defaultqos={own[name]}",
            )
