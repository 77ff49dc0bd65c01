"""What is documented of contributions on real logs; a window of each, so that it is fast."""

from __future__ import annotations

import pytest

from shapleyprio.lab.bench.fairness.contended import LOGS, LogFile
from shapleyprio.replay import Window, deal, read_log, workload_of
from shapleyprio.replay.measures.measures import measure, unfairness
from shapleyprio.replay.policies import run_policy
from tests.replay.traces import trace

WINDOWS = {
    "LPC": (22_211_705, 0),
    "HPC2N": (19_402_907, 0),
    "RICC": (4_894_639, 0),
    "METACENTRUM": (11_999_005, 0),
    "DAS2": (2_843_981, 4),
    "Curie": (34_625_873, 0),
}
"""Of each log the second in which a window begins, and the seed of a deal."""

TOO_LARGE = {("Curie", 8)}
"""Log and organizations that would take half a minute."""


@pytest.mark.parametrize("organizations", [5, 8])
@pytest.mark.parametrize("log_file", LOGS, ids=lambda log_file: log_file.name)
def test_with_whole_jobs_who_knows_how_long_they_last_decides_as_ref(
    log_file: LogFile, organizations: int
) -> None:
    if (log_file.name, organizations) in TOO_LARGE:
        pytest.skip("half a minute")
    log = read_log(str(trace(log_file.file)))
    begin, seed = WINDOWS[log_file.name]
    dealt = deal(log, organizations, shares="uniform", processors=log_file.processors, seed=seed)
    window = Window(start=begin, length=150_000)
    workload = workload_of(log, dealt, window=window, wide="rigid", backfill="easy")
    fair = measure(workload, run_policy(workload, "ref"))

    def away(policy: str) -> float:
        return float(unfairness(measure(workload, run_policy(workload, policy)), fair))

    assert away("shapley") == 0
    assert away("directcontr") > 30
