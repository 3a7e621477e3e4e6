"""What the source of a reward shows; every bad one beside a good one that differs in nothing else."""

from __future__ import annotations

import textwrap

import pytest

from rlx.diagnose.finding import Finding
from rlx.diagnose.reward_review.reward_ast import parse, reward_functions
from rlx.diagnose.reward_review.source_findings import review_source


def review(text: str, *, horizon: int | None = None) -> list[Finding]:
    tree = parse(textwrap.dedent(text).strip(), place="r.py")
    return review_source(reward_functions(tree, None, place="r.py"), tree, place="r.py", horizon=horizon)


def rules(text: str, *, horizon: int | None = None) -> list[str]:
    return [one.rule for one in review(text, horizon=horizon)]


@pytest.mark.parametrize(
    "body",
    [
        "return 1.0 / distance",
        "return np.exp(speed)",
        "return np.log(distance)",
        "return speed ** 2",
        "return 0.5 * speed ** 2 - 0.1 * distance",
    ],
)
def test_what_has_no_limit_is_found(body: str) -> None:
    assert rules(f"def reward(distance, speed):\n    {body}") == ["reward_unbounded"]


@pytest.mark.parametrize(
    "body",
    [
        "return 1.0 / (distance + 0.01)",
        "return 1.0 / max(distance, 0.1)",
        "return np.exp(-distance)",
        "return np.exp(-2.0 * distance ** 2)",
        "return np.log(distance + 1e-6)",
        "return -speed ** 2",
        "return np.clip(speed ** 2, 0, 10)",
        "return np.tanh(np.exp(speed))",
        "return speed / 10",
        "return speed - 0.1 * distance",
    ],
)
def test_what_is_bounded_or_merely_linear_is_not(body: str) -> None:
    assert rules(f"def reward(distance, speed):\n    {body}") == []


def test_a_finding_has_the_line_it_stands_on() -> None:
    (found,) = review("def reward(distance):\n    near = 1.0 / distance\n    return near")
    assert (found.evidence[0].what, found.evidence[0].value) == ("r.py:2", "1.0 / distance")


def test_constants_on_conditions_are_sparse_and_a_wage_is_not() -> None:
    assert rules("def reward(x, goal):\n    return 1.0 if x > goal else 0.0") == ["reward_sparse"]
    assert rules("def reward(x):\n    return -1.0 + 5.0 * (x > 3)") == ["reward_sparse"]
    assert rules("def reward(x, terminated):\n    return 1.0 if not terminated else 0.0") == []
    assert rules("def reward(x, goal):\n    return (1.0 if x > goal else 0.0) - 0.1 * abs(x - goal)") == []


ALIVE = """
def reward(speed, reached_goal, *, healthy_reward={wage}):
    total = healthy_reward + 0.1 * speed
    if reached_goal:
        total += 50.0
    return total
"""


def test_staying_must_not_pay_more_than_finishing() -> None:
    (found,) = review(ALIVE.format(wage=1.0))
    assert (found.rule, found.severity) == ("alive_bonus_beats_finishing", "high")
    assert "100 in 100 steps, more than finishing (50)" in found.claim
    assert rules(ALIVE.format(wage=0.1)) == []
    assert rules(ALIVE.format(wage=0.1), horizon=1000) == ["alive_bonus_beats_finishing"]
    assert rules(ALIVE.format(wage=-1.0)) == []


def test_constants_of_very_different_size_are_found() -> None:
    assert rules("def reward(x, won):\n    return 0.001 * x + 5000.0 * won") == ["reward_scale"]
    assert rules("def reward(x, won):\n    return 0.1 * x + 10.0 * won") == []


@pytest.mark.parametrize(
    "body",
    [
        "return max(0.0, self.prev_distance - distance)",
        "return np.maximum(self.prev_distance - distance, 0)",
        "gain = self.prev_distance - distance\n        return np.clip(gain, 0, 1)",
        "total = -0.01\n        if distance < self.prev_distance:\n"
        "            total += self.prev_distance - distance\n        return total",
    ],
)
def test_progress_that_takes_nothing_back_is_farmable(body: str) -> None:
    assert rules(f"class Env:\n    def reward(self, distance):\n        {body}") == ["shaping_farmable"]


def test_a_difference_of_potentials_needs_its_discount() -> None:
    source = "def reward(distance, prev_distance, gamma):\n    return {}"
    assert rules(source.format("prev_distance - distance")) == ["shaping_without_discount"]
    assert rules(source.format("prev_distance - 0.99 * distance")) == []
    assert rules(source.format("prev_distance - gamma * distance")) == []


def test_a_smoothness_cost_is_no_shaping() -> None:
    assert (
        rules("def reward(action, last_action):\n    return -np.sum((action - last_action) ** 2) - 0.1 * action[0]")
        == []
    )
    assert rules("def reward(action, last_action):\n    return -0.5 * abs(action - last_action)") == []


def test_pay_for_being_near_a_goal_is_not_potential_based() -> None:
    source = "def reward(distance, success):\n    return {} + 10.0 * success"
    assert rules(source.format("np.exp(-distance)")) == ["shaping_not_potential"]
    assert rules(source.format("-distance")) == []
    assert rules("def reward(distance):\n    shaping = 0.1 * np.cos(distance)\n    return shaping - distance") == []
    assert rules("def reward(near):\n    potential = near.mean()\n    return potential") == ["shaping_not_potential"]


def test_a_term_that_enters_nothing_is_found() -> None:
    source = "def reward(x):\n    time_penalty = -0.1\n    return x{}"
    assert rules(source.format("")) == ["term_not_used"]
    assert rules(source.format(" + time_penalty")) == []


WEIGHTS = """
WEIGHTS = {{"forward": 1.0, "contact": 0.1}}

def reward(x):
    terms = {{"forward": x, "{other}": -x}}
    return sum(WEIGHTS[name] * value for name, value in terms.items())
"""


def test_weights_and_terms_must_meet() -> None:
    assert rules(WEIGHTS.format(other="contact")) == []
    found = review(WEIGHTS.format(other="control"))
    assert [one.rule for one in found] == ["weight_without_term", "term_without_weight"]
    assert [one.evidence[0].what for one in found] == ["r.py:1", "r.py:4"]


def test_a_weight_without_a_function_is_found() -> None:
    source = "class Env:\n    scales = {'speed': 1.0, 'torque': -0.1}\n    def _reward_speed(self): return self.v\n"
    assert rules(source) == ["weight_without_term"]
    assert rules(source + "    def _reward_torque(self): return self.t\n") == []
