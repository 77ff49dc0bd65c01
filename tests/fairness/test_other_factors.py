"""What Slurm's other priority factors can add to a job, so that a step can be made larger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shapleyprio.fairness.scale import scale
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.layout import (
    Layout,
    Partition,
    PrioritySettings,
    others_by_factor,
    others_can_add,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

WEIGHTS = {"Age": 1000, "FairShare": 20_000, "JobSize": 0, "Partition": 300, "QOS": 5000}


def layout(
    weights: Mapping[str, int] = WEIGHTS,
    *,
    flags: frozenset[str] = frozenset(),
    qos: Mapping[str, int] | None = None,
    partition_factors: tuple[int, ...] = (1, 7),
    priority_type: str = "priority/multifactor",
) -> Layout:
    return Layout(
        cluster="c",
        version="24.11.5",
        nodes={},
        partitions={
            f"p{factor}": Partition(
                name=f"p{factor}", nodes=(), allow_accounts=(), priority_job_factor=factor
            )
            for factor in partition_factors
        },
        accounts={},
        qos_priorities={"normal": 0, "high": 40} if qos is None else qos,
        enforces_accounts=True,
        settings=PrioritySettings(
            type=priority_type,
            weights=weights,
            flags=flags,
            calc_period_seconds=300,
            max_age_seconds=604_800,
            site_factor_plugin="",
        ),
    )


@pytest.mark.parametrize("channel", ["site_factor", "nice"])
def test_normalized_factors_add_at_most_their_weights(channel: str) -> None:
    assert others_by_factor(layout(), CHANNELS[channel].factor) == {
        "Age": 1000,
        "FairShare": 20_000,
        "Partition": 300,
        "QOS": 5000,
    }
    assert others_can_add(layout(), CHANNELS[channel].factor) == 26_300


def test_each_trackable_resource_adds_its_weight() -> None:
    weights = {"Age": 10, "TRES:cpu": 200, "TRES:gres/gpu": 3000}
    assert others_can_add(layout(weights), None) == 3210


def test_the_channel_we_write_to_is_not_one_of_the_others() -> None:
    assert others_can_add(layout(), "QOS") == 21_300


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("NO_NORMAL_QOS", {"QOS": 5000 * 40, "Partition": 300}),
        ("NO_NORMAL_PART", {"QOS": 5000, "Partition": 300 * 7}),
        ("NO_NORMAL_ALL", {"QOS": 5000 * 40, "Partition": 300 * 7}),
        ("MAX_TRES", {"QOS": 5000, "Partition": 300}),
    ],
)
def test_a_factor_that_slurm_does_not_normalize_is_multiplied_by_its_largest_value(
    flag: str, expected: dict[str, int]
) -> None:
    weights = {"Partition": 300, "QOS": 5000}
    others = others_by_factor(layout(weights, flags=frozenset({flag})), None)
    assert others == expected


def test_factors_that_are_zero_everywhere_add_nothing() -> None:
    flat = layout(qos={"normal": 0}, partition_factors=(0,))
    assert others_can_add(flat, None) == 21_000
    bare = layout(qos={}, partition_factors=())
    assert others_can_add(bare, None) == 21_000


def test_without_the_multifactor_plugin_nothing_else_adds() -> None:
    assert others_can_add(layout(priority_type="priority/basic"), None) == 0


def test_strict_order_is_made_to_outweigh_them_all() -> None:
    others = others_can_add(layout({"FairShare": 1_000_000, "Age": 50_000}), None)
    assert others == 1_050_000
    on = scale(5, others, None)
    assert on.step > others


@pytest.mark.parametrize("channel", ["site_factor", "nice"])
def test_a_step_of_site_factor_or_nice_counts_as_it_is(channel: str) -> None:
    on = scale(3, 0, 1000)
    assert CHANNELS[channel].step_in_points(layout(), on, 3) == 500


def test_a_step_of_qos_priority_is_normalized_against_the_largest_and_weighted() -> None:
    on = scale(3, 0, 1000)  # 500, 1000, 1500
    assert CHANNELS["qos"].step_in_points(layout(), on, 3) == 5000 * 500 // 1500
    larger = layout(qos={"urgent": 10_000})
    assert CHANNELS["qos"].step_in_points(larger, on, 3) == 5000 * 500 // 10_000


def test_a_step_of_qos_priority_not_normalized_is_only_weighted() -> None:
    flags = frozenset({"NO_NORMAL_QOS"})
    assert CHANNELS["qos"].step_in_points(layout(flags=flags), scale(3, 0, 1000), 3) == 5000 * 500


def test_a_step_of_qos_priority_without_a_weight_is_worth_nothing() -> None:
    assert CHANNELS["qos"].step_in_points(layout({"Age": 10}), scale(3, 0, 1000), 3) == 0
