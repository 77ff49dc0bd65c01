"""Simulates a log by AccaSim; run by a Python that has it, and nothing of ours.

``python peer_accasim.py LOG PROCESSORS {fcfs,easy} FOLDER`` reads a log in SWF. All processors are
cores of one node, since by AccaSim's own reading a job of q processors asks for q nodes. Which job
started when is written into FOLDER/sched-NAME, with times in seconds since 1970.
"""

from __future__ import annotations

import collections
import collections.abc
import json
import sys
from pathlib import Path
from typing import Any

collections.Mapping = collections.abc.Mapping  # type: ignore[attr-defined]  # as before Python 3.10

from accasim.base.allocator_class import FirstFit  # noqa: E402
from accasim.base.scheduler_class import EASYBackfilling, FirstInFirstOut  # noqa: E402
from accasim.base.simulator_class import Simulator  # noqa: E402
from accasim.utils.reader_class import Tweaker  # noqa: E402

RULES = {"fcfs": FirstInFirstOut, "easy": EASYBackfilling}
STARTS = {
    "format": "{job_id};{start_time}",
    "attributes": {"job_id": ("id", "str"), "start_time": ("start_time", "int")},
}


class OneNode(Tweaker):  # type: ignore[misc]  # a class of a package that is not here
    """Asks for the processors of a job on one node."""

    def tweak_function(self, job: dict[str, Any]) -> dict[str, Any]:
        """Returns the job as AccaSim wants it."""
        cores = job["total_processors"]
        job["queue"] = job.pop("queue_number")
        job.pop("mem", None)
        return job | {
            "core": cores,
            "requested_resources": {"core": cores},
            "requested_nodes": 1,
        }


def main(log: str, processors: int, rule: str, folder: Path) -> None:
    """Simulates the whole log."""
    system = folder / "system.json"
    groups = {"all": {"core": processors}}
    system.write_text(json.dumps({"groups": groups, "resources": {"all": 1}, "start_time": 0}))
    Simulator(
        log,
        str(system),
        RULES[rule](FirstFit()),
        RESULTS_FOLDER_PATH=str(folder),
        SCHEDULE_OUTPUT=STARTS,
        LOG_LEVEL="WARNING",
        tweak_function=OneNode(),
        statistics_output=False,
        show_statistics=False,
    ).start_simulation()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
