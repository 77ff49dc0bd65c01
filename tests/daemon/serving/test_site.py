"""What is answered to whom, on real sockets."""

from __future__ import annotations

import gzip
import socket
import threading
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from shapleyprio.common.wording import signed_duration
from shapleyprio.daemon.answering.status import read_status
from shapleyprio.daemon.serving import Site, overview, site
from shapleyprio.daemon.serving.checks import Checks
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.store import DriftRow
from tests.daemon.consortium import NAME, NOW, Service, brings, rank_by_estimate
from tests.daemon.serving.sites import HOST, Served

if TYPE_CHECKING:
    from collections.abc import Callable


def names(text: str) -> set[str]:
    return {family.name for family in text_string_to_metric_families(text)}


# -- what is answered


def test_prometheus_reads_the_metrics(opened: Served, steered: Service) -> None:
    opened.metrics.publish(steered.run())
    answer = opened.ask("/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    assert "shapleyprio_organization_balance_per_part_seconds" in names(answer.text)


def test_metrics_are_served_as_they_are_asked_for(opened: Served) -> None:
    packed = opened.ask("/metrics", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert "shapleyprio_build_info" in gzip.decompress(packed.body).decode()
    wanted = {"Accept": "application/openmetrics-text; version=1.0.0"}
    assert opened.ask("/metrics", headers=wanted).text.endswith("# EOF\n")
    assert opened.ask("/metrics?name[]=nothing").text == ""


def test_the_status_is_what_the_command_prints_and_more(opened: Served, steered: Service) -> None:
    output = opened.ask("/api/status").json
    printed = read_status(steered.store.cluster(NAME)).as_json()
    assert {key: output[key] for key in printed} == printed
    assert output.keys() - printed.keys() == {
        *("error", "version", "at", "silent_seconds", "last_cycle"),
        *("drift_trouble", "check", "changes", "pause", "exceptions"),
        "other_ledgers",
    }
    assert (output["last_cycle"]["number"], output["last_cycle"]["outcome"]) == (1, "ok")


def test_everybody_may_read_the_page_so_it_names_no_user(opened: Served, steered: Service) -> None:
    rank_by_estimate(steered.store, brings("ann-of-physics", 2, 3))
    organizations = opened.ask("/api/status").json["organizations"]
    assert [one["waiting_work"] for one in organizations] == [
        {"jobs": 2, "processor_seconds": 3 * 3600, "users": []},
        {"jobs": 0, "processor_seconds": 0, "users": []},
    ]
    assert "ann-of-physics" not in opened.ask("/").text


def test_the_page_and_the_status_show_the_same(opened: Served, steered: Service) -> None:
    page = opened.ask("/")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    for row in opened.ask("/api/status").json["organizations"]:
        assert row["organization"] in page.text
        assert f">{signed_duration(row['balance_per_part'])}<" in page.text


def test_the_drift_of_the_last_day_is_reported(opened: Served, steered: Service) -> None:
    ends = (NOW - 2 * 86_400, NOW - 3600, NOW)
    with steered.store.cluster(NAME).transaction() as transaction:
        transaction.history.save_drifts(
            DriftRow(
                t=end, organization=name, schedule=schedule, begin=end - 604_800,
                reference="ref", utility=utility, fair=0, parts=10,
            )
            for end in ends
            for name, utility in (("physics", -50), ("biology", 70))
            for schedule in ("recorded", "fairshare")
        )  # fmt: skip
    assert opened.ask("/api/status").json["drift"] == {
        "begin": NOW - 604_800,
        "end": NOW,
        "reference": "ref",
        "unfairness_seconds": 12.0,
        "organizations": {
            "physics": [[NOW - 3600, -5.0], [NOW, -5.0]],
            "biology": [[NOW - 3600, 7.0], [NOW, 7.0]],
        },
    }
    assert opened.ask("/").text.count('class="line"') == 2


def test_without_a_cycle_the_page_says_so(opened: Served) -> None:
    for path in ("/", "/api/status"):
        answer = opened.ask(path)
        assert answer.status == 503
        assert f"no cycle on cluster {NAME} has succeeded yet" in answer.text
    assert opened.ask("/metrics").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/metrics", "/api/status"])
def test_nothing_can_be_changed(opened: Served, path: str, method: str) -> None:
    answer = opened.ask(path, method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/status"])
def test_the_head_of_an_answer_comes_without_its_body(
    opened: Served, steered: Service, path: str
) -> None:
    whole, head = opened.ask(path), opened.ask(path, "HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["Content-Length"] == str(len(whole.body))


def test_what_there_is_not_is_not_found(opened: Served) -> None:
    answer = opened.ask("/graph")
    assert answer.status == 404
    assert answer.text == "Not Found: known paths: /, /metrics, /api/status\n"


# -- nobody waits for a reader


def test_however_many_ask_the_store_is_read_once(
    opened: Served, steered: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []

    def counted(*arguments: object) -> object:
        reads.append(1)
        return read_status(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(overview, "read_status", counted)
    threads = [threading.Thread(target=opened.ask, args=("/",)) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reads) == 1


def test_a_store_that_hangs_keeps_prometheus_from_nothing(
    opened: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "PATIENCE_SECONDS", 0.05)
    hanging = threading.Event()
    asked = threading.Event()

    def hang(*_: object) -> None:
        asked.set()
        hanging.wait(20)
        raise AssertionError

    monkeypatch.setattr(overview, "read_status", hang)
    first = threading.Thread(target=opened.ask, args=("/",))
    first.start()
    assert asked.wait(20)
    assert opened.ask("/metrics").status == 200
    assert opened.ask("/api/status").json["error"] == "the store takes too long to answer"
    with capture_logs():
        hanging.set()
        first.join()


def test_a_defect_in_a_request_is_logged_and_the_next_one_answered(
    opened: Served, steered: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken, capture_logs() as lines:
        broken.setattr(overview, "read_status", lambda *_: 1 / 0)
        assert opened.ask("/").status == 500
    assert [(line["event"], line["path"]) for line in lines] == [("request failed", "/")]
    assert opened.ask("/").status == 200


def test_a_silent_client_keeps_nobody_waiting(opened: Served) -> None:
    with socket.create_connection((HOST, opened.port)):
        assert opened.ask("/metrics").status == 200


def test_an_address_that_is_taken_is_tried_again(
    opened: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "RETRY_SECONDS", 0.05)
    other = Served(opened.metrics, opened.store, opened.port, [])
    with capture_logs() as lines:
        other.open()
        other.site._closed.wait(0.5)
        (line,) = [line for line in lines if line["log_level"] == "error"]
        assert (line["key"], line["address"]) == ("metrics.address", f"{HOST}:{opened.port}")
        assert "in use" in line["why"]
        opened.site.close()
        await_server(other)
    assert other.ask("/metrics").status == 200
    other.site.close()


def await_server(served: Served) -> None:
    for _ in range(400):
        if served.site._server is not None:
            return
        served.site._closed.wait(0.05)
    raise AssertionError("nothing is served")


def test_who_closes_while_the_address_is_taken_serves_nothing_later(
    opened: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "RETRY_SECONDS", 0.05)
    other = Served(opened.metrics, opened.store, opened.port, [])
    other.open()
    other.site.close()
    opened.site.close()
    threading.Event().wait(0.3)
    with pytest.raises(ConnectionRefusedError):
        other.ask("/")


def test_a_dry_run_leaves_a_taken_address_to_the_daemon_that_has_it(
    opened: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "RETRY_SECONDS", 0.05)
    cluster = opened.store.cluster(NAME)
    dry = Site(opened.metrics.registry, cluster, lambda _: [], retries=False)
    with capture_logs() as lines:
        dry.open(opened.config())
    assert [line["next_try"] for line in lines if "next_try" in line] == ["never"]
    opened.site.close()
    threading.Event().wait(0.3)
    assert dry._server is None
    dry.close()


def test_nothing_is_served_where_the_address_is_off(served: Served) -> None:
    served.open(address="off")
    with pytest.raises(ConnectionRefusedError):
        served.ask("/")


# -- what check finds


def once_checked(served: Served, holds: Callable[[], bool]) -> None:
    """Waits for the thread that checks."""
    for _ in range(400):
        if holds():
            return
        threading.Event().wait(0.05)
    raise AssertionError


def test_the_findings_of_check_are_reported(opened: Served, steered: Service) -> None:
    once_checked(opened, lambda: opened.site._checks.last is not None)
    (output,) = opened.ask("/api/status").json["check"]["findings"]
    assert output == {
        "severity": "warning",
        "subject": "accounts <b>guest</b>",
        "message": "belong to nobody",
        "remedy": "add them & go",
    }
    page = opened.ask("/").text
    assert "accounts &lt;b&gt;guest&lt;/b&gt;" in page
    assert "add them &amp; go" in page


def test_no_request_runs_a_check(opened: Served, steered: Service) -> None:
    once_checked(opened, lambda: bool(opened.checked))
    for _ in range(3):
        opened.ask("/")
    assert len(opened.checked) == 1


def test_a_new_configuration_is_checked_at_once(opened: Served) -> None:
    once_checked(opened, lambda: len(opened.checked) == 1)
    new = opened.config()
    opened.site.renew(new)
    once_checked(opened, lambda: opened.checked[-1] is new)


def test_a_check_that_fails_takes_its_findings_back_and_the_next_brings_new_ones() -> None:
    finding = Finding(Severity.NOTICE, "a", "b", "c")
    outcomes: list[list[Finding] | Exception] = [[finding], RuntimeError("no"), []]

    def check() -> list[Finding]:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    checks = Checks(check, clock=lambda: 7.5)
    checks.once()
    assert checks.last is not None
    assert (checks.last.at, checks.last.findings) == (7, (finding,))
    with capture_logs() as lines:
        checks.once()
    assert checks.last is None
    assert [line["event"] for line in lines] == ["check failed"]
    checks.once()
    assert checks.last is not None
    assert checks.last.findings == ()
