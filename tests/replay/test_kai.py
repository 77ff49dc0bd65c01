"""Fair shares as KAI divides them: where jobs last a second, just those are allocated."""

from __future__ import annotations

import pytest

from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.policies.names import policy_named
from tests.replay.test_karma import allocated, demands


def test_what_is_above_quotas_is_divided_by_weights() -> None:
    """The third one leaves 6, of which the others get 2 and 4."""
    asked = {0: [12], 1: [12], 2: [0]}
    assert allocated(demands([2, 4, 6], asked), "kai") == [[4], [8], [0]]


def test_what_some_do_not_need_is_divided_again() -> None:
    """Of 8 left they would get 2, 2 and 4, of the 1 that the first one leaves ⅓ and ⅔."""
    asked = {0: [5], 1: [24], 2: [24], 3: [0]}
    assert allocated(demands([4, 4, 8, 8], asked), "kai") == [[5], [6], [13], [0]]


def test_what_is_rounded_down_most_is_rounded_up() -> None:
    """Of 5 left they are due 5 · (2, 3, 5) / 10 = 1, 1½ and 2½; the one listed first gets more."""
    asked = {0: [15], 1: [15], 2: [15], 3: [0]}
    assert allocated(demands([2, 3, 5, 5], asked), "kai") == [[3], [5], [7], [0]]


def test_usage_lowers_the_weight() -> None:
    """The first one has used 12 of 16 processors for half of all that counts: ⅜.

    Of 8 left they get 8 · ⅝ / 1⅝ = 3.08 and 8 / 1⅝ = 4.92.
    """
    workload = demands([4, 4, 8], {0: [12, 16], 1: [0, 16], 2: [0, 0]})
    assert allocated(workload, "kai:1s") == [[12, 7], [0, 9], [0, 0]]
    assert allocated(workload, "kai") == [[12, 8], [0, 8], [0, 0]]


def test_usage_takes_no_quota() -> None:
    """Twice its weight, ¼, is less than the half that it used, so that it gets its quota alone."""
    workload = demands([1, 7, 8], {0: [16, 16], 1: [0, 16], 2: [0, 0]})
    assert allocated(workload, "kai:1s") == [[16, 1], [0, 15], [0, 0]]
    assert allocated(workload, "kai") == [[16, 2], [0, 14], [0, 0]]


def test_without_a_half_life_nothing_is_remembered() -> None:
    workload = demands([4, 4], {0: [8] * 5 + [8], 1: [0] * 5 + [8]})
    assert allocated(workload, "kai") == [[8] * 5 + [4], [0] * 5 + [4]]


@pytest.mark.parametrize("policy", ["kai:", "kai:0s", "fairshare:soon"])
def test_a_half_life_that_is_none_is_refused(policy: str) -> None:
    with pytest.raises(PolicyError, match=f"'{policy}': .* write for instance .*:7d"):
        policy_named(policy)
