"""What pages and pictures are made of."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.common.wording import MISSING, cell, duration, percent
from shapleyprio.lab.experiment.pages.experiment_sections import intervals
from shapleyprio.replay import Window
from shapleyprio.replay.policies.registry import title_of
from shapleyprio.reports import (
    Choice,
    Page,
    ReportError,
    Section,
    Table,
    colors_of,
    render,
    write_page,
    write_pictures,
)
from shapleyprio.reports.html.encodings import LINE, TimeAxis, named_rows
from shapleyprio.reports.html.page import Cell
from shapleyprio.reports.html.writing import VEGA_LITE
from shapleyprio.reports.replay_page import replay_page, verdict
from tests.reports.workloads import LENGTH, NAMES, log_in, results_in, workload_in

PNG = b"\x89PNG\r\n\x1a\n"


def page_in(directory: Path, *policies: str) -> Page:
    log = log_in(directory)
    workload = workload_in(log)
    results = results_in(workload, *policies)
    return replay_page(log, workload, results, options={"seed": "0"}, command="shapleyprio …")


def data_of(text: str) -> str:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    return str(found)


# the page


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (render(page_in(tmp_path, "ref", "fcfs", "recorded")) for _ in range(2))
    assert first == second


def test_a_page_needs_nothing_but_itself(tmp_path: Path) -> None:
    text = render(page_in(tmp_path, "ref", "fcfs"))
    assert "default-src 'none'" in text
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"\b(src|href)=|url\(|@import", markup)
    assert len(text.encode()) < 2_000_000


def test_names_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    text = render(page_in(tmp_path, "ref", "fcfs"))
    assert NAMES[2] not in text
    assert "a &lt;/script&gt; &amp; co" in text
    packed = json.loads(data_of(text))["charts"][0]["data"]["organization"]
    assert packed["names"] == list(NAMES)


def test_everything_needed_to_reproduce_it_stands_on_the_page(tmp_path: Path) -> None:
    page = page_in(tmp_path, "ref", "fcfs")
    assert page.parameters["SHA-256 of the log"] in render(page)
    assert len(page.parameters["SHA-256 of the log"]) == 64
    assert "numpy" in page.parameters["versions"]
    assert page.command == "shapleyprio …"


def test_every_organization_has_one_color_in_all_charts(tmp_path: Path) -> None:
    page = page_in(tmp_path, "ref", "fcfs")
    specs = json.dumps([section.chart.spec for section in page.sections if section.chart])
    ranges = set(re.findall(r'"range": (\["#[0-9A-F", #]+\])', specs))
    assert ranges == {json.dumps(list(page.organizations.values()))}


def test_without_ref_nothing_is_said_about_fairness(tmp_path: Path) -> None:
    page = page_in(tmp_path, "fcfs", "recorded")
    assert "only ref could say" in page.verdict
    names = [section.chart.name for section in page.sections if section.chart]
    assert names == ["owed", "lending", "waits", "utilization"]


def test_a_chart_that_has_to_stay_empty_says_why(tmp_path: Path) -> None:
    notes = {
        policies: next(
            section.note
            for section in page_in(tmp_path, *policies).sections
            if section.title == "Who was owed something"
        )
        for policies in (("fcfs", "recorded"), ("fcfs",))
    }
    lacking = "Nothing can be shown of what happened: the log does not say on whose processors"
    assert [lacking in note for note in notes.values()] == [True, False]


def test_axes_of_time_have_24_hours_and_days_before_months() -> None:
    hour, noon = 3_600_000, 1_700_049_600_000  # 2023-11-15, in milliseconds
    axis = TimeAxis(title="time", begin=noon, end=noon + 14 * hour, dates=True).encoding("time")
    axis["axis"]["tickCount"] = 14
    spec = {
        "width": 900,
        "params": [{"name": "begin", "value": noon}, {"name": "end", "value": noon + 14 * hour}],
        "data": {"values": [{"time": noon}, {"time": noon + 14 * hour}]},
        "mark": "tick",
        "encoding": {"x": axis},
    }
    svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
    assert ">13:00<" in svg
    assert ">16 Nov<" in svg
    assert "PM<" not in svg


def test_the_verdict_names_the_fairest_and_the_least_fair_policy(tmp_path: Path) -> None:
    workload = workload_in(log_in(tmp_path))
    results = results_in(workload, "fcfs", "ref", "roundrobin")
    ordered = sorted(
        (one for one in results if one.schedule.policy != "ref"),
        key=lambda one: one.unfairness or 0,
    )
    answer = verdict(results)
    fairest, least = (title_of(one.schedule.policy) for one in ordered)
    assert f"under {fairest}, the fairest" in answer
    assert f"under {least}, the least fair" in answer
    drifts = ordered[-1].drifts
    assert drifts is not None
    page = replay_page(log_in(tmp_path), workload, results, options={})
    assert page.front is not None
    assert f"{NAMES[drifts.index(min(drifts))]} was held back most" in page.front.reading


def test_a_verdict_on_one_policy_or_none(tmp_path: Path) -> None:
    workload = workload_in(log_in(tmp_path))
    assert verdict(results_in(workload, "ref")).endswith("nothing was compared with it.")
    one = verdict(results_in(workload, "ref", "fcfs"))
    assert one.endswith("on average under first come, first served.")


def test_tables_show_what_was_measured(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    workload = workload_in(log)
    results = results_in(workload, "ref", "fcfs")
    page = replay_page(log, workload, results, options={})
    table = page.sections[0].table
    assert table.rows[1][1] == float(results[1].unfairness or 0) / 3600 > 0
    assert table.rows[1][0] == "first come, first served"
    turns = results[1].turns
    assert turns is not None
    assert table.rows[1][6] == percent(turns.out_of_turn / turns.contested) != "0.0%"
    assert tuple(table.rows[1][7:]) == tuple(float(d) / 3600 for d in results[1].drifts or ())


def test_a_page_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    page = page_in(tmp_path, "fcfs")
    with pytest.raises(Exception, match="cannot be written"):
        write_page(page, tmp_path / "absent" / "page.html")


def test_dates_keep_their_seconds(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    workload = workload_in(log)
    results = results_in(workload, "fcfs")
    begin = 1_482_364_800
    later = replace(workload, window=Window(start=begin, length=LENGTH))
    page = replay_page(replace(log, epoch=0), later, results, options={})
    charts = {chart["name"]: chart for chart in json.loads(data_of(render(page)))["charts"]}
    moments = {1000 * (begin + second) for second in range(LENGTH + 1)}
    assert set(charts["owed"]["data"]["time"]) == moments


# pictures


def experiment() -> Page:
    data: dict[str, list[Cell]] = {
        "policy": ["ref", "fcfs"],
        "low": [0.0, 35.0],
        "mean": [0.0, 40.0],
        "high": [0.0, 47.0],
    }
    section = Section(
        title="Unfairness",
        note="",
        chart=intervals("unfairness", data, title="Δψ/p_tot, s"),
        table=Table(headings=("policy", "mean"), rows=[("ref", 0.0), ("fcfs", 40.0)]),
    )
    return Page(title="An experiment", verdict="Yes. No.", sections=[section], parameters={})


def test_a_picture_of_each_chart_and_choice(tmp_path: Path) -> None:
    whole = page_in(tmp_path, "fcfs", "fairshare:7d")
    kept = [one for one in whole.sections if one.chart and one.chart.name in {"lending", "waits"}]
    page = replace(whole, sections=[*experiment().sections, *kept])
    files = write_pictures(page, tmp_path / "new" / "pictures")
    assert [file.stem for file in files] == [
        "unfairness",
        *("lending-fcfs", "lending-fairshare-7d", "waits-fcfs", "waits-fairshare-7d"),
    ]
    assert all(file.read_bytes().startswith(PNG) for file in files)
    assert len({file.read_bytes() for file in files}) == len(files)


def test_pages_need_neither_organizations_nor_choice(tmp_path: Path) -> None:
    text = render(experiment())
    assert "data-organization=" not in text.split("<script")[0]
    (file,) = write_pictures(experiment(), tmp_path)
    assert file.name == "unfairness.png"


def test_pictures_into_a_file_are_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="name another directory"):
        write_pictures(experiment(), tmp_path / "file")


# colors and words


def test_the_first_twenty_four_organizations_differ_in_color() -> None:
    colors = colors_of([str(n) for n in range(24)])
    assert len(set(colors.values())) == 24
    assert all(re.fullmatch("#[0-9A-F]{6}", color) for color in colors.values())


@given(st.floats(min_value=0, max_value=1e9))
def test_durations_keep_their_size_in_words(seconds: float) -> None:
    value, unit = duration(seconds).split(" ")
    size = {"s": 1, "min": 60, "h": 3600, "d": 86_400}[unit]
    assert float(value.replace(",", "")) * size == pytest.approx(seconds, rel=0.05, abs=0.05)


def test_cells_without_a_value_are_dashes() -> None:
    assert cell(None) == MISSING
    assert cell("ref") == "ref"


def test_the_options_of_a_choice_are_offered(tmp_path: Path) -> None:
    page = page_in(tmp_path, "ref", "fcfs", "recorded")
    assert page.choice == Choice(
        label="schedule",
        options={
            "ref": "fair (ref)",
            "fcfs": "first come, first served",
            "recorded": "what happened",
        },
        initial="recorded",
    )
    assert '<option value="recorded" selected>what happened</option>' in render(page)


def test_labels_of_one_and_of_several_lines_stand_in_the_middle_of_their_rows() -> None:
    names = ["short", "a name that is much too long for one line of the axis"]
    height, axis = named_rows(names)
    spec = {
        "height": height,
        "data": {"values": [{"name": name} for name in names]},
        "mark": "tick",
        "encoding": {"y": {"field": "name", "type": "nominal", "sort": names, "axis": axis}},
    }
    svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
    found = re.findall(r"translate\(-7,([\d.]+)\)[^>]*>(.*?)</text>", svg)
    lines = [max(1, text.count("<tspan")) for _, text in found]
    assert lines == [1, 3]
    middles = [
        float(first) + LINE * (n - 1) / 2 for (first, _), n in zip(found, lines, strict=True)
    ]
    assert middles[1] - middles[0] == pytest.approx(height / 2, abs=1)
    assert middles[0] == pytest.approx(height / 4 + 3, abs=1)  # its baseline
