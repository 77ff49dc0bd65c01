"""Circles of objects are looked for after a cycle, not in it."""

from __future__ import annotations

import gc
import weakref

import pytest

from shapleyprio.daemon.steering.collecting import collecting_afterwards


class Circle:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _enabled() -> None:
    gc.enable()


def test_a_circle_is_freed_when_the_cycle_is_over() -> None:
    with collecting_afterwards():
        circle = weakref.ref(Circle())
        assert not gc.isenabled()
        assert circle() is not None
    assert circle() is None
    assert gc.isenabled()


def test_a_cycle_that_fails_does_not_stop_the_search_for_good() -> None:
    with pytest.raises(ValueError, match="failed"), collecting_afterwards():
        raise ValueError("failed")
    assert gc.isenabled()
