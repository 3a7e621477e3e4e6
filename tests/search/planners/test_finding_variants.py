"""Findings become variants: ordered, deduplicated, without contradictions, and combined if there is room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlx.diagnose.finding import Finding
from rlx.search.planners.finding_variants import (
    cross_checked,
    from_findings,
    space_of_variants,
    with_combinations,
)
from rlx.search.planners.neighbourhood import neighbourhood, single_steps

SETTINGS = {"algo.learning_rate": 1e-3, "algo.gamma": 0.9, "algo.entropy_coef": 0.0, "algo.value_coef": 0.0}


def finding(rule: str, *changes: Mapping[str, Any]) -> Finding:
    return Finding(rule, "high", f"{rule} is seen", (), (), changes)


def allowed(_changes: Mapping[str, Any]) -> str:
    return ""


FOUND = [
    finding("hot", {"algo.learning_rate": 1e-4}, {"algo.entropy_coef": 0.01}),
    finding("short", {"algo.gamma": 0.99}),
    finding("cold", {"algo.learning_rate": 1e-2}),
    finding("hot_too", {"algo.learning_rate": 1e-4}),
]


def test_the_first_change_of_every_finding_comes_first() -> None:
    variants = from_findings(FOUND, describe=str)

    assert [variant.rule for variant in variants] == ["hot", "short", "cold", "hot_too", "hot"]


def test_repeats_contradictions_and_refusals_are_left_out_with_a_reason() -> None:
    def refusal(changes: Mapping[str, Any]) -> str:
        return "locked" if "algo.entropy_coef" in changes else ""

    plan = cross_checked(from_findings(FOUND, describe=str), SETTINGS, refusal=refusal, most=8)

    assert [variant.rule for variant in plan.variants] == ["hot", "short"]
    assert [left_out.reason for left_out in plan.left_out] == [
        "`hot` comes first and moves `algo.learning_rate` the other way",
        "`hot` proposes the same",
        "locked",
    ]


def test_free_slots_are_used_for_combinations() -> None:
    plan = cross_checked(from_findings(FOUND[:2], describe=str), SETTINGS, refusal=allowed, most=8)
    combined = with_combinations(plan, most=8)

    assert {"algo.learning_rate": 1e-4, "algo.gamma": 0.99} in [dict(variant.changes) for variant in combined.variants]
    assert len(combined.variants) == 3 + 4  # three tweaks on different keys, and every combination of them
    assert len(with_combinations(plan, most=4).variants) == 4


def test_variants_span_a_space_with_the_present_config_first() -> None:
    plan = cross_checked(from_findings(FOUND[:2], describe=str), SETTINGS, refusal=allowed, most=8)
    space, configs = space_of_variants(plan.variants, SETTINGS)

    assert configs[0] == {"algo.learning_rate": 1e-3, "algo.gamma": 0.9, "algo.entropy_coef": 0.0}
    assert all(space.point(values) is not None for values in configs)
    assert len({space.identity(values) for values in configs}) == len(configs)


def test_steps_from_a_config_change_one_key_and_start_with_values_outside_all_limits() -> None:
    steps = single_steps(SETTINGS)

    assert list(steps[0]) == ["algo.value_coef"]
    assert all(len(step) == 1 for step in steps)
    assert all(value != SETTINGS[key] for step in steps for key, value in step.items())


def test_a_config_lies_in_its_own_neighbourhood() -> None:
    settings = {"algo.learning_rate": 0.5, "algo.gamma": 0.8, "algo.rollout_steps": 5, "policy.hidden_sizes": [7]}
    space = neighbourhood(settings)

    assert space.point({key: settings[key] for key in space.keys}) is not None
