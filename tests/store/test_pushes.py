"""What was written to Slurm can always be found and put back."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from shapleyprio.store import ManagedValue, NewPush, Push, PushState, Transaction
from tests.store.examples import BEGIN, new_push

if TYPE_CHECKING:
    from shapleyprio.store import Store


def push(number: int, new: NewPush, state: PushState, note: str = "") -> Push:
    return Push(**asdict(new), number=number, state=state, note=note)


def settled(rows: Transaction, new: NewPush, state: PushState) -> int:
    (number,) = rows.pushes.plan([new])
    rows.pushes.settle({number: (state, "")})
    return number


def qos(new: int, at: int = BEGIN, target: str = "physics") -> NewPush:
    return new_push(target, new, at=at, channel="qos")


def test_a_push_is_planned_and_then_settled(store: Store) -> None:
    first, second = new_push("1"), new_push("2")
    with store.cluster("c").transaction() as rows:
        assert rows.pushes.plan([first, second]) == [1, 2]
        assert rows.pushes.plan([]) == []
        assert rows.pushes.open_pushes() == [
            push(1, first, PushState.PLANNED),
            push(2, second, PushState.PLANNED),
        ]
        rows.pushes.settle({1: (PushState.APPLIED, ""), 2: (PushState.REFUSED, "job is gone")})
        rows.pushes.settle({})
        assert rows.pushes.open_pushes() == []
        assert rows.pushes.latest() == [
            push(2, second, PushState.REFUSED, "job is gone"),
            push(1, first, PushState.APPLIED),
        ]
        assert rows.pushes.latest(key="1") == [push(1, first, PushState.APPLIED)]
        assert rows.pushes.plan([new_push("3")]) == [3]


def test_however_many_pushes_fared_alike_each_keeps_what_became_of_it(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        numbers = rows.pushes.plan([new_push(str(job)) for job in range(120)])
        fates = {
            number: (PushState.APPLIED, "")
            if number % 2
            else (PushState.UNCONFIRMED, f"reads {number % 50}")
            for number in numbers[:-1]
        }
        rows.pushes.settle(fates)
        assert {item.number: (item.state, item.note) for item in rows.pushes.latest(limit=200)} == {
            **fates,
            numbers[-1]: (PushState.PLANNED, ""),
        }


def test_managed_values_hold_the_original_and_what_we_wrote(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.pushes.plan([new_push("1", 5)])
        settled(rows, new_push("1", 6), PushState.REFUSED)
        settled(rows, new_push("1", 5), PushState.APPLIED)
        rows.pushes.plan([qos(8)])
        assert rows.pushes.managed_values("nice") == {"1": ManagedValue(100, (6, 5))}
        assert rows.pushes.managed_values("qos") == {"physics": ManagedValue(100, (8,))}
        assert rows.pushes.managed_values("site_factor") == {}


def test_what_was_written_before_a_new_asked_value_may_still_stand_at_tasks(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.pushes.plan([new_push("1", 5), new_push("1", 100), new_push("1", 6)])
        rows.pushes.plan([replace(new_push("1", 7), original=50, old=50)])
        assert rows.pushes.managed_values("nice") == {"1": ManagedValue(50, (5, 6, 7))}


def test_the_mark_stays_when_the_asked_value_stands_again(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        settled(rows, new_push("1", 5), PushState.APPLIED)
        settled(rows, new_push("1", 100), PushState.APPLIED)
        assert rows.pushes.managed_values("nice") == {"1": ManagedValue(100, (5, 100))}


def test_a_value_inherited_from_an_array_is_remembered(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.pushes.plan([replace(new_push("2", 7), old=5)])
        assert rows.pushes.managed_values("nice") == {"2": ManagedValue(100, (5, 7))}


def test_marks_of_jobs_that_are_gone_are_forgotten(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.pushes.plan([new_push("1"), new_push("2"), qos(8)])
        assert rows.pushes.prune_managed_values("nice", {"2", "3"}) == 1
        assert set(rows.pushes.managed_values("nice")) == {"2"}
        assert set(rows.pushes.managed_values("qos")) == {"physics"}


def test_old_settled_pushes_go_and_their_marks_stay(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        settled(rows, new_push("1", 1), PushState.APPLIED)
        rows.pushes.plan([new_push("1", 2)])
        settled(rows, new_push("1", 3, at=BEGIN + 99), PushState.APPLIED)
        assert rows.prune_history(BEGIN + 99, pushes_before=BEGIN + 99) == 1
        assert [item.new for item in rows.pushes.latest()] == [3, 2]
        assert rows.pushes.managed_values("nice") == {"1": ManagedValue(100, (1, 2, 3))}


def test_the_number_of_a_pruned_push_is_not_used_again(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        settled(rows, new_push("2"), PushState.APPLIED)
        settled(rows, new_push("2"), PushState.APPLIED)
        assert rows.prune_history(BEGIN + 99, pushes_before=BEGIN + 99) == 1
        assert rows.pushes.plan([new_push("3")]) == [3]


def test_long_reasons_are_cut(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        (number,) = rows.pushes.plan([replace(new_push("1"), reason="r" * 900)])
        rows.pushes.settle({number: (PushState.REFUSED, "n" * 900)})
        (item,) = rows.pushes.latest()
    assert (len(item.reason), len(item.note)) == (500, 500)
