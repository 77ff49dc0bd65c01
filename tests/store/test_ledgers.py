"""Ledger, tenures, watermark and lines quarantined."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.fairness.ledger import Entry, Ledger
from shapleyprio.fairness.tenure import Allocation, Tenures
from shapleyprio.fairness.worth import Moments
from shapleyprio.slurm.port import Malformed
from shapleyprio.store import Store
from tests.examples import examples
from tests.store.examples import BEGIN, watermark

HUGE = st.integers(-(10**46), 10**46)
MOMENTS = st.builds(Moments, HUGE, HUGE, HUGE)
NAME = st.sampled_from(["", "physics", "biology", "Physics"])
ENTRIES = st.dictionaries(st.tuples(NAME, NAME), st.builds(Entry, MOMENTS, MOMENTS))

DECADE = 10 * 365 * 86400


@settings(max_examples=examples(35))  # on each kind of database
@given(entries=ENTRIES)
def test_the_ledger_is_exactly_what_was_saved(
    shared: Store, entries: dict[tuple[str, str], Entry]
) -> None:
    with shared.cluster("of all examples").transaction() as rows:
        before = rows.ledger.entries() | {("kept", "kept"): Entry(Moments(1), Moments(2))}
        rows.ledger.save_entries(before)
        rows.ledger.save_entries(entries)
        assert rows.ledger.entries() == before | entries


def test_ten_years_of_a_hundred_thousand_processors_are_exact_to_the_unit(store: Store) -> None:
    ledger = Ledger(None)
    ledger.add(
        Allocation(
            "physics", "biology", 100_000, BEGIN + day * 86400 + 1, BEGIN + (day + 1) * 86400
        )
        for day in range(3650)
    )
    ledger.entries["physics", "physics"] = Entry(Moments(1, -1, 10**40), Moments(10**40 + 1))
    with store.cluster("c").transaction() as rows:
        rows.ledger.save_entries(ledger.entries)
    with store.cluster("c").reading() as view:
        again = Ledger(None, entries=view.ledger.entries())
    assert again.entries == ledger.entries
    assert abs(again.entries["physics", "biology"].total.second) > 2**64
    t = BEGIN + DECADE
    assert list(again.pairs(t)) == list(ledger.pairs(t))


def test_tenures_come_back_and_one_history_is_replaced_as_a_whole(store: Store) -> None:
    tenures = Tenures()
    tenures.observe("node", {"n1": "physics", "n2": "biology", "N1": "biology"}, BEGIN)
    tenures.observe("account", {"n1": "chemistry"}, BEGIN)
    with store.cluster("c").transaction() as rows:
        names = {(item.kind, item.name) for item in tenures}
        rows.ledger.save_tenures({name: tenures.of(*name) for name in names})
    tenures.observe("node", {"n1": "biology"}, BEGIN + 9)
    with store.cluster("c").transaction() as rows:
        rows.ledger.save_tenures({("node", "n1"): tenures.of("node", "n1")})
        again = rows.ledger.tenures()
    assert set(again) == set(tenures)
    assert again.holder("node", "n1", BEGIN + 8) == "physics"
    assert again.holder("node", "n1", BEGIN + 9) == "biology"
    assert again.holder("node", "N1", BEGIN) == "biology"
    assert again.holder("account", "n1", BEGIN) == "chemistry"


def test_progress_is_none_at_first_and_then_the_last_saved(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        assert rows.ledger.watermark() is None
        rows.ledger.save_watermark(watermark())
        rows.ledger.save_watermark(watermark(observed_until=BEGIN + 1, horizon=30 * 86400))
        assert rows.ledger.watermark() == watermark(observed_until=BEGIN + 1, horizon=30 * 86400)


def test_a_line_met_again_is_counted_and_not_kept_twice(store: Store) -> None:
    bad, worse = Malformed("sacct", "a|b", "two fields"), Malformed("sacct", "c", "one field")
    with store.cluster("c").transaction() as rows:
        assert rows.observed.quarantine([bad, bad, worse], BEGIN) == 2
        assert rows.observed.quarantine([bad], BEGIN + 60) == 0
        assert rows.observed.quarantine([], BEGIN + 60) == 0
        assert rows.observed.quarantined_count() == 2
        first, second = rows.observed.quarantined()
        assert (first.line, first.first_seen, first.last_seen, first.times) == (
            bad,
            BEGIN,
            BEGIN + 60,
            3,
        )
        assert (second.line, second.times) == (worse, 1)
        assert rows.observed.quarantined(limit=1) == [first]


def test_the_same_text_from_another_source_is_another_line(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        assert (
            rows.observed.quarantine([Malformed("sacct", "a", ""), Malformed("squeue", "a", "")], 0)
            == 2
        )


def test_lines_of_any_bytes_and_length_can_be_kept(store: Store) -> None:
    line = b"\xff\0\xc3\xa9".decode("utf-8", "surrogateescape") + "x" * 5000
    with store.cluster("c").transaction() as rows:
        rows.observed.quarantine([Malformed("sacct", line, "r" * 900)], BEGIN)
        rows.observed.quarantine([Malformed("sacct", line + "y", "r")], BEGIN)
        kept = rows.observed.quarantined()
    assert len(kept) == 2
    assert kept[0].line.text.startswith("\\udcff\\x00é")
    assert {len(item.line.text) for item in kept} == {2000}
    assert {len(item.line.reason) for item in kept} == {1, 500}
