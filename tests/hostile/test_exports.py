"""Attacks by an export: whatever somebody wrote into it, it is read or refused in one line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.replay.errors import LogError, WorkloadError
from shapleyprio.replay.logs.clusters import consortium_named
from shapleyprio.replay.logs.exports.recognizing import MANIFEST
from shapleyprio.replay.logs.exports.rows import PARTS, ExportSpan
from shapleyprio.replay.logs.exports.writing import export
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.store import Store
from tests.daemon.consortium import NAME
from tests.examples import examples
from tests.replay.test_exports import Members, fill, members, pack

if TYPE_CHECKING:
    from pathlib import Path

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9), st.just(2**63)
)
VALUES = st.recursive(
    SCALARS,
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=3), one, max_size=3),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Members:
    """All that is in an export that is as it should be."""
    folder = tmp_path_factory.mktemp("good")
    file = folder / "good"
    with Store.open(f"sqlite:///{folder / 'store.db'}", create=True) as store:
        fill(store)
        export(file, [store.cluster(NAME)], ["physics", "biology"], ExportSpan())
    return members(file)


@settings(max_examples=examples(25))
@given(data=st.data())
def test_end_the_reader_of_exports_by_any_values(
    tmp_path_factory: pytest.TempPathFactory, good: Members, data: st.DataObject
) -> None:
    contents = dict(good)
    name = data.draw(st.sampled_from([MANIFEST, *PARTS]))
    rows = [json.loads(line) for line in contents[name].splitlines()] if name in PARTS else []
    changed: dict[str, Any] = json.loads(contents[MANIFEST]) if name == MANIFEST else {}
    if rows:
        changed = rows[data.draw(st.integers(0, len(rows) - 1))]
    place: Any = changed
    while isinstance(place, dict) and place:
        key = data.draw(st.sampled_from(sorted(place)))
        if not isinstance(place[key], dict) or data.draw(st.booleans()):
            place[key] = data.draw(VALUES)
            break
        place = place[key]
    lines = [json.dumps(row).encode() + b"\n" for row in rows]
    contents[name] = b"".join(lines) if name in PARTS else json.dumps(changed).encode()
    read_or_refused(tmp_path_factory.mktemp("export") / "log", contents)


def test_end_the_reader_of_exports_by_numbers_that_are_too_large(
    tmp_path: Path, good: Members
) -> None:
    numbers = 0
    for name in PARTS:
        row = json.loads((good[name].splitlines() or [b"{}"])[0])
        rest = good[name].splitlines(keepends=True)[1:]
        for key in [key for key, value in row.items() if type(value) is int or value is None]:
            for number in (2**63, -(2**63) - 1, 10**46):
                changed = json.dumps(row | {key: number}).encode() + b"\n"
                read_or_refused(tmp_path / "log", good | {name: b"".join([changed, *rest])})
                numbers += 1
    assert numbers > 80


def read_or_refused(file: Path, contents: Members) -> None:
    """An export with that in it is read, or refused in one line."""
    pack(file, contents)
    refused = ""
    try:
        log = read_log(str(file))
        consortium_named(log, log.organizations)
    except (LogError, WorkloadError) as error:
        refused = str(error)
    assert "\n" not in refused
    assert len(refused) < 1000
