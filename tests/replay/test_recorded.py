"""What ``sacct --json`` of each release printed, held against its text of the same jobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shapleyprio.replay.logs.assembling import taken
from shapleyprio.replay.logs.reading import read_log
from tests.replay.test_long_logs import assert_same

FOLDER = Path(__file__).parent / "recorded"
PARTITIONS_LIMIT = 75_600  # its longest limit, 20 h 10 min, in whole hours


@pytest.mark.parametrize("release", ["22.05", "24.11", "26.05"])
def test_json_of_each_release_says_what_its_text_says(release: str) -> None:
    of_json, of_text = (  # 22.05 prints them in another order
        taken(log, np.lexsort((log.release, log.job)))
        for log in (read_log(str(FOLDER / f"{release}.{kind}")) for kind in ("json", "sacct"))
    )
    assert of_json.malformed == ()
    assert of_json.cluster == "testbed"  # the text was recorded without that column
    assert_same(replace(of_json, cluster=""), of_text)
    # suspended for a while, requeued, without a limit, and never started
    assert len(of_json.job) == 7
    assert len(set(of_json.job.tolist())) == 6
    assert (of_json.limit == PARTITIONS_LIMIT).sum() == 1
    assert of_json.left_out["zero_processing_time"] == 1
    third = of_json.job.tolist().index(3)
    whole = (of_json.start + of_json.processing_time)[[third, of_json.job.tolist().index(5)]]
    assert whole[0] < whole[1]  # both were cancelled at once
