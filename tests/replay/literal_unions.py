"""Policies where organizations stand together in unions, word for word as they are defined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import chain, permutations, product

from shapleyprio.replay.workloads.workload import Workload
from tests.replay import literal
from tests.replay.literal import Coalition, CoalitionSchedule, Outcome, Pick, Value, Values

Unions = Mapping[int, Coalition]
"""The number of a union -> its members."""


def unions_within(workload: Workload, coalition: Coalition) -> Unions:
    """The unions of a coalition's members; of whom nobody is in it, it has none."""
    assert workload.unions is not None
    found: dict[int, set[int]] = {}
    for u in sorted(coalition):
        found.setdefault(workload.unions[u], set()).add(u)
    return {number: frozenset(members) for number, members in sorted(found.items())}


@cache
def orderings_of(blocks: tuple[Coalition, ...]) -> list[tuple[int, ...]]:
    """All orderings in which the unions stay together."""
    return [
        tuple(chain.from_iterable(inside))
        for order in permutations(blocks)
        for inside in product(*map(permutations, order))
    ]


def owen(workload: Workload, coalition: Coalition, v: Value) -> dict[int, Fraction]:
    """The Owen values as means over orderings (Owen 1977)."""
    orderings = orderings_of(tuple(unions_within(workload, coalition).values()))
    return {u: literal.eq_2(u, orderings, v) for u in sorted(coalition)}


def union_first(
    workload: Workload,
    coalition: Coalition,
    balances: Callable[[], Mapping[int, Fraction]],
    *,
    reverse: bool = False,
) -> Pick:
    """The union with the largest balance of all its members, then the member with the largest; or
    just the other way round.
    """
    unions = unions_within(workload, coalition)
    known = cache(balances)

    def pick(waiting: Sequence[int]) -> int:
        if len(waiting) == 1:
            return waiting[0]
        balance = known()
        of = {u: number for number, members in unions.items() for u in members}
        order = sorted(
            waiting,
            key=lambda u: (-sum(balance[v] for v in unions[of[u]]), of[u], -balance[u], u),
        )
        return order[-1 if reverse else 0]

    return pick


def ref(workload: Workload) -> Outcome:
    """Fig. 1 of SPAA 2013 with Owen values, every coalition serving first a union."""
    grand = frozenset(range(len(workload.organizations)))
    schedules = ref_schedules(workload)
    values = Values(schedules, workload.window.length)
    return Outcome(
        schedules[grand].starts,
        [schedules[grand].utility(u, workload.window.length) for u in sorted(grand)],
        list(owen(workload, grand, values).values()),
    )


def rand(workload: Workload, orderings: Sequence[Sequence[int]]) -> Outcome:
    """Fig. 6 for orderings in which unions stay together."""
    grand = frozenset(range(len(workload.organizations)))
    prefixes = {frozenset(o[:n]) for o in orderings for n in range(len(o) + 1)}
    simplified = {c: CoalitionSchedule(workload, c) for c in prefixes}
    schedule = CoalitionSchedule(workload, grand)
    for t in literal.moments(workload, [*simplified.values(), schedule]):
        for other in simplified.values():
            other.decide(t, literal.first_come(other))
        v = Values(simplified, t)

        def balances(v: Value = v, t: int = t) -> dict[int, Fraction]:
            return {u: literal.eq_2(u, orderings, v) - schedule.utility(u, t) for u in grand}

        schedule.decide(t, union_first(workload, grand, balances))
    return literal.outcome(schedule, partial(literal.eq_2, orderings=orderings), simplified)


def ref_schedules(
    workload: Workload,
    every_moment: Iterable[int] | None = None,
    make: Callable[[Workload, Coalition], CoalitionSchedule] | None = None,
) -> dict[Coalition, CoalitionSchedule]:
    """The schedules of all coalitions; `make` begins those of other kinds."""
    grand = frozenset(range(len(workload.organizations)))
    schedules = {c: (make or CoalitionSchedule)(workload, c) for c in literal.subsets(grand)}
    for t in every_moment or literal.moments(workload, schedules.values()):
        v = Values(schedules, t)
        for schedule in schedules.values():
            schedule.decide(t, by_owen(workload, schedule, v, t))
    return schedules


def by_owen(
    workload: Workload, schedule: CoalitionSchedule, v: Value, t: int, *, reverse: bool = False
) -> Pick:
    def balances() -> dict[int, Fraction]:
        shares = owen(workload, schedule.members, v)
        return {u: share - schedule.utility(u, t) for u, share in shares.items()}

    return union_first(workload, schedule.members, balances, reverse=reverse)
