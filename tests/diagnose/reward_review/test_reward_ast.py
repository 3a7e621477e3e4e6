from __future__ import annotations

import textwrap

import pytest

from rlx.diagnose.reward_review.reward_ast import RewardFunction, parse, reward_functions
from rlx.errors import ConfigError, NotFound


def functions(text: str, name: str | None = None) -> list[RewardFunction]:
    return reward_functions(parse(textwrap.dedent(text), place="r.py"), name, place="r.py")


def parts(text: str) -> list[tuple[float, str, tuple[str, ...]]]:
    (only,) = functions(text)
    return [(one.factor, one.text, one.conditions) for one in only.addends]


def test_a_sum_is_taken_apart_through_names_signs_and_factors() -> None:
    found = parts("""
        W = 2.0
        def reward(speed, action):
            cost = 0.1 * sum(action)
            forward = W * speed
            return forward - cost
    """)
    assert found == [(2.0, "speed", ()), (-0.1, "sum(action)", ())]


def test_conditions_stand_beside_what_they_guard() -> None:
    found = parts("""
        def reward(done, reached):
            total = -1
            if reached:
                total += 10.0
            return total + (0.5 if not done else 0.0)
    """)
    assert found == [
        (-1.0, "1", ()),
        (1.0, "10.0", ("reached",)),
        (1.0, "0.5", ("not done",)),
        (1.0, "0.0", ("not (not done)",)),
    ]


def test_terms_in_a_dict_are_added_up() -> None:
    found = parts("""
        def reward(x):
            terms = {"move": x, "time": -0.1}
            terms["goal"] = 5.0 * (x > 1)
            return float(sum(terms.values())), terms
    """)
    assert found == [(1.0, "x", ()), (-1.0, "0.1", ()), (5.0, "x > 1", ())]


def test_the_reward_of_a_step_is_its_second_value() -> None:
    found = parts("""
        class Env:
            bonus = 3.0
            def step(self, action):
                reward = self.bonus
                return self.obs, reward, False, False, {}
    """)
    assert found == [(1.0, "self.bonus", ())]


def test_a_name_that_refers_to_itself_ends() -> None:
    assert parts("""
        def reward(x):
            total = x
            total = total + 1
            return total
    """) == [(1.0, "x", ()), (1.0, "total", ()), (1.0, "1", ())]


FILE = """
def helper(x): return x
def my_reward(x): return x
class World:
    def reset(self): return 0
    def step(self, a): return 0, 1.0, False, False, {}
class Other(World):
    def reward(self): return 2.0
"""


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (None, ["my_reward", "World.step", "Other.reward"]),
        ("helper", ["helper"]),
        ("World", ["World.step"]),
        ("World.step", ["World.step"]),
        ("Other", ["World.step", "Other.reward"]),
    ],
)
def test_a_name_means_a_function_a_class_or_all(name: str | None, found: list[str]) -> None:
    assert [one.name for one in functions(FILE, name)] == found


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(NotFound, match="no function or class `my_rewrad`") as caught:
        functions(FILE, "my_rewrad")
    assert caught.value.hint == "did you mean `r.py:my_reward`?"
    with pytest.raises(NotFound, match="no function that computes a reward") as caught:
        functions("def helper(x): return x")
    assert "helper" in str(caught.value.hint)
    with pytest.raises(NotFound, match="no function that computes a reward"):
        functions("")
    with pytest.raises(ConfigError, match=r"^r\.py:1: "):
        functions("def reward(:")


def test_nothing_is_executed() -> None:
    assert functions("raise SystemExit(1)\ndef reward(x): return x")[0].name == "reward"


APART = """
def compute_reward(env, action):
    return sum(reward_terms(env, action).values())

def reward_terms(env, action):
    return {"height": env.height, "effort": -action ** 2}

def unused_reward():
    return 1.0

class Walk:
    def step(self, action):
        self.height += action
        return None, compute_reward(self, action), False, False, {}
"""


def test_functions_of_the_file_that_a_class_calls_and_that_are_named_after_a_reward_are_its_own() -> None:
    found = functions(APART, "Walk")
    assert [one.name for one in found] == ["Walk.step", "compute_reward", "reward_terms"]
