"""Windows drawn and dealt out as the documentation says, and held against ref."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shapleyprio.common.errors import Remedy
from shapleyprio.lab.experiment import windows
from shapleyprio.lab.experiment.cells import ExperimentError, Row, WindowsParameters
from shapleyprio.lab.experiment.general import windows_experiment
from shapleyprio.lab.experiment.logs import checksum, log_of, logs_among
from shapleyprio.lab.experiment.windows import WindowCell, check_policies
from shapleyprio.replay import Window, deal, measure, run_policy, unfairness, workload_of
from shapleyprio.replay.alone import finish_times
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.errors import PolicyError, WorkloadError
from shapleyprio.replay.measures.turns import turns_of
from shapleyprio.replay.workloads.choices import Wide
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.workload import Workload, with_history
from tests.lab.experiment.examples import BUSY, write_log

POLICIES = ("ref", "rand-3", "fcfs")


@pytest.fixture
def cell(tmp_path: Path) -> WindowCell:
    return WindowCell(
        source=str(write_log(tmp_path / "busy.swf")),
        log="busy",
        length=15,
        organizations=2,
        shares="zipf",
        processors=None,
        policies=POLICIES,
        seed=5,
        window=0,
    )


def test_a_row_is_the_unfairness_of_the_policy_in_that_window(cell: WindowCell) -> None:
    log = log_of(cell.source)
    rows = cell.run()
    start = rows[0]["start"]
    assert isinstance(start, int)
    seeds = {purpose: cell._drawn_seed(purpose) for purpose in ("deal", "policy")}
    dealt = deal(log, 2, shares="zipf", processors=3, seed=seeds["deal"])
    workload = workload_of(log, dealt, window=Window(start=start, length=15))
    fair = measure(workload, run_policy(workload, "ref", seed=seeds["policy"]))
    for row, (policy, orderings) in zip(
        rows, [("ref", 15), ("rand", 3), ("fcfs", 15)], strict=True
    ):
        schedule = run_policy(workload, policy, orderings=orderings, seed=seeds["policy"])
        measures = measure(workload, schedule)
        assert row["unfairness"] == float(unfairness(measures, fair))
        assert row["mean_wait"] == float(measures.mean_wait)
        assert row["p_tot"] == fair.p_tot
        (finished,) = finish_times(workload, [schedule])
        assert row["largest_rho"] == (finished.largest and float(finished.largest))
        (turns,) = turns_of(workload, [schedule]) or ()
        assert (row["contested"], row["out_of_turn"]) == (turns.contested, turns.out_of_turn)
        assert row["jobs"] == len(workload.job)
        assert row["problem"] is None
    assert [row["policy"] for row in rows] == list(POLICIES)
    assert rows[0]["unfairness"] == 0


def test_a_cell_gives_the_same_rows_wherever_it_runs(cell: WindowCell) -> None:
    elsewhere: WindowCell = pickle.loads(pickle.dumps(cell))
    log_of.cache_clear()
    assert untimed(cell.run()) == untimed(elsewhere.run())


def untimed(rows: Sequence[Row]) -> list[Row]:
    return [{key: row[key] for key in row if key != "decision_seconds"} for row in rows]


def started(cell: WindowCell) -> object:
    return cell.run()[0]["start"]


def test_all_deals_shares_and_numbers_of_organizations_see_the_same_windows(
    cell: WindowCell,
) -> None:
    others = [
        replace(cell, deal=1),
        replace(cell, shares="uniform"),
        replace(cell, organizations=3),
        replace(cell, policies=("fcfs",)),
    ]
    assert {started(other) for other in others} == {started(cell)}


def test_windows_differ_by_number_and_by_seed(cell: WindowCell) -> None:
    windows = {started(replace(cell, window=window)) for window in range(10)}
    assert len(windows) > 3
    assert windows != {started(replace(cell, window=window, seed=6)) for window in range(10)}


def test_deals_differ_by_number(cell: WindowCell) -> None:
    log = log_of(cell.source)
    dealt = [replace(cell, deal=number)._dealt(log).organization.tolist() for number in range(8)]
    assert len({tuple(owners) for owners in dealt}) > 3


def test_a_contended_window_has_something_to_compare(
    cell: WindowCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worst(window: int, contended: int | None) -> float:
        drawn = replace(
            cell, policies=("directcontr", "fairshare"), window=window, contended=contended
        )
        return max(float(str(row["unfairness"])) for row in drawn.run())

    (first, *_) = (window for window in range(200) if 0 < worst(window, None) < 1)
    (second, *_) = (window for window in range(200) if worst(window, None) >= 1)
    assert worst(second, 1) == worst(second, None)
    monkeypatch.setattr(windows, "MOST_DRAWS", 20)
    with pytest.raises(ExperimentError, match="directcontr or fairshare 5000 s away from ref"):
        worst(first, 5000)


def test_a_contended_window_is_scheduled_once_by_each_policy(
    cell: WindowCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduled: list[tuple[int, str]] = []
    with_histories: list[int] = []

    def noted_run(workload: Workload, policy: str, **options: Any) -> Schedule:
        scheduled.append((workload.window.start, policy))
        return run_policy(workload, policy, **options)

    def noted_history(workload: Workload, log: Log) -> Workload:
        with_histories.append(workload.window.start)
        return with_history(workload, log)

    monkeypatch.setattr(windows, "run_policy", noted_run)
    monkeypatch.setattr(windows, "with_history", noted_history)
    monkeypatch.setattr(windows, "MOST_DRAWS", 30)
    for window in range(200):
        del scheduled[:], with_histories[:]
        drawn = replace(cell, policies=("fairshare", "live", "ref"), window=window, contended=1)
        with suppress(ExperimentError):
            kept = drawn.run()[0]["start"]
            of_kept = [policy for start, policy in scheduled if start == kept]
            assert sorted(of_kept) == ["directcontr", "fairshare", "live", "ref"]
            assert with_histories == [kept]
            if len(scheduled) > len(of_kept):
                return
    pytest.fail("no window was drawn anew, so nothing was tried")


@pytest.mark.parametrize("wide", ["expand", "rigid"])
def test_every_window_has_a_job_that_fits(tmp_path: Path, wide: Wide) -> None:
    file = write_log(tmp_path / "gap.swf")
    late = [line.split() for line in file.read_text().splitlines()[1:]]
    processors = "4" if wide == "rigid" else "1"
    shifted = [
        " ".join(["1", second, *line[2:4], processors, *line[5:]])
        for line, second in zip(late, ("2500", "5000"), strict=False)
    ]
    file.write_text(file.read_text() + "\n".join(shifted) + "\n")
    parameters = WindowsParameters(
        policies=["fcfs"], windows=20, length=400, organizations=[2], wide=wide
    )
    for cell in windows_experiment([str(file)], parameters).cells:
        (row,) = cell.run()
        assert isinstance(row["jobs"], int)
        assert row["jobs"] >= 1


def test_a_window_longer_than_the_log_is_all_of_it(cell: WindowCell) -> None:
    (row,) = replace(cell, length=10_000, policies=("fcfs",)).run()
    assert row["jobs"] == len(BUSY)


def test_what_is_refused_is_reported_and_not_hidden(cell: WindowCell) -> None:
    rows = replace(cell, processors=2**24, length=10_000_000).run()
    assert [row["unfairness"] for row in rows] == [None] * 3
    assert all("16777216 processors" in str(row["problem"]) for row in rows)


def test_where_only_ref_cannot_be_had_the_rest_is_reported(cell: WindowCell) -> None:
    (row,) = replace(cell, organizations=21, processors=21, policies=("fcfs",)).run()
    assert row["unfairness"] is None
    assert row["mean_wait"] is not None
    assert str(row["problem"]).startswith("ref: ref keeps a schedule for each of 2^k coalitions")
    assert row["remedy"] == Remedy.SAMPLE


def test_a_log_without_a_number_of_processors_needs_one(cell: WindowCell, tmp_path: Path) -> None:
    source = str(write_log(tmp_path / "none.swf", header=""))
    with pytest.raises(WorkloadError, match="does not say how many processors") as caught:
        replace(cell, source=source).run()
    assert caught.value.remedy is Remedy.NAME_PROCESSORS


def test_names_of_cells_are_unique(tmp_path: Path) -> None:
    file = str(write_log(tmp_path / "busy.swf"))
    parameters = WindowsParameters(
        windows=3, deals=2, organizations=[2, 3], shares=["zipf", "uniform"]
    )
    made = windows_experiment([file], parameters)
    assert len({cell.name for cell in made.cells}) == len(made.cells) == 24


def test_a_longer_experiment_begins_with_the_shorter_one(tmp_path: Path) -> None:
    file = str(write_log(tmp_path / "busy.swf"))
    short, long = (
        windows_experiment([file], WindowsParameters(windows=count)).cells for count in (3, 5)
    )
    assert list(long)[:3] == list(short)


def test_unknown_policies_are_refused_before_anything_is_read() -> None:
    check_policies(["rand", "rand-75", "ref", "fcfs"])
    for unknown in ("rand-0", "rand-x", "fairshair"):
        with pytest.raises(PolicyError, match="unknown policy"):
            check_policies([unknown])


def test_logs_of_the_same_name_are_refused() -> None:
    with pytest.raises(ExperimentError, match="same name"):
        windows_experiment(["one/log.swf", "two/log.swf.gz"], WindowsParameters())


def test_logs_are_found_in_directories_and_by_name(tmp_path: Path) -> None:
    one, two = tmp_path / "some", tmp_path / "two.swf"
    one.mkdir()
    for file in (one / "one.swf", two):
        file.write_text("same")
    assert logs_among([one, two]) == {"one.swf": one / "one.swf", "two.swf": two}
    assert checksum(two) == checksum(one / "one.swf")
    with pytest.raises(ExperimentError, match="does not exist"):
        logs_among([tmp_path / "three"])
