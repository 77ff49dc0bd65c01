"""A daemon of a life in a process of its own, which can really be killed.

The cluster stays with the test: the process sends every question there, and every moment, so that
it is killed at one of them by SIGKILL, whatever it is doing.
"""

from __future__ import annotations

import multiprocessing
import os
from typing import TYPE_CHECKING, Any

from shapleyprio.slurm.port import unchecked
from shapleyprio.store import Store
from shapleyprio.store.engine import make_engine
from tests.daemon.faults.daemon import LivingDaemon
from tests.daemon.faults.stores import watch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from multiprocessing.connection import Connection
    from pathlib import Path

    from shapleyprio.config import Config
    from shapleyprio.store import StandingRow
    from tests.daemon.faults.cluster import FaultyCluster

_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(["pytest", __name__])  # pytest is __main__ there, too
PATIENCE_SECONDS = 120.0


class ProcessDaemon:
    """What `LivingDaemon` is, in a process of its own.

    Args:
        config: as read.
        slurm: the cluster.
        url: of the store.
        name: of the cluster.
        journal: as `LivingDaemon` has it.
    """

    def __init__(
        self, config: Config, slurm: FaultyCluster, url: str, name: str, journal: Path | None
    ) -> None:
        self._slurm = slurm
        self._pipe, theirs = _FORKING.Pipe()
        self._process = _FORKING.Process(
            target=_live, args=(theirs, config, url, name, journal), daemon=True
        )
        self._process.start()
        theirs.close()

    def try_to_take(self) -> bool:
        return bool(self._ask("try_to_take"))

    def run(self) -> list[StandingRow]:
        rows: list[StandingRow] = self._ask("run")
        return rows

    def prune(self) -> int:
        return int(self._ask("prune"))

    def accept_clock(self) -> None:
        self._ask("accept_clock")

    def roll_back(self) -> None:
        self._ask("roll_back")

    def stop(self) -> None:
        self._ask("stop")
        self.kill()

    def kill(self) -> None:
        """Kills it by SIGKILL, if it lives."""
        self._process.kill()
        self._process.join(PATIENCE_SECONDS)
        self._pipe.close()

    def _ask(self, what: str) -> Any:
        """Has the process do something, and answers its questions meanwhile."""
        try:
            self._pipe.send(what)
            kind, *said = self._hear()
            while kind not in {"done", "failed"}:
                self._pipe.send(self._answer(kind, *said))
                kind, *said = self._hear()
        except BaseException:
            self.kill()
            raise
        if kind == "failed":
            raise said[0]
        return said[0]

    def _hear(self) -> Any:
        assert self._pipe.poll(PATIENCE_SECONDS), "the process says nothing"
        return self._pipe.recv()

    def _answer(self, kind: str, *said: Any) -> tuple[bool, Any]:
        """Returns whether the question can be answered, and the answer or why not."""
        try:
            if kind == "moment":
                self._slurm.moments.pass_(*said)
                return True, None
            if kind == "token":
                self._slurm.token = said[0]
                return True, None
            if kind == "now":
                return True, self._slurm.now
            name, arguments = said
            answer = getattr(self._slurm, name)(*arguments)
            return True, list(answer) if name in {"records", "records_of"} else answer
        except Exception as failure:  # noqa: BLE001  # it is the process's to bear
            return False, failure


class _FarSlurm:
    """The cluster, as seen from the process."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def ask(self, *question: Any) -> Any:
        self._pipe.send(question)
        is_answer, answer = self._pipe.recv()
        if not is_answer:
            raise answer
        return answer

    @property
    def now(self) -> int:
        return int(self.ask("now"))

    @property
    def token(self) -> int:
        return 0

    @token.setter
    def token(self, token: int) -> None:
        self.ask("token", token)

    def write(
        self, channel: str, values: Mapping[str, int], check: Callable[[], float] = unchecked
    ) -> Mapping[str, str]:
        refused: dict[str, str] = {}
        for target, value in values.items():
            self.ask("moment", "write")
            check()
            refused |= self.ask("slurm", "put", (channel, target, value))
            self.ask("moment", "written")
        return refused

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *arguments: self.ask("slurm", name, arguments)


def _live(pipe: Connection, config: Config, url: str, name: str, journal: Path | None) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    slurm = _FarSlurm(pipe)
    store = Store(make_engine(url))
    watch(store, lambda moment: slurm.ask("moment", moment))
    daemon = LivingDaemon(config, slurm, store, name, journal)
    while True:
        try:
            done = getattr(daemon, pipe.recv())()
        except EOFError:
            return
        except Exception as failure:  # noqa: BLE001  # the test judges it
            pipe.send(("failed", _plain(failure)))
        else:
            pipe.send(("done", done))


def _plain(failure: Exception) -> Exception:
    """Returns a failure that can be sent: its causes hold connections."""
    failure.__cause__ = failure.__context__ = None
    return failure
