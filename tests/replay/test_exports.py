"""Exports that were damaged or changed, or come from somewhere else, and what is in each row."""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import pytest

from shapleyprio.common.errors import ReplayError
from shapleyprio.fairness.pool import Stay
from shapleyprio.fairness.tenure import Tenure
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.clusters import consortium_named
from shapleyprio.replay.logs.exports.anonymizing import Anonymizer
from shapleyprio.replay.logs.exports.reading import read_export
from shapleyprio.replay.logs.exports.recognizing import MANIFEST
from shapleyprio.replay.logs.exports.records import (
    LAST_SECOND,
    ExportRecord,
    FreeText,
    Manifest,
    Named,
    Word,
)
from shapleyprio.replay.logs.exports.rows import PARTS, ExportSpan
from shapleyprio.replay.logs.exports.writing import export
from shapleyprio.replay.logs.reading import read_log
from shapleyprio.replay.logs.window import known_span
from shapleyprio.store import CapacityRow, NodeRow, PauseRow, Store
from tests.daemon.consortium import NAME
from tests.daemon.drift.conftest import FLOOD, remember, run
from tests.store.examples import BEGIN, cycle, exception, standing, work_after_end

Members = dict[str, bytes]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}", create=True) as store:
        fill(store)
        yield store


def fill(store: Store) -> None:
    """Puts something of nearly each kind into a store."""
    remember(store, *FLOOD)
    with store.cluster(NAME).transaction() as rows:
        rows.history.save_standings([standing(1, name) for name in ("biology", "physics")])
        rows.history.save_cycle(cycle(1))
        rows.observed.put_layout(
            [NodeRow(name="n", since=0, processors=2, partitions=("a", "b"))], ()
        )
        both = CapacityRow(organization="physics", since=0, processors={("a", "b"): 2, (): 1})
        rows.observed.correct_capacities((), [both], 0)
        rows.ledger.save_tenures({("node", "n"): [Tenure("node", "n", "physics", None, None)]})
        rows.runs.save_work_after_end([work_after_end()], asked_until=BEGIN + 50)
        pause = PauseRow(since=BEGIN, user="ann", reason="a move", keep=True)
        rows.orders.put_pauses([replace(pause, since=BEGIN - 60, until=BEGIN - 50), pause])
        first = exception(7, passed={"biology": 3, "": 1})
        rows.orders.put_exceptions([first, replace(first, job_id=8, ended=BEGIN + 9)])


@pytest.fixture
def file(store: Store, tmp_path: Path) -> Path:
    file = tmp_path / "past.tar.gz"
    export(file, [store.cluster(NAME)], ["physics", "biology"], ExportSpan())
    return file


def members(file: Path) -> Members:
    with tarfile.open(file) as tar:
        return {one.name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]


def pack(file: Path, contents: Mapping[str, bytes]) -> None:
    with tarfile.open(file, "w:gz") as tar:
        for name, content in contents.items():
            item = tarfile.TarInfo(name)
            item.size = len(content)
            tar.addfile(item, io.BytesIO(content))


def with_manifest(contents: Members, **changes: Any) -> Members:
    manifest = json.loads(contents[MANIFEST]) | changes
    return {**contents, MANIFEST: json.dumps(manifest).encode()}


def with_rows(contents: Members, name: str, *rows: Mapping[str, Any]) -> Members:
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    counts = json.loads(contents[MANIFEST])["rows"] | {name: len(rows)}
    return with_manifest({**contents, name: lines}, rows=counts)


def with_clusters(contents: Members, *clusters: str) -> Members:
    """With the node as one of each of these clusters, one after the other."""
    (ledger,) = json.loads(contents[MANIFEST])["ledgers"]
    ledgers = [{**ledger, "name": name} for name in dict.fromkeys(clusters)]
    (node,) = rows_of(contents, "nodes.jsonl")
    rows = [{**node, "cluster": name} for name in clusters]
    return with_manifest(with_rows(contents, "nodes.jsonl", *rows), ledgers=ledgers)


def rows_of(contents: Members, name: str = "runs.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in contents[name].splitlines()]


def refused(file: Path) -> str:
    """In one line, that names the file."""
    with pytest.raises(LogError) as refused:
        read_log(str(file), format="export")
    message = str(refused.value)
    assert message.startswith(f"{file}: ")
    assert "\n" not in message
    assert len(message) < 400
    return message


def test_all_that_was_exported_comes_back(store: Store, file: Path) -> None:
    found = read_export(str(file))
    assert found.manifest.organizations == ("physics", "biology")
    with Store.open(found.url) as copy:
        views = (store.cluster(NAME).reading(), copy.cluster(NAME).reading())
        with views[0] as known, views[1] as view:
            for name, part in PARTS.items():
                rows = list(part.read(view, ExportSpan()))
                assert rows == list(part.read(known, ExportSpan())), name
                assert rows or name in ("accounts.jsonl", "corrections.jsonl", "steering.jsonl")
    assert read_export(str(file)) is found  # not read again


def test_what_no_export_can_hold_is_refused_with_where_and_what(
    store: Store, tmp_path: Path
) -> None:
    remember(store, until=LAST_SECOND)
    with pytest.raises(
        ReplayError, match=rf"{NAME}: the store .*: manifest\.json: complete_until: "
    ):
        export(tmp_path / "past", [store.cluster(NAME)], ["physics"], ExportSpan())
    assert not (tmp_path / "past").exists()


def test_the_longest_limit_that_slurm_can_have_is_in_an_export(
    store: Store, tmp_path: Path
) -> None:
    """Whoever asks for it must not keep others from one."""
    longest = 60 * (2**32 - 3)
    remember(store, run(6, "physics", 0, 100, limit=longest))
    export(tmp_path / "past", [store.cluster(NAME)], ["physics"], ExportSpan())
    log = read_log(str(tmp_path / "past"))
    assert log.limit[log.job == 6].tolist() == [longest]


def test_the_layout_and_the_processors_are_those_of_the_store(file: Path) -> None:
    log = read_log(str(file))
    assert log.layout.nodes["n"].partitions == ("a", "b")
    assert log.organizations == ("physics", "biology")
    assert log.system_processors == 256


def test_the_clusters_of_a_pool_are_one_game_in_an_export_as_well(
    store: Store, tmp_path: Path
) -> None:
    clusters = (NAME, "c2")
    stay = Stay(pool="all", since=BEGIN, clusters=clusters, stale_after=60)
    remember(store, stay=stay)
    remember(store, *FLOOD[:3], cluster="c2", stay=stay)
    file = tmp_path / "pool"
    hidden = Anonymizer(b"k" * 16)
    ledgers = [store.cluster(name) for name in clusters]
    parents = {"physics": "biology"}
    made = export(file, ledgers, ["physics", "biology"], ExportSpan(), hidden, parents=parents)
    renamed = sorted(hidden.name("ledger", name) for name in clusters)
    assert made.games == renamed[:1]
    assert [one.name for one in made.ledgers] == renamed
    assert {one.stay.clusters for one in made.ledgers if one.stay} == {tuple(renamed)}
    with Store.open(read_export(str(file)).url) as copy:
        known, found = known_span(store, NAME), known_span(copy, hidden.name("ledger", NAME))
    assert (found.begin, found.end, len(found.ledgers)) == (known.begin, known.end, 2)
    log = read_log(str(file), clusters=renamed)
    consortium = consortium_named(log, log.organizations, log.parents)
    assert consortium.owned.tolist() == [2, 2]  # a processor at each cluster
    physics, biology = (hidden.name("organization", name) for name in ("physics", "biology"))
    assert consortium.parents == {physics: biology}
    assert {one.cluster: len(one.job) for one in log.clusters} == {
        hidden.name("ledger", name): jobs for name, jobs in zip(clusters, (5, 3), strict=True)
    }


def test_it_is_known_by_its_content_also_when_it_is_compressed_otherwise(
    file: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "past"
    plain.write_bytes(gzip.decompress(file.read_bytes()))
    assert read_log(str(plain)).format == "export"


@pytest.mark.parametrize("part", range(8))
def test_a_file_that_was_cut_short_is_refused(file: Path, part: int) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) * part // 8])
    refused(file)


def test_a_tar_that_was_cut_short_before_it_was_compressed_is_refused(file: Path) -> None:
    whole = gzip.decompress(file.read_bytes())
    for length in range(0, whole.rindex(b"}") + 1, 512):
        file.write_bytes(gzip.compress(whole[:length], mtime=length))
        assert any(words in refused(file) for words in ("it ends", "EOF while parsing"))


@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_is_found_wherever_it_is(file: Path, seed: int) -> None:
    whole, chance = file.read_bytes(), random.Random(seed)
    for _ in range(20):
        bit = chance.randrange(8 * 16, 8 * len(whole))  # behind the date and name in gzip's head
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        file.write_bytes(changed)
        refused(file)


def change(key: str, value: Any) -> Any:
    return lambda contents: with_rows(
        contents, "runs.jsonl", *({**row, key: value} for row in rows_of(contents))
    )


LONG_LINE = random.Random(1).randbytes(9 << 19).hex().encode()

CHANGES = {
    "extra field": (change("more", 1), "runs.jsonl, line 1: more: Extra inputs"),
    "text for a number": (change("job", "1"), "runs.jsonl, line 1: job: Input should be"),
    "too many processors": (change("nodes", {"n": 2**24}), "runs.jsonl, line 1: nodes.n"),
    "too many together": (change("nodes", {"n": 2**23, "m": 2**23}), "has more than 16,777,215"),
    "beyond 64 bits": (change("job", 2**70), "runs.jsonl, line 1: job"),
    "negative": (change("begin", -5), "runs.jsonl, line 1: begin"),
    "a number no JSON has": (change("begin", float("nan")), "runs.jsonl, line 1"),
    "another cluster": (change("cluster", "c9"), "rows of c9 where none can be"),
    "the same run twice": (
        lambda contents: with_rows(contents, "runs.jsonl", *rows_of(contents), *rows_of(contents)),
        "runs.jsonl: job 1 is listed twice, or out of order",
    ),
    "a cluster in two places": (
        lambda contents: with_clusters(contents, "c1", "c2", "c1"),
        "nodes.jsonl has rows of c1 where none can be",
    ),
    "fewer lines": (
        lambda contents: {**contents, "runs.jsonl": contents["runs.jsonl"].split(b"\n", 1)[1]},
        "runs.jsonl has 4 lines instead of 5",
    ),
    "no end": (
        lambda contents: {**contents, "runs.jsonl": contents["runs.jsonl"][:-1]},
        "its last line is cut short",
    ),
    "no JSON": (
        lambda contents: {**contents, "runs.jsonl": b"\x00\xff" * 9 + b"\n"},
        "runs.jsonl, line 1: Invalid JSON",
    ),
    "deep JSON": (
        lambda contents: {**contents, "runs.jsonl": b"[" * 10**6 + b"\n"},
        "runs.jsonl, line 1: Invalid JSON",
    ),
    "a missing file": (
        lambda contents: {name: text for name, text in contents.items() if name != "nodes.jsonl"},
        "nodes.jsonl is out of place",
    ),
    "another file": (lambda contents: {**contents, "more": b"x"}, "there is more after"),
    "a path": (
        lambda contents: {MANIFEST: contents[MANIFEST], "../runs.jsonl": b"x"},
        "runs.jsonl is out of place",
    ),
    "a later version": (
        lambda contents: with_manifest(contents, version=2),
        "is an export in version 2, and this release reads 1",
    ),
    "another format": (
        lambda contents: with_manifest(contents, format="diary"),
        "manifest.json: format",
    ),
    "an organization twice": (
        lambda contents: with_manifest(contents, organizations=["a", "a"]),
        "manifest.json: Value error, names an organization or a ledger twice",
    ),
    "an organization that no configuration may name": (
        lambda contents: with_manifest(contents, organizations=["a\x1b[2J"]),
        "manifest.json: organizations.0",
    ),
    "a cluster that is no name of a file": (
        lambda contents: with_clusters(contents, "c1\0"),
        "manifest.json: ledgers.0.name",
    ),
    "no ledger": (lambda contents: with_manifest(contents, ledgers=[]), "manifest.json: ledgers"),
    "a long line": (
        lambda contents: {**contents, "runs.jsonl": LONG_LINE},
        "line 1 has more than 8 MiB",
    ),
}


@pytest.mark.parametrize("changed", CHANGES)
def test_what_was_changed_is_refused_with_where_and_what(file: Path, changed: str) -> None:
    how, message = CHANGES[changed]
    pack(file, how(members(file)))
    assert message in refused(file)


def test_a_link_in_place_of_a_file_is_refused(file: Path) -> None:
    contents = members(file)
    with tarfile.open(file, "w:gz") as tar:
        for name, content in contents.items():
            item = tarfile.TarInfo(name)
            item.size = len(content)
            if name == "runs.jsonl":
                item.type, item.linkname, item.size = tarfile.SYMTYPE, "/etc/passwd", 0
            tar.addfile(item, io.BytesIO(content))
    assert "runs.jsonl is out of place" in refused(file)


def test_a_file_that_decompresses_to_far_more_than_a_log_is_refused(file: Path) -> None:
    whole = gzip.decompress(file.read_bytes())
    file.write_bytes(gzip.compress(whole + bytes(200 << 20)))
    assert "decompress to more than 100 times as many" in refused(file)


def test_what_claims_to_be_larger_than_it_is_ends_before(file: Path) -> None:
    item = tarfile.TarInfo(MANIFEST)
    item.size = 1 << 40
    head = item.tobuf(tarfile.GNU_FORMAT)
    file.write_bytes(gzip.compress(head + members(file)[MANIFEST]))
    assert "manifest.json has 1,099,511,627,776 bytes" in refused(file)


def models() -> set[type[ExportRecord]]:
    found: set[type[ExportRecord]] = set()
    coming: list[Any] = [Manifest, *(part.row for part in PARTS.values())]
    while coming:
        hint = coming.pop()
        if isinstance(hint, type) and issubclass(hint, ExportRecord) and hint not in found:
            found.add(hint)
            coming += get_type_hints(hint, include_extras=True).values()
        else:
            coming += [one for one in get_args(hint) if isinstance(one, type) or get_args(one)]
    return found


PLAIN = {"kind", "format", "rows"}
"""Fields whose texts are the format's own."""


def texts(hint: Any) -> Iterator[Any]:
    """The texts in a type, each as it is marked."""
    if hint is str or (get_args(hint) and get_args(hint)[0] is str and hint != dict[str, Any]):
        yield hint
        return
    marked = isinstance(hint, type(Annotated[str, 1]))
    for one in get_args(hint)[: 1 if marked else None]:
        yield from texts(one)


def test_every_text_in_an_export_is_a_name_or_a_word_of_slurm_or_ours() -> None:
    assert len(models()) > 10
    for model in models():
        for name, hint in get_type_hints(model, include_extras=True).items():
            for text in texts(hint) if name not in PLAIN and name in model.model_fields else ():
                named = any(isinstance(mark, Named | FreeText) for mark in get_args(text)[1:])
                assert named or text == Word, (model, name)


def test_names_of_one_kind_are_replaced_alike_and_those_of_two_kinds_are_not() -> None:
    hidden = Anonymizer(b"k" * 16)
    assert hidden.name("user", "ann") == Anonymizer(b"k" * 16).name("user", "ann")
    assert len({hidden.name(kind, "ann") for kind in ("user", "account", "node")}) == 3
    assert hidden.name("user", "ann") != Anonymizer(b"l" * 16).name("user", "ann")
    cluster, pool = hidden.name("ledger", "c1/gpu").split("/")
    assert (cluster, pool) == (hidden.name("cluster", "c1"), hidden.name("pool", "gpu"))


@pytest.mark.parametrize(("label", "rest"), [("33", ""), ("33_4", "_4"), ("33+1", "+1")])
def test_labels_follow_the_numbers_of_jobs(label: str, rest: str) -> None:
    hidden = Anonymizer(b"k" * 16)
    moved = int(hidden.name("job", "33")) - 33
    assert moved > 0
    assert hidden.name("job", label) == f"{33 + moved}{rest}"
    assert hidden.name("job", "33_secret") == str(33 + moved)
    assert hidden.name("job", "secret") == ""
