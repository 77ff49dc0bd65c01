"""An audit's results as values that JSON knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from shapleyprio.replay.audit.auditing import Assessed, Audit, Period
from shapleyprio.replay.audit.guarantees import Guarantees
from shapleyprio.replay.audit.stability import Coalition, GoingFirst, Stability
from shapleyprio.replay.results import as_float, as_json
from shapleyprio.replay.workloads.log import Log
from shapleyprio.store import UserAfterEnd

OWNERS_UNKNOWN = "the log does not say on whose nodes its jobs ran"


def audit_as_json(log: Log, audit: Audit, after_end: Sequence[UserAfterEnd] = ()) -> dict[str, Any]:
    """Returns all results: those of a replay of the schedules, and the audit's own.

    Args:
        log: that was read.
        audit: what was found.
        after_end: users of jobs that continued after their end, most first.

    Sums of part-seconds and processor-seconds are integers of any size, exact; ratios are floats.
    """
    names = audit.workload.organizations
    found = as_json(log, audit.workload, [assessed.result for assessed in audit.schedules])
    for policy, assessed in zip(found["policies"], audit.schedules, strict=True):
        _complete(policy, audit, assessed)
    return {
        **found,
        "reference": audit.reference.result.schedule.policy,
        "orderings": audit.orderings,
        "unknown_starts": audit.unknown_starts,
        "after_end": [asdict(one) for one in after_end],
        "going_first": [_going_first(names, one) for one in audit.going_first],
        "guarantees": {
            policy: [
                {"name": name, **_guarantees(one)} for name, one in zip(names, found, strict=True)
            ]
            for policy, found in audit.guarantees.items()
        },
        "carried": None if audit.carried is None else _carried(names, audit.carried),
        "periods": [_period(names, period) for period in audit.periods],
        "owners_unknown": OWNERS_UNKNOWN if audit.carried is None else None,
        "stability": [
            {
                "policy": assessed.result.schedule.policy,
                **_stability(names, assessed.stability),
            }
            for assessed in audit.schedules
        ],
    }


def _complete(policy: dict[str, Any], audit: Audit, assessed: Assessed) -> None:
    """Adds to what a replay says of a policy what the audit knows of organizations and unions."""
    drifts = assessed.result.drifts
    assert drifts is not None
    for u, organization in enumerate(policy["organizations"]):
        organization["drift"] = float(drifts[u])
    policy["unions"] = [
        {"parent": parent, "drift": float(drift)}
        for parent, drift in audit.of_unions(drifts).items()
    ]


def _carried(names: Sequence[str], matrix: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    return [
        {
            "jobs_of": name,
            "processor_seconds": dict(zip(names, row, strict=False)),
            "on_nobodys_nodes": row[-1],
        }
        for name, row in zip(names, matrix, strict=True)
    ]


def _period(names: Sequence[str], period: Period) -> dict[str, Any]:
    return {
        "start": period.start,
        "length": period.end - period.start,
        "organizations": [
            {
                "name": name,
                "used": period.used[u],
                "contributed": None if period.contributed is None else period.contributed[u],
                "utility": period.utilities[u],
                "contribution": None if period.contributions is None else period.contributions[u],
            }
            for u, name in enumerate(names)
        ],
    }


def _going_first(names: Sequence[str], found: GoingFirst) -> dict[str, Any]:
    return {
        "name": names[found.organization],
        "brings": float(found.brings),
        "uses": float(found.uses),
        "came": found.came,
        "went_first": found.went_first,
    }


def _guarantees(found: Guarantees) -> dict[str, Any]:
    counts = {name: getattr(found, name) for name in ("asked", "kept", "broken")}
    return counts | {name: as_float(getattr(found, name)) for name in ("late", "waited", "alone")}


def _stability(names: Sequence[str], found: Stability) -> dict[str, Any]:
    return {
        "coalitions": found.coalitions,
        "gaining": found.gaining,
        "strongest": _coalition(names, found.strongest),
        "strongest_relative": _coalition(names, found.strongest_relative),
        "alone": [_coalition(names, alone) for alone in found.organizations],
    }


def _coalition(names: Sequence[str], coalition: Coalition | None) -> dict[str, Any] | None:
    if coalition is None:
        return None
    return {
        "members": [names[u] for u in coalition.members],
        "value": coalition.alone,
        "utility": coalition.got,
        "gain": coalition.gain,
        "relative_gain": as_float(coalition.relative_gain),
        "earlier": as_float(coalition.earlier),
        "earlier_if_fair": as_float(coalition.earlier_if_fair),
    }
