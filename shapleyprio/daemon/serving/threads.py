"""Threads on which requests are answered."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from threading import Thread
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Threads(Executor):
    """Threads that end with the process, even while a request hangs in one.

    Attributes:
        at_once: most requests of one client that may wait for them or run.
    """

    def __init__(self, number: int, at_once: int) -> None:
        self.at_once = at_once
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._number = number
        for _ in range(number):
            Thread(target=self._work, name="request", daemon=True).start()

    def submit(
        self,
        fn: Callable[Parameters, Result],
        /,
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Future[Result]:
        """Has a thread call a function."""
        future: Future[Result] = Future()

        def call() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(fn(*args, **kwargs))
                except BaseException as error:  # noqa: BLE001  # raised where it is awaited
                    future.set_exception(error)

        self._calls.put(call)
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """Ends each thread after what it does."""
        for _ in range(self._number):
            self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
