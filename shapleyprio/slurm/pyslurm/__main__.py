"""The worker: the one process, and the one module, that imports pyslurm.

It answers every request on standard input with a line on standard output. Its argument is its
lifeline.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import Any

from shapleyprio.common.workers import end_with_the_daemon
from shapleyprio.slurm.command_line.complaints import daemon_away
from shapleyprio.slurm.command_line.orders import OUT_OF_TIME
from shapleyprio.slurm.pyslurm.messages import Outcome, PyslurmAnswer, PyslurmRequest, Question
from shapleyprio.slurm.releases import Release

CHANGES = frozenset({"REQUEST_UPDATE_JOB", "REQUEST_TOP_JOB"})
"""Requests that are counted as changes of jobs; others come without them."""


class UnusableError(Exception):
    """pyslurm does not fit this host or this cluster; the message says why."""


def main() -> None:
    """Answers requests until the daemon is gone."""
    (lifeline,) = sys.argv[1:]
    end_with_the_daemon(int(lifeline))
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no answer
    worker = _Worker()
    for line in sys.stdin:
        print(worker.answer(PyslurmRequest.from_json(line)).as_json(), file=answers, flush=True)


class _Worker:
    """Opens the library at the first request, and keeps it open from when it could be used."""

    def __init__(self) -> None:
        self._library: _Library | None = None

    def answer(self, request: PyslurmRequest) -> PyslurmAnswer:
        try:
            module = _module()
        except UnusableError as error:
            return PyslurmAnswer(outcome=Outcome.UNUSABLE, why=str(error))
        try:
            if self._library is None:
                self._library = _Library(module)
            return self._library.answer(request)
        except UnusableError as error:
            return PyslurmAnswer(outcome=Outcome.UNUSABLE, why=str(error))
        except module.RPCError as error:
            return PyslurmAnswer(outcome=Outcome.FAILED, why=str(error))


class _Library:
    """Slurm's library.

    Args:
        pyslurm: the package.

    Raises:
        UnusableError: it was built for another release of Slurm.
        pyslurm.RPCError: the controller does not answer.
    """

    def __init__(self, pyslurm: Any) -> None:
        self._pyslurm = pyslurm
        # a name beyond the last controller's would be looked up beyond the end of a list in C
        self._controllers = 0
        with suppress(pyslurm.RPCError):
            self._controllers = len(pyslurm.slurmctld.ping_all())
        config = pyslurm.slurmctld.Config.load()
        self._cluster: str = config.cluster_name or ""
        _refuse_other_release(_built_for(pyslurm), config.version or "")

    def answer(self, request: PyslurmRequest) -> PyslurmAnswer:
        self._ping()
        if request.question is Question.CONTROLLER:
            return self._controller()
        if request.question is Question.WRITE:
            return self._write(request)
        return PyslurmAnswer(name=self._cluster)

    def _ping(self) -> None:
        """Finds out in a moment what every other call takes seconds to notice."""
        failure: Exception | None = None
        for number in range(self._controllers):
            try:
                self._pyslurm.slurmctld.ping(number)
            except self._pyslurm.RPCError as error:
                failure = failure or error
            else:
                return
        if failure is not None:
            raise failure

    def _controller(self) -> PyslurmAnswer:
        found = self._pyslurm.slurmctld.diag()
        counted = found.rpcs_by_type.keys()
        return PyslurmAnswer(
            numbers={
                "time": found.request_time,
                "accounting_backlog": found.dbd_agent_queue_size,
                "submitted": found.jobs_submitted,
                "changed": sum(found.rpcs_by_type[name].count for name in CHANGES & counted),
            }
        )

    def _write(self, request: PyslurmRequest) -> PyslurmAnswer:
        refused = {}
        changes = {
            # as text, for the number 0 is not sent
            value: self._pyslurm.JobSubmitDescription(**{request.attribute: str(value)})
            for value in set(request.values.values())
        }
        for number, value in request.values.items():
            if time.monotonic() >= request.until:
                refused[number] = OUT_OF_TIME
                continue
            try:
                self._pyslurm.Job(int(number)).modify(changes[value])
            except self._pyslurm.RPCError as error:
                if daemon_away("scontrol", str(error)) is not None:
                    raise
                refused[number] = str(error)
        return PyslurmAnswer(refused=refused)


def _module() -> Any:
    """Imports pyslurm.

    Raises:
        UnusableError: it is not there, or lacks Slurm's library.
    """
    try:
        import pyslurm
    except ImportError as error:
        raise UnusableError(f"pyslurm cannot be imported here ({error})") from error
    return pyslurm


def _built_for(pyslurm: Any) -> str:
    year, month, *_ = pyslurm.slurm_api_version()
    return Release(year, month).series


def _refuse_other_release(built_for: str, version: str) -> None:
    found = Release.parse(version)
    if found is None or found.series != built_for:
        raise UnusableError(
            f"pyslurm is built for Slurm {built_for}, the cluster's is {version or 'unknown'}"
        )


if __name__ == "__main__":
    main()
