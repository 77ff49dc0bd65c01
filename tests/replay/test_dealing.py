from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.common.errors import Remedy
from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.workloads.choices import Shares
from shapleyprio.replay.workloads.dealing import MOST_ORGANIZATIONS, deal, processor_shares
from shapleyprio.replay.workloads.log import UNKNOWN, Labels, Log
from tests.replay.test_workload import log_of

SHARES = st.sampled_from(["zipf", "uniform"])
SIZES = st.integers(1, MOST_ORGANIZATIONS).flatmap(
    lambda organizations: st.tuples(
        st.just(organizations), st.integers(organizations, 100_000) | st.just(organizations)
    )
)
USERS = st.lists(st.none() | st.sampled_from("abcdefgh"), min_size=1, max_size=30).filter(any)


@given(SIZES, SHARES)
def test_every_processor_is_dealt_and_everyone_gets_one_and_nobody_more_than_the_one_before(
    sizes: tuple[int, int], shares: Shares
) -> None:
    organizations, processors = sizes
    dealt = processor_shares(organizations, shares=shares, processors=processors)
    assert len(dealt) == organizations
    assert sum(dealt) == processors
    assert min(dealt) >= 1
    assert dealt == sorted(dealt, reverse=True)


@given(SIZES)
def test_uniform_shares_differ_by_one_at_most(sizes: tuple[int, int]) -> None:
    organizations, processors = sizes
    dealt = processor_shares(organizations, shares="uniform", processors=processors)
    assert dealt[0] - dealt[-1] <= 1


@given(SIZES)
def test_zipf_shares_are_the_exact_quotas_rounded_up_or_down(sizes: tuple[int, int]) -> None:
    organizations, processors = sizes
    whole = sum(Fraction(1, rank) for rank in range(1, organizations + 1))
    quotas = [processors / (rank * whole) for rank in range(1, organizations + 1)]
    dealt = processor_shares(organizations, shares="zipf", processors=processors)
    if quotas[-1] >= 1:  # else some give to those who would have none
        assert all(abs(n - quota) < 1 for n, quota in zip(dealt, quotas, strict=True))


def test_the_papers_70_processors_by_zipf() -> None:
    # 70 / (1 + 1/2 + 1/3 + 1/4 + 1/5) = 30.66, 15.33, 10.22, 7.66, 6.13: two are left over
    assert processor_shares(5, shares="zipf", processors=70) == [31, 15, 10, 8, 6]


def test_nobody_is_left_without_a_processor() -> None:
    assert processor_shares(6, shares="zipf", processors=6) == [1] * 6
    assert processor_shares(6, shares="zipf", processors=7) == [2, 1, 1, 1, 1, 1]


@given(USERS, st.integers(1, 9), st.integers(0, 2**32))
def test_all_jobs_of_a_user_are_one_organizations_and_jobs_without_user_nobodys(
    users: list[str | None], organizations: int, seed: int
) -> None:
    log = log_of([0] * len(users), user=users)
    dealt = deal(log, organizations, shares="uniform", processors=9, seed=seed)
    whose: dict[str, int] = {}
    for user, organization in zip(users, dealt.organization.tolist(), strict=True):
        if user is None:
            assert organization == UNKNOWN
        else:
            assert 0 <= organization < organizations
            assert whose.setdefault(user, organization) == organization
    assert dealt.placed is None


@given(USERS, st.integers(0, 2**32))
def test_the_same_seed_deals_the_same(users: list[str | None], seed: int) -> None:
    log = log_of([0] * len(users), user=users)
    one, other = (deal(log, 5, shares="zipf", processors=70, seed=seed) for _ in range(2))
    assert one.organization.tolist() == other.organization.tolist()
    assert one.owned.tolist() == other.owned.tolist()


@given(USERS, st.integers(0, 2**32))
def test_users_draw_in_the_order_in_which_they_appear_however_the_log_lists_them(
    users: list[str | None], seed: int
) -> None:
    log = log_of([0] * len(users), user=users)
    codes = ["hgfedcba".index(user) if user else UNKNOWN for user in users]
    listed = Labels(np.array(codes, dtype=np.int32), tuple("hgfedcba"))
    one, other = (
        deal(each, 5, shares="zipf", processors=70, seed=seed)
        for each in (log, replace(log, labels={"user": listed}))
    )
    assert one.organization.tolist() == other.organization.tolist()


def test_the_deal_of_a_seed_never_changes() -> None:
    log = log_of([0] * 8, user=list("abcdefgh"))
    dealt = deal(log, 5, shares="zipf", processors=70, seed=1)
    assert dealt.organizations == tuple(f"organization{i}" for i in range(1, 6))
    assert dealt.owned.tolist() == [31, 15, 10, 8, 6]
    assert dealt.organization.tolist() == [0, 4, 3, 1, 2, 2, 3, 3]


def test_users_are_dealt_uniformly_and_independently() -> None:
    log = log_of([0, 0], user=["a", "b"])
    pairs = Counter(
        tuple(deal(log, 2, shares="uniform", processors=2, seed=seed).organization.tolist())
        for seed in range(4000)
    )
    assert all(900 < pairs[pair] < 1100 for pair in [(0, 0), (0, 1), (1, 0), (1, 1)])


@pytest.mark.parametrize(
    ("organizations", "processors", "expected"),
    [
        (0, 70, "cannot deal out to 0 organizations; choose from 1 to 256"),
        (257, 300, "cannot deal out to 257 organizations; choose from 1 to 256"),
        (5, 4, "cannot deal 4 processors out to 5 organizations; give at least 5 processors"),
    ],
)
def test_what_cannot_be_dealt_is_reported_with_a_remedy(
    organizations: int, processors: int, expected: str
) -> None:
    log = log_of([0], user=["a"])
    with pytest.raises(WorkloadError, match=expected):
        deal(log, organizations, shares="zipf", processors=processors, seed=0)


@pytest.mark.parametrize("log", [log_of([0]), log_of([0], user=[None])])
def test_a_log_without_users_cannot_be_dealt(log: Log) -> None:
    with pytest.raises(WorkloadError, match=r"jobs\.log: does not name users") as caught:
        deal(log, 2, shares="zipf", processors=2, seed=0)
    assert caught.value.remedy is Remedy.NAME_ORGANIZATIONS


def test_a_log_without_jobs_is_not_said_to_lack_users() -> None:
    with pytest.raises(WorkloadError, match=r"jobs\.log: no job with a known processing time"):
        deal(log_of([]), 2, shares="zipf", processors=2, seed=0)


def test_owned_processors_are_whole_numbers_of_64_bits() -> None:
    dealt = deal(log_of([0], user=["a"]), 1, shares="zipf", processors=2**31, seed=0)
    assert dealt.owned.dtype == np.int64
    assert dealt.organization.dtype == np.int32
