"""What is taken for a list of hosts at first sight can be read as one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.replay.logs.columns import Column, surely_hosts
from shapleyprio.slurm.text.values import hosts

RANGE = r"[0-9]{1,3}(-[0-9]{1,4})?"
LIKE_LISTS = rf"(a[a0.-]{{0,3}}(\[{RANGE}(,{RANGE})?\])?,){{0,2}}a[0-9]{{0,3}}(\[{RANGE}\])?"


def sure(text: str) -> bool:
    data = np.frombuffer(text.encode(), dtype=np.uint8)
    (found,) = surely_hosts(Column("nodelist", data, np.array([0]), np.array([len(data)])))
    return bool(found)


@given(st.from_regex(LIKE_LISTS, fullmatch=True) | st.text("a1[]-,0.9", max_size=14))
def test_what_is_sure_can_be_read(text: str) -> None:
    if sure(text):
        assert hosts("nodelist", text)


@pytest.mark.parametrize("text", ["cn7", "cn[1-3,008],gpu-2", "cn[0-10]", "cn[0-199999]", "a.b,c"])
def test_plain_lists_are_sure(text: str) -> None:
    assert sure(text)


@pytest.mark.parametrize(
    "text", ["", "cn[1-3", "cn[]", "a,", "cn[3-1]", "cn[09-010]", "cn[0-200000]", "cn[1-3]x", "[1]"]
)
def test_what_takes_more_than_a_look_is_not(text: str) -> None:
    assert not sure(text)
