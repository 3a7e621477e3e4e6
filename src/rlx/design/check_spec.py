"""Checks a spec against the real environment: plays it, measures it, and runs every rule on both."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from rlx.design import signals
from rlx.design.env_profile import SECONDS, EnvProfile, profile_env
from rlx.design.knowledge_card import cards_for_finding, find_card
from rlx.design.problem_spec import ProblemSpec
from rlx.design.signals import Signals
from rlx.design.spec_draft import experiment_data
from rlx.design.spec_plan_rules import PLAN_RULES
from rlx.design.spec_rules import MEASURED_RULES, SpecCase, term_shares
from rlx.design.spec_sections import DESIGN_RULES
from rlx.diagnose.finding import Finding
from rlx.diagnose.reward_review.review import play_random, review
from rlx.diagnose.reward_review.step_findings import PlayedEpisode
from rlx.diagnose.rule import by_severity, run_rules
from rlx.envs.make import make_env
from rlx.envs.vector import is_batched
from rlx.errors import RlxError
from rlx.evaluate.robustness.env_parameter import parse_parameter

MOST_SECONDS_OF_EPISODES = 20.0
EPISODES = 10
UNPLAYABLE = {"env_raises", "api", "env_hangs", "obs_shape", "never_ends"}
"""Findings after which no whole episodes are played."""
READS_BOUNDS = ("rescale_observation",)
"""Wrappers that use the declared bounds of an observation."""
DATA_KEYS = ("observations", "actions", "rewards", "terminations", "truncations")


@dataclass(frozen=True)
class CheckedSpec:
    """The findings of a spec with the cards behind them, and the parts that could not be checked."""

    case: SpecCase
    findings: tuple[Finding, ...]
    silent: tuple[str, ...]
    unchecked: tuple[tuple[str, str], ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing must be fixed. A medium finding counts if its rule speaks about a section of a spec."""
        for finding in self.findings:
            if finding.severity == "high" or (finding.severity == "medium" and finding.rule in DESIGN_RULES):
                return False
        return True

    def document(self) -> list[dict[str, Any]]:
        """Return the findings as JSON-able data, each with its cards and sources."""
        return [{**finding.document(), **cite(finding.rule)} for finding in self.findings]


def cite(rule: str) -> dict[str, list[str]]:
    """Return the cards that stand behind a rule, and their sources."""
    ids = cards_for_finding(rule)
    sources = dict.fromkeys(source for card in ids for source in find_card(card).cite())
    return {"cards": list(ids), "sources": list(sources)}


def check_spec(spec: ProblemSpec, *, root: Path, seconds: float = SECONDS) -> CheckedSpec:
    """Compare every section of a spec with the environment. A declaration never hides what was measured."""
    profile = profile_env(spec.env, root=root, seconds=seconds)
    unchecked = list(profile.record.unchecked)
    episodes: tuple[PlayedEpisode, ...] = ()
    reviewed: tuple[Finding, ...] = ()
    cost = EPISODES * profile.horizon * profile.record.cost.step
    broken = {finding.rule for finding in profile.findings} & UNPLAYABLE
    if not profile.is_horizon_known:
        unchecked.append(("reward terms", "no episode ended in the time: --seconds 60 plays longer"))
    elif cost > MOST_SECONDS_OF_EPISODES:
        unchecked.append(("reward terms", f"{EPISODES} episodes would take {cost:.0f} s"))
    elif broken or profile.vector_error:
        unchecked.append(("reward terms", "the environment does not play whole episodes"))
    else:
        episodes = tuple(play_random(spec.env, root=root))
        reviewed = _reviewed(spec, root, unchecked)
    case = SpecCase(
        spec,
        profile,
        episodes,
        control_dt=_control_dt(spec, root),
        is_batched=is_batched(spec.env, root=root),
        absent_factors=tuple(_absent_factors(spec, root)),
        dataset_problems=tuple(_dataset_problems(spec, profile, root)),
    )
    report = run_rules((*MEASURED_RULES, *PLAN_RULES), case)
    of_env = [weighed(finding, case) for finding in profile.findings]
    findings = _without_repeats([*report.findings, *of_env, *reviewed])
    return CheckedSpec(case, by_severity(findings), report.silent, tuple(unchecked))


def weighed(finding: Finding, case: SpecCase) -> Finding:
    """Lower the severity of a finding that this plan does not depend on and that its author cannot fix.

    LunarLander and BipedalWalker of Gymnasium leave their bounds, and only a wrapper that reads the bounds suffers.
    MountainCarContinuous hands out its own array, and no trainer writes into observations.
    """
    env = case.spec.env
    is_installed = ":" not in env.id
    reads_bounds = any(wrapper.name in READS_BOUNDS for wrapper in env.wrappers)
    is_float = isinstance(case.profile.observation, spaces.Box) and case.profile.observation.dtype.kind == "f"
    if finding.rule == "obs_outside_space" and is_installed and is_float and not reads_bounds:
        return replace(finding, severity="low")
    if finding.rule == "obs_shared" and is_installed:
        return replace(finding, severity="low")
    return finding


def _without_repeats(findings: list[Finding]) -> list[Finding]:
    """Keep one finding per rule and claim: the inspection and the review see some defects both."""
    return list({(finding.rule, finding.claim): finding for finding in findings}.values())


def _reviewed(spec: ProblemSpec, root: Path, unchecked: list[tuple[str, str]]) -> tuple[Finding, ...]:
    """Return what the review of the reward found. Findings on its size alone stay with `rlx review`."""
    if spec.env.kwargs or spec.env.wrappers:
        unchecked.append(("reward source", "the environment has kwargs or wrappers; rlx review ENV reads it without"))
        return ()
    try:
        return review(spec.env.id, root=root).findings
    except RlxError as error:
        unchecked.append(("reward source", error.message))
        return ()


def _control_dt(spec: ProblemSpec, root: Path) -> float | None:
    """Return the time that one step simulates, if the environment says so (MuJoCo environments have `dt`)."""
    with contextlib.closing(make_env(spec.env, root=root)) as env:
        value = getattr(env.unwrapped, "dt", None)
    if isinstance(value, (int, float)):
        return float(value)
    return None


def _absent_factors(spec: ProblemSpec, root: Path) -> Iterator[tuple[str, str]]:
    if spec.randomisation is None:
        return
    for name, values in spec.randomisation.factors.items():
        try:
            parse_parameter(f"{name}={values}").refuse_absent(spec.env, root=root)
        except RlxError as error:
            yield name, error.message


def _dataset_problems(spec: ProblemSpec, profile: EnvProfile, root: Path) -> Iterator[tuple[str, str]]:
    """Compare the datasets of a spec (`.npz`) with the environment's spaces."""
    for section, plan in (("imitation", spec.imitation), ("offline", spec.offline)):
        if plan is None or not plan.dataset:
            continue
        path = root / plan.dataset
        if not path.is_file():
            yield section, f"`{plan.dataset}` does not exist"
            continue
        try:
            with np.load(path, allow_pickle=False) as data:
                arrays = {key: data[key] for key in data.files}
        except (ValueError, OSError):
            yield section, f"`{plan.dataset}` is not an .npz file without pickles"
            continue
        for problem in _array_problems(arrays, profile):
            yield section, problem


def _array_problems(arrays: dict[str, Any], profile: EnvProfile) -> Iterator[str]:
    missing = [key for key in DATA_KEYS if key not in arrays]
    if missing:
        yield f"it has no {', '.join(missing)}"
        return
    for key, columns in (("observations", profile.record.columns), ("actions", profile.record.action_columns)):
        shape = arrays[key].shape
        width = int(np.prod(shape[1:])) if len(shape) > 1 else 1
        if width != len(columns):
            yield f"{key} have {width} numbers, the environment has {len(columns)}"
    if not np.isfinite(np.asarray(arrays["rewards"], dtype=float)).all():
        yield "a reward is not finite"


def signals_of_spec(spec: ProblemSpec, *, root: Path, seconds: float = SECONDS) -> Signals:
    """Return the signals of a spec: its plan, the measured environment, and the findings of the check."""
    checked = check_spec(spec, root=root, seconds=seconds)
    found = signals.from_findings((finding.rule for finding in checked.findings), checked.silent)
    return {**plan_signals(spec), **checked.case.profile.signals(), **_term_signals(checked), **found}


def _term_signals(checked: CheckedSpec) -> Signals:
    shares = term_shares(checked.case.episodes)
    if not shares:
        return {}
    return {"largest_term_share": max(shares.values()), "reward_terms": float(len(shares))}


def plan_signals(spec: ProblemSpec) -> Signals:
    """Return the signals of a spec's declarations alone."""
    place = spec.architecture.placement
    rollout = spec.architecture.rollout
    found = {
        **signals.from_words(f"{spec.task} {spec.env.id}"),
        **signals.from_config(config_of(spec)),
        "is_for_robot": float(spec.is_for_robot),
        "trains_on_robot": float(spec.trains_on_robot),
        "privileged_inputs": float(len(spec.observation.privileged)),
        "is_partially_observable": float(spec.mdp.observability == "partial"),
        "frames": float(spec.observation.history),
        "has_gpu_simulator": float(place.simulator == "gpu"),
        "learner_on_gpu": float(place.learner == "gpu"),
        "machines": float(place.machines),
        "policy_lag": float(rollout.policy_lag),
        "has_importance_correction": float(rollout.correction != "none"),
        "success_is_declared": float(spec.reward.reports_success),
        "has_smoothness_term": float(spec.reward.has_smoothness_term),
        "training_seeds": float(spec.evaluation.training_seeds),
        "has_own_script": 0.0,
    }
    if spec.mdp.horizon is not None:
        found["horizon_in_discounts"] = spec.mdp.horizon * (1 - spec.mdp.discount)
    return {**found, **_data_signals(spec), **_world_signals(spec), **_agent_signals(spec)}


def _agent_signals(spec: ProblemSpec) -> Signals:
    found: Signals = {"agents": 1.0, "manager_period": 0.0}
    if spec.hierarchy is not None:
        found["manager_period"] = float(spec.hierarchy.period)
    plan = spec.multi_agent
    if plan is None:
        return found
    return {
        **found,
        "agents": float(plan.agents),
        "is_cooperative": float(plan.relation == "cooperative"),
        "is_competitive": float(plan.relation == "competitive"),
        "is_ctde": float(plan.training == "central"),
        "is_qmix": float(plan.method == "qmix"),
        "shares_parameters": float(plan.shared_parameters),
        "has_independent_baseline": float(plan.baseline == "independent"),
        "has_turns": float(plan.api == "aec"),
        "has_cross_play": float(plan.cross_play),
    }


def _data_signals(spec: ProblemSpec) -> Signals:
    found: Signals = {"demonstrations": 0.0, "offline_episodes": 0.0, "preference_pairs": 0.0, "is_irl": 0.0}
    if spec.imitation is not None:
        found["demonstrations"] = float(spec.imitation.demonstrations)
        found["is_expert_queryable"] = float(spec.imitation.is_expert_queryable)
        found["is_dagger"] = float(spec.imitation.method == "dagger")
        found["is_irl"] = float(spec.imitation.method in ("gail", "irl"))
    if spec.offline is not None:
        found["offline_episodes"] = float(spec.offline.episodes)
        found["behaviour_policies"] = float(spec.offline.behaviour_policies)
        found["has_bc_baseline"] = float(spec.offline.baseline == "bc")
        found["is_conservative"] = float(spec.offline.algorithm in ("cql", "iql"))
        found["tunes_on_test"] = float(spec.offline.validation == "test_environment")
    if spec.preferences is not None:
        found["preference_pairs"] = float(spec.preferences.pairs)
        found["annotators"] = float(spec.preferences.annotators)
        found["has_preference_hold_out"] = float(spec.preferences.hold_out > 0)
        found["refreshes_pairs"] = float(spec.preferences.refresh)
        found["splits_by_episode"] = float(spec.preferences.split == "episode")
    return found


def _world_signals(spec: ProblemSpec) -> Signals:
    found: Signals = {
        "randomised_factors": 0.0, "is_adr": 0.0, "curriculum_levels": 0.0, "curriculum_by_success": 0.0,
        "perturbed_conditions": 0.0, "worst_of_k": 0.0, "adversary_budget": 0.0,
    }  # fmt: skip
    if spec.randomisation is not None:
        found["randomised_factors"] = float(len(spec.randomisation.factors))
        found["is_adr"] = float(spec.randomisation.schedule == "adr")
    if spec.curriculum is not None:
        found["curriculum_levels"] = float(spec.curriculum.levels)
        found["curriculum_by_success"] = float(spec.curriculum.advance == "success")
        found["is_ued"] = float(spec.curriculum.is_generated)
        found["is_regret"] = float(spec.curriculum.score == "regret")
        found["has_held_out_levels"] = float(spec.curriculum.held_out_levels > 0)
    if spec.robustness is not None:
        found["perturbed_conditions"] = float(len(spec.robustness.conditions))
        found["has_control_arm"] = float(spec.robustness.control)
        found["adversary_budget"] = spec.robustness.attack_size
        found["has_noise_control"] = float(spec.robustness.control)
        found["worst_of_k"] = float(spec.robustness.worst_of)
    return found


def config_of(spec: ProblemSpec) -> dict[str, Any]:
    """Return the config that follows from a spec, as plain data."""
    return experiment_data(spec)
