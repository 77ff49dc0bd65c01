"""The preset `mosp-2007`: its cells, its rows and its tables."""

from __future__ import annotations

import pickle
import re
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from shapleyprio.lab.experiment.cells import ExperimentError, PresetParameters, Row
from shapleyprio.lab.papers.mosp import mosp_2007
from shapleyprio.lab.papers.mosp.algorithms import ALGORITHMS, Verdict, local, molba_2, verdict
from shapleyprio.lab.papers.mosp.cells import (
    BATCHES,
    LONGEST,
    Batch,
    instance_of,
    random_instance,
)
from shapleyprio.lab.papers.mosp.model import BatchJob, BatchSchedule, Instance, MospError
from shapleyprio.lab.papers.mosp.preset import SYSTEM_PROCESSORS, tables_of
from shapleyprio.replay import Window, deal, read_log
from tests.replay.traces import trace


def swf(directory: Path, jobs: list[tuple[int, int, int, int]]) -> Path:
    """A log of (release, processing time, processors, user), named like one of the preset's."""
    file = directory / "DAS2-fs1-2003-1.swf.gz"
    file.write_text(
        "".join(
            f"{number} {release} 0 {time} {width} -1 -1 {width} -1 -1 1 {user} 1 -1 -1 -1 -1 -1\n"
            for number, (release, time, width, user) in enumerate(jobs, start=1)
        )
    )
    return file


def rows_of_preset(**options: object) -> list[Row]:
    experiment = mosp_2007(PresetParameters({}, **options))  # type: ignore[arg-type]
    return [row for cell in experiment.cells for row in cell.run()]


# cells


def test_cells_have_names_of_their_own_that_fit_files_and_can_be_sent_elsewhere() -> None:
    cells = mosp_2007(
        PresetParameters({name: Path(name) for name in SYSTEM_PROCESSORS}, windows=2)
    ).cells
    names = [cell.name for cell in cells]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[\w.-]+", name) for name in names)
    assert [pickle.loads(pickle.dumps(cell)) for cell in cells] == list(cells)


def test_a_cell_gives_the_same_rows_again_and_another_seed_others() -> None:
    first, again, other = (
        rows_of_preset(windows=1, exhibits=["batches"], seed=seed) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_every_cell_gives_a_row_for_each_algorithm_with_the_same_columns() -> None:
    rows = rows_of_preset(windows=1)
    assert len({tuple(row) for row in rows}) == 1
    assert [row["algorithm"] for row in rows[: len(ALGORITHMS)]] == list(ALGORITHMS)


def test_exhibits_choose_what_is_run() -> None:
    assert {row["workload"] for row in rows_of_preset(exhibits=["figures"])} == {"figures"}
    assert len(mosp_2007(PresetParameters({}, windows=3, exhibits=["batches"])).cells) == 3 * len(
        BATCHES
    )


def test_an_unknown_exhibit_and_logs_that_are_not_there_are_refused() -> None:
    with pytest.raises(ExperimentError, match="has no exhibit 'table 1'; take some of figures"):
        mosp_2007(PresetParameters({}, exhibits=["table 1"]))
    with pytest.raises(ExperimentError, match="finds none of its logs; give one of LPC"):
        mosp_2007(PresetParameters({"other.swf": Path("other.swf")}, exhibits=["logs"]))


def test_what_is_missing_stands_in_the_notes() -> None:
    notes = "\n".join(mosp_2007(PresetParameters({})).notes)
    assert all(name.removesuffix(".swf.gz") in notes for name in SYSTEM_PROCESSORS)
    assert "measures nothing" in notes


# instances


def test_a_window_of_a_log_becomes_a_batch_of_the_jobs_released_in_it(tmp_path: Path) -> None:
    log = read_log(str(swf(tmp_path, [(0, 9, 1, 1), (5, 7, 2, 1), (6, 3, 9, 1), (20, 1, 1, 1)])))
    consortium = deal(log, 1, shares="uniform", processors=1, seed=0)
    instance, too_wide = instance_of(log, consortium, Window(start=2, length=10), 4)
    assert instance == Instance(1, 4, (BatchJob(0, 2, 7),))
    assert too_wide == 1


def test_a_window_without_a_job_that_fits_is_refused(tmp_path: Path) -> None:
    log = read_log(str(swf(tmp_path, [(0, 9, 8, 1)])))
    consortium = deal(log, 1, shares="uniform", processors=1, seed=0)
    with pytest.raises(MospError, match="fits on a cluster of 4 processors"):
        instance_of(log, consortium, Window(start=0, length=10), 4)


def test_every_organization_has_an_equal_part_of_the_logged_system(tmp_path: Path) -> None:
    log = swf(tmp_path, [(0, 9, 12, 1), (5, 7, 13, 2)])  # 64 processors // 5
    (cell,) = mosp_2007(PresetParameters({log.name: log}, windows=1, exhibits=["logs"])).cells
    row = cell.run()[0]
    assert (row["organizations"], row["processors"]) == (5, 12)
    assert (row["jobs"], row["too_wide"]) == (1, 1)


def drawn(batch: Batch) -> Instance:
    return random_instance(batch, Random("seed"))


def test_batches_are_what_they_are_called() -> None:
    def owners(kind: str) -> list[int]:
        instance = drawn(BATCHES[kind])
        return [len(instance.jobs_of(u)) for u in range(instance.organizations)]

    assert owners("even") == [40] * 5
    assert owners("zipf") == [88, 44, 29, 22, 17]
    assert owners("one owner") == [200, 0, 0, 0, 0]
    assert len(owners("two")) == 2
    assert len(owners("twenty")) == 20
    low = drawn(BATCHES["low"])
    assert not any(low.is_high(job) for job in low.jobs)
    assert any(drawn(BATCHES["zipf"]).is_high(job) for job in drawn(BATCHES["zipf"]).jobs)
    assert drawn(BATCHES["zipf"]).longest <= LONGEST < drawn(BATCHES["thin and long"]).longest


# promises


def test_the_paper_promises_what_it_says_and_no_more() -> None:
    low, high = (Instance(3, 2, (BatchJob(0, width, 1),)) for width in (1, 2))
    promised = {
        (name, kind): (judged.promised_ratio, judged.promised_alone)
        for kind, instance in (("low", low), ("high", high))
        for name in ALGORITHMS
        for judged in [verdict(name, local(instance), local(instance))]
    }
    assert promised == {
        ("local", "low"): (None, True),
        ("local", "high"): (None, True),
        ("molba-2", "low"): (3, True),
        ("molba-2", "high"): (None, False),
        ("molba-2-backfill", "low"): (3, True),
        ("molba-2-backfill", "high"): (None, False),
        ("molba-3", "low"): (4, True),
        ("molba-3", "high"): (4, True),
        ("molba-3-long", "low"): (4, True),
        ("molba-3-long", "high"): (4, True),
        ("unconstrained", "low"): (None, False),
        ("unconstrained", "high"): (None, False),
    }
    two = Instance(2, 2, (BatchJob(0, 2, 1),))
    assert verdict("molba-2", local(two), local(two)).promised_ratio == 3


def test_a_broken_promise_is_seen() -> None:
    instance = Instance(2, 2, (BatchJob(0, 1, 1), BatchJob(1, 1, 1)))
    alone = local(instance)
    late = BatchSchedule(instance, cluster=(0, 1), start=(0, 4))
    judged: Verdict = verdict("molba-2", late, alone)
    assert judged.ratio == judged.worst_to_alone == Fraction(5)
    assert judged.worse_off == 1
    assert judged.breaks_ratio
    assert judged.breaks_alone


# tables


def test_broken_promises_are_counted_in_the_tables() -> None:
    rows = rows_of_preset(windows=1, exhibits=["batches"])
    rows[1] |= {"breaks_ratio": 1, "breaks_alone": 1}
    ratio, alone = tables_of(rows)
    for table, count in ((ratio, "beyond"), (alone, "broken")):
        line = dict(zip(table.header, table.lines[1], strict=True))
        assert (line["algorithm"], line[count]) == ("molba-2", "1")


def test_the_counterexamples_stand_in_a_table_of_their_own() -> None:
    (table,) = tables_of(rows_of_preset(exhibits=["counterexamples"]))
    broken = {
        (line[0], algorithm)
        for line in table.lines
        for algorithm, found in zip(table.header[1:], line[1:], strict=True)
        if "broken" in str(found)
    }
    assert broken == {("cut at 3·LB", "molba-3"), ("backfilling", "molba-2-backfill")}


def test_the_figures_stand_beside_their_optima() -> None:
    (table,) = tables_of(rows_of_preset(exhibits=["figures"]))
    (line,) = (line for line in table.lines if line[0] == "figure 3")
    cells = dict(zip(table.header, line, strict=True))
    assert (cells["best with nobody worse off"], cells["optimum"]) == ("3", "2")


def test_every_table_has_a_cell_for_each_column() -> None:
    for table in tables_of(rows_of_preset(windows=1)):
        assert all(len(line) == len(table.header) for line in table.lines)


# real logs


@pytest.mark.parametrize("name", SYSTEM_PROCESSORS)
def test_no_promise_is_broken_on_a_window_of_a_real_log(name: str) -> None:
    (cell,) = mosp_2007(PresetParameters({name: trace(name)}, windows=1, exhibits=["logs"])).cells
    rows = cell.run()
    assert not any(row["breaks_ratio"] or row["breaks_alone"] for row in rows)


def test_sequential_jobs_of_one_organization_spread_over_all_clusters() -> None:
    instance = Instance(4, 1, (BatchJob(0, 1, 1),) * 40)
    assert molba_2(local(instance)).makespan <= 3 * 10
