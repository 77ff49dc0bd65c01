"""What users read who ask when a job would start that they have not submitted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shapleyprio.cli.answers import foreseen
from shapleyprio.daemon.answering.explain import NothingToExplainError
from shapleyprio.daemon.answering.inquiries import AskedJob, Asker, Inquiry
from shapleyprio.slurm.access import Rights
from tests.daemon.consortium import NAME
from tests.daemon.forecasting.conftest import learn

if TYPE_CHECKING:
    from shapleyprio.daemon.answering.inquiries import InquiryAnswer
    from tests.daemon.forecasting.conftest import Foreseeing

DOCUMENT = Path(__file__).parents[3] / "docs" / "explain.md"
OPERATOR = Asker("root", lambda: Rights(operator=True))


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture
def queue(daemon: Foreseeing) -> int:
    """Three of physics' jobs of 100 s on all processors, of which one runs; returns its start."""
    learn(daemon, 100)
    begin = daemon.slurm.now
    for _ in range(3):
        daemon.slurm.submit("physics", processors=12, processing_time=100, limit=1000)
    daemon.slurm.wait(40)
    daemon.run()
    daemon.now += 20
    return begin


def answer(
    daemon: Foreseeing,
    account: str = "physics",
    *,
    asker: Asker = OPERATOR,
    processors: int = 12,
    partition: str = "all",
) -> InquiryAnswer:
    job = AskedJob(limit=1000, processors=processors, partition=partition, account=account)
    inquiry = Inquiry("explain", "what_if", job.as_text())
    store = daemon.store.cluster(NAME)
    return foreseen(daemon.config, [store], lambda _: daemon.forecasts, inquiry, asker)


def test_the_answer_says_when_how_probably_and_how_old_it_is(
    daemon: Foreseeing, queue: int
) -> None:
    found = answer(daemon)
    start, t = queue + 300, queue + 40
    assert found.code == 0
    assert found.value == {
        "cluster": NAME,
        "account": "physics",
        "organization": "physics",
        "partition": "all",
        "processors": 12,
        "limit": 1000,
        "start": {
            "t": t,
            "median": start,
            "early": start,
            "late": start,
            "within_hour": 1,
            "waits_for": "turn",
            "shorter_limit": None,
        },
        "age": 20,
        "sentences": list(found.lines),
    }
    assert found.lines == (
        "Suppose that a job of account physics is submitted now, for at most 17 min on 12 "
        "processors of partition all.",
        "It probably starts at 08:25.",
        "The chance that it does within an hour is 100%, as of 08:20, 20 s ago; it waits for its "
        "turn.",
    )


def test_jobs_of_no_organization_come_last(daemon: Foreseeing, queue: int) -> None:
    found = answer(daemon, "guest")
    assert found.value["organization"] is None
    assert found.value["start"]["median"] == queue + 300
    assert "It counts for no organization, so the jobs of all others go first." in found.lines


def test_a_user_asks_for_the_default_account_and_others_of_theirs(
    daemon: Foreseeing, queue: int
) -> None:
    accounts = {"": "physics", "biology": "biology"}
    ann = Asker("ann", Rights, lambda named: accounts.get(named, ""))
    assert answer(daemon, "", asker=ann).value["account"] == "physics"
    assert answer(daemon, "biology", asker=ann).value["account"] == "biology"
    with pytest.raises(NothingToExplainError, match="ann may not submit to account guest"):
        answer(daemon, "guest", asker=ann)


def test_what_could_not_start_is_refused_in_a_line(daemon: Foreseeing, queue: int) -> None:
    for account, processors, partition, line in (
        ("physics", 1, "pc", "partition pc has no processors now; these have: all, pa, pb"),
        ("physics", 1, "pa,pb", "one partition, and at most one account"),
        ("physics", 5, "pb", "5 processors are more than partition pb has now: 4"),
        ("physics", 2**31 - 1, "all", "more than partition all has now: 12"),
        ("phisics", 1, "all", "no account phisics is known here; did you mean physics?"),
    ):
        with pytest.raises((NothingToExplainError, ValueError), match=re.escape(line)) as caught:
            answer(daemon, account, processors=processors, partition=partition)
        assert "\n" not in str(caught.value)


def test_the_document_shows_what_is_printed_and_names_every_key(
    daemon: Foreseeing, queue: int
) -> None:
    found = answer(daemon)
    section = (
        DOCUMENT.read_text(encoding="utf-8").split("## Before you submit")[1].split("\n## ")[0]
    )
    assert set(re.findall(r"`(\w+)`", section)) == found.value.keys() - {"sentences"}
    (block,) = re.findall(r"^```console\n\$ .*?\n(.*?)^```$", section, re.M | re.S)

    def without_numbers(text: str) -> str:
        return re.sub(r"[0-9:.]+ ?(min|h|s|d)?", "#", text)

    shown, printed = block.splitlines(), found.lines
    assert without_numbers(shown[0]).split()[:6] == without_numbers(printed[0]).split()[:6]
    assert without_numbers(shown[-1]) == without_numbers(printed[-1])
