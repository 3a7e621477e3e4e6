"""`rlx check spec` finds planted design defects, also if the spec declares them away, and none in the catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlx.config import catalog
from rlx.config.schema import Env
from rlx.design.check_spec import CheckedSpec, check_spec, cite, plan_signals, weighed
from rlx.design.env_profile import EnvProfile, profile_env
from rlx.design.knowledge_card import choose
from rlx.design.problem_spec import ProblemSpec
from rlx.design.spec_draft import draft_spec
from rlx.design.spec_plan_rules import PLAN_RULES
from rlx.design.spec_rules import MEASURED_RULES, SpecCase
from rlx.diagnose.rule import run_rules
from rlx.errors import RlxError

WALK = "tests.design.planted_walk:Walk"
ROOT = Path(__file__).parents[2]
SECONDS = 0.7
ARRAY = """
import numpy as np

from tests.design.planted_walk import Walk

class Array(Walk):
    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, np.array([reward]), terminated, truncated, info
"""
IN_THE_WORLD = {
    "outside": "obs_outside_space",
    "dead input": "obs_constant",
    "dead action": "dead_action",
    "truncates failure": "termination_as_truncation",
    "terminates at limit": "time_limit_as_termination",
    "seed": "seed_ignored",
    "aliased": "obs_aliased",
    "nan": "not_finite",
    "leak": "spec_leak",
    "dominance": "spec_reward_dominance",
    "alive": "spec_alive_bonus",
    "endless": "never_ends",
    "long": "spec_discount",
    "sparse": "spec_sparse_reward",
    "extra": "spec_observation",
    "continuous": "spec_action",
    "wide action": "spec_scale",
    "huge observation": "spec_scale",
    "huge reward": "spec_scale",
}
IN_THE_PLAN: dict[str, dict[str, Any]] = {
    "spec_batch": {"architecture": {"learner": {"batch_size": 77}}},
    "spec_buffer_kind": {"architecture": {"buffer": {"kind": "replay"}}},
    "spec_placement": {"architecture": {"placement": {"machines": 4}}},
    "spec_policy_lag": {"architecture": {"rollout": {"policy_lag": 20}}},
    "spec_algorithm": {"strategy": {"algorithm": "sac"}},
    "spec_horizon": {"mdp": {"horizon": 20}},
    "spec_observability": {"mdp": {"observability": "partial"}},
    "spec_control_rate": {"mdp": {"control_dt": 0.05, "physics_dt": 0.02}},
    "spec_agents": {"multi_agent": {"agents": 3}},
    "spec_hierarchy": {"hierarchy": {"period": 10, "goals": ["altitude"]}},
    "spec_demonstrations": {"imitation": {"method": "bc", "demonstrations": 5}},
    "spec_offline": {"offline": {"algorithm": "cql", "baseline": "none"}},
    "spec_preferences": {"preferences": {"pairs": 100, "hold_out": 0.0}},
    "spec_curriculum": {"curriculum": {"levels": 10, "is_generated": True, "score": "return"}},
    "spec_evaluation": {"evaluation": {"episodes": 3, "training_seeds": 1}},
    "spec_robustness": {"robustness": {"conditions": ["delay"], "control": False}},
}


@pytest.fixture(scope="module")
def sound() -> ProblemSpec:
    return draft_spec(Env(id=WALK), root=ROOT, seconds=SECONDS)


@pytest.fixture(scope="module")
def checked(sound: ProblemSpec) -> CheckedSpec:
    return check_spec(sound, root=ROOT, seconds=SECONDS)


def with_changes(spec: ProblemSpec, changes: dict[str, Any]) -> ProblemSpec:
    return ProblemSpec.model_validate(merged(spec.model_dump(by_alias=True), changes))


def merged(data: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    result = dict(data)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            value = merged(result[key], value)
        result[key] = value
    return result


def test_a_drafted_spec_of_a_sound_environment_is_sound(checked: CheckedSpec) -> None:
    assert checked.is_sound, [(finding.rule, finding.claim) for finding in checked.findings]


@pytest.mark.parametrize("defect", IN_THE_WORLD)
def test_a_defect_of_the_world_is_found_though_the_spec_declares_it_away(defect: str, sound: ProblemSpec) -> None:
    """The spec describes the sound walk: it declares that the defect does not exist."""
    spec = with_changes(sound, {"env": {"id": WALK, "kwargs": {"defect": defect}}})
    if defect in ("sparse", "wide action"):
        spec = with_changes(spec, {"strategy": {"algorithm": "ppo"}})
    if defect == "long":
        spec = with_changes(spec, {"mdp": {"discount": 0.98}})
    found = {finding.rule for finding in check_spec(spec, root=ROOT, seconds=SECONDS).findings}
    assert IN_THE_WORLD[defect] in found


@pytest.mark.parametrize("rule", IN_THE_PLAN)
def test_a_defect_of_the_plan_is_found(rule: str, sound: ProblemSpec, checked: CheckedSpec) -> None:
    spec = with_changes(sound, {"strategy": {"algorithm": "ppo"}, "architecture": {"buffer": {"kind": "rollout"}}})
    spec = with_changes(spec, IN_THE_PLAN[rule])
    case = type(checked.case)(**{**vars(checked.case), "spec": spec})
    found = {finding.rule for finding in run_rules((*MEASURED_RULES, *PLAN_RULES), case).findings}
    assert rule in found


@pytest.mark.parametrize("defect", ["terminates at limit", "truncates failure", "dead action"])
def test_a_defect_of_the_worlds_mdp_or_actions_makes_the_spec_unsound(defect: str, sound: ProblemSpec) -> None:
    """`rlx check env` calls some of them doubts. A design that rests on them must not pass."""
    spec = with_changes(sound, {"env": {"id": WALK, "kwargs": {"defect": defect}}})
    assert not check_spec(spec, root=ROOT, seconds=SECONDS).is_sound


def test_a_reward_that_is_an_array_is_a_defect_and_not_a_crash(sound: ProblemSpec, tmp_path: Path) -> None:
    (tmp_path / "array.py").write_text(ARRAY)
    spec = with_changes(sound, {"env": {"id": "array.py:Array"}})
    checked = check_spec(spec, root=tmp_path, seconds=SECONDS)
    assert "reward_type" in {finding.rule for finding in checked.findings}
    assert not checked.is_sound
    with pytest.raises(RlxError, match="the reward is a NumPy array"):
        draft_spec(Env(id="array.py:Array"), root=tmp_path, seconds=SECONDS)


def test_wrong_bounds_count_where_they_are_read_or_can_be_fixed(sound: ProblemSpec) -> None:
    """LunarLander leaves its bounds. That is a remark, until a wrapper reads them; in your own code it is a defect."""
    spec = with_changes(sound, {"env": {"id": "LunarLander-v3"}})
    reads = with_changes(spec, {"env": {"wrappers": [{"name": "rescale_observation", "kwargs": {}}]}})
    own = with_changes(sound, {"env": {"id": WALK, "kwargs": {"defect": "outside"}}})
    profile = profile_env(spec.env, root=ROOT, seconds=SECONDS)
    severities = [severity_of_bounds(plan, profile) for plan in (spec, reads, own)]
    assert severities == ["low", "high", "high"]


def severity_of_bounds(spec: ProblemSpec, profile: EnvProfile) -> str:
    finding = next(finding for finding in profile.findings if finding.rule == "obs_outside_space")
    return weighed(finding, SpecCase(spec, profile)).severity


def test_a_randomised_factor_must_exist(sound: ProblemSpec) -> None:
    spec = with_changes(sound, {"env": {"id": "CartPole-v1"}, "randomisation": {"factors": {"viscosity": "1,2"}}})
    found = {finding.rule for finding in check_spec(spec, root=ROOT, seconds=0.5).findings}
    assert "spec_randomisation" in found


def test_a_dataset_must_fit_the_environment(sound: ProblemSpec, tmp_path: Path) -> None:
    import numpy as np

    np.savez(
        tmp_path / "data.npz", observations=np.zeros((5, 7)), actions=np.zeros(5), rewards=np.zeros(5),
        terminations=np.zeros(5, bool), truncations=np.zeros(5, bool),
    )  # fmt: skip
    plan = {"env": {"id": "CartPole-v1"}, "offline": {"dataset": "data.npz", "episodes": 5}}
    findings = check_spec(with_changes(sound, plan), root=tmp_path, seconds=0.5).findings
    assert any(finding.rule == "spec_offline" and "7 numbers" in finding.claim for finding in findings)


def test_every_rule_of_a_spec_has_a_planted_defect() -> None:
    planted = {*IN_THE_WORLD.values(), *IN_THE_PLAN, "spec_randomisation"}
    assert {rule.id for rule in (*MEASURED_RULES, *PLAN_RULES)} <= planted


def test_most_findings_cite_a_card_with_its_source() -> None:
    assert cite("spec_discount")["cards"] == ["mdp-discount-horizon"]
    assert any("Sutton" in source for source in cite("spec_discount")["sources"])


def test_cards_follow_from_the_plan_alone(sound: ProblemSpec) -> None:
    spec = with_changes(sound, {"task": "a quadruped on rough terrain", "is_for_robot": True})
    chosen = {found.card.id for found in choose(plan_signals(spec))}
    assert {"leg-joint-targets", "leg-terrain-curriculum", "ood-before-robot"} <= chosen


@pytest.mark.slow
@pytest.mark.parametrize("env_id", sorted({entry.env_id for entry in catalog.ENTRIES.values()}))
def test_the_catalogs_environments_have_no_design_defect(env_id: str) -> None:
    spec = draft_spec(Env(id=env_id), root=ROOT, seconds=1)
    checked = check_spec(spec, root=ROOT, seconds=1)
    assert checked.is_sound, [(finding.rule, finding.claim) for finding in checked.findings]
