"""The standings that a cycle stores, and its ranks in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shapleyprio.common.wording import signed_duration
from shapleyprio.daemon.ranking.observation import Observation
from shapleyprio.fairness.rule import Ranking
from shapleyprio.fairness.situation import Situation
from shapleyprio.store import StandingRow


def standing_rows(
    cycle: int,
    situation: Situation,
    ranking: Ranking,
    points: Mapping[str, int],
    observation: Observation,
    all_parts: int,
    parents: Mapping[str, str],
) -> list[StandingRow]:
    """Returns one row for each organization, in the order of the configuration.

    Args:
        cycle: its number.
        situation: what each organization gave and got.
        ranking: of the same organizations.
        points: organization -> priority points.
        observation: the cluster.
        all_parts: of all jobs, whoever's, completed by then, of any age.
        parents: organization -> its parent, of those that have one.
    """
    waiting, owned = observation.waiting_jobs(), observation.owned_processors()
    scores = ranking.scores
    return [
        StandingRow(
            cycle=cycle,
            organization=item.name,
            t=situation.t,
            contribution=ranking.contributions[item.name],
            utility=item.utility,
            score=scores[item.name],
            priority=points[item.name],
            pending=waiting.get(item.name, 0),
            running=observation.running.get(item.name, 0),
            processors=owned.get(item.name, 0),
            parts=item.got.rate,
            reason=ranking.reasons[item.name],
            all_parts=all_parts,
            parent=parents.get(item.name),
        )
        for item in situation.organizations
    ]


def explanations(rows: Iterable[StandingRow], ranking: Ranking) -> dict[str, str]:
    """Returns organization -> its rank and why it has it, in words for the record of writes.

    Args:
        rows: one for each organization.
        ranking: of the same organizations. Where its scores are not the balances, its own words
            say why.
    """
    order = ranking.order
    ranks = {name: rank for rank, name in enumerate(order, start=1)}
    return {
        row.organization: f"rank {ranks[row.organization]} of {len(order)}, {_why(row)}"
        for row in rows
    }


def _why(row: StandingRow) -> str:
    if row.score != row.balance:
        return row.reason
    return f"balance {signed_duration(row.balance_per_part or 0)}"
