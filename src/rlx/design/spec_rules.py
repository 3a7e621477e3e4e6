"""Rules that compare a spec with the measured environment. A declaration never hides what was measured."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rlx.config import devices
from rlx.design.env_profile import SPARSE, EnvProfile
from rlx.design.problem_spec import ProblemSpec
from rlx.design.signals import OFF_POLICY, ON_POLICY
from rlx.diagnose.finding import Evidence
from rlx.diagnose.reward_review.step_findings import PlayedEpisode
from rlx.diagnose.reward_terms.term_stats import DOMINATION
from rlx.diagnose.rule import Rule, Sighting
from rlx.diagnose.rules.gamma_too_small import LENGTH, SMALLEST_GAMMA
from rlx.number_format import figure
from rlx.train.space_problems import ACTIONS, KNOWN_SPACES

CHEAP_FOR_MACHINES = 500.0
LARGEST_OBSERVATION = 1000.0
LARGEST_REWARD = 100.0
LARGEST_ACTION = 10.0
KINDS = {"Discrete": "discrete", "Box": "continuous", "MultiDiscrete": "multi_discrete", "MultiBinary": "multi_binary"}


@dataclass(frozen=True)
class SpecCase:
    """A spec, the measurements of its environment, and episodes of the random policy with their reward terms.

    `control_dt` is the time step that the simulator itself reports, `is_batched` whether it steps many worlds at once.
    `absent_factors` are randomised factors that the environment does not have, with the reason.
    """

    spec: ProblemSpec
    profile: EnvProfile
    episodes: tuple[PlayedEpisode, ...] = ()
    control_dt: float | None = None
    is_batched: bool = False
    absent_factors: tuple[tuple[str, str], ...] = ()
    dataset_problems: tuple[tuple[str, str], ...] = ()


def action_kind(profile: EnvProfile) -> str:
    """Return the kind of the real action space as a spec names it."""
    return KINDS.get(type(profile.action).__name__, "other")


def _differs(what: str, declared: object, real: object) -> Sighting:
    evidence = Evidence(f"{what} of the environment", str(real))
    return Sighting((evidence,), f"the spec says that {what} is {declared}, but the environment has {real}")


def find_observation(case: SpecCase) -> Iterator[Sighting]:
    """Find a declared observation that is not the real one."""
    declared = case.spec.observation
    real = len(case.profile.record.columns)
    if declared.size and declared.size != real:
        yield _differs("the size of the observation", declared.size, real)
    elif declared.space and declared.space != case.profile.record.observation:
        yield _differs("the observation", declared.space, case.profile.record.observation)


def find_action(case: SpecCase) -> Iterator[Sighting]:
    """Find a declared action that is not the real one."""
    declared = case.spec.action
    kind = action_kind(case.profile)
    size = len(case.profile.record.action_columns)
    if declared.kind != kind:
        yield _differs("the kind of the action", declared.kind, kind)
    elif declared.size != size:
        yield _differs("the size of the action", declared.size, size)


def find_leaks(case: SpecCase) -> Iterator[Sighting]:
    """Find a number of the observation that is the reward of the step: the deployed policy will not have it."""
    record = case.profile.record
    if record.is_image or not record.episodes:
        return
    after = np.concatenate([episode.observations[1:] for episode in record.episodes])
    rewards = np.concatenate([episode.rewards for episode in record.episodes])
    if len(np.unique(np.round(rewards, 9))) < 4 or not np.isfinite(rewards).all():
        return  # a reward with few values is easily equal to a flag by chance
    for index, column in enumerate(record.columns):
        if np.allclose(after[:, index], rewards, rtol=1e-4, atol=1e-6):
            claim = f"{column.name} is the reward of the step in all {len(rewards):,} steps: the policy sees its reward"
            yield Sighting((Evidence(f"steps in which {column.name} is the reward", len(rewards)),), claim)


def find_horizon(case: SpecCase) -> Iterator[Sighting]:
    """Find a horizon that is not that of the environment."""
    declared = case.spec.mdp.horizon
    real = case.profile.horizon
    if declared is None:
        return
    if case.profile.has_time_limit and declared != real:
        yield _differs("the horizon", declared, real)
    elif not case.profile.has_time_limit and declared < real:
        yield _differs("the horizon", declared, f"at least {real}")


def find_discount(case: SpecCase) -> Iterator[Sighting]:
    """Find a discount that does not see as far as a measured episode lasts, or that never forgets."""
    gamma = case.spec.mdp.discount
    horizon = case.profile.horizon
    ratio = 0.0
    if case.profile.is_horizon_known:
        ratio = horizon * (1 - gamma)
    evidence = Evidence("episode length / discount horizon", ratio, limit=LENGTH.above)
    if gamma == 1 and not case.profile.has_time_limit:
        yield Sighting((Evidence("discount", 1.0),), "γ is 1 in a task without a time limit: values have no bound")
    elif ratio > (LENGTH.above or 0) or (gamma < SMALLEST_GAMMA and ratio > 1):
        claim = f"γ = {figure(gamma)} sees {figure(1 / (1 - gamma))} steps, but an episode lasts {horizon}"
        better = figure(min(0.999, 1 - 1 / horizon))
        yield Sighting((evidence,), claim, tries=(f"mdp.discount: {better}",))


def find_observability(case: SpecCase) -> Iterator[Sighting]:
    """Find a partially observable task without history."""
    spec = case.spec
    is_recurrent = spec.strategy.algorithm == "recurrent_ppo"
    if spec.mdp.observability == "partial" and spec.observation.history < 2 and not is_recurrent:
        claim = "one observation does not determine the state, and the policy has neither history nor memory"
        yield Sighting((Evidence("frames", spec.observation.history, limit=2.0),), claim)


def find_dominance(case: SpecCase) -> Iterator[Sighting]:
    """Find a reward term that outweighs all others in played episodes."""
    shares = term_shares(case.episodes)
    if len(shares) < 2:
        return
    name, share = max(shares.items(), key=lambda pair: pair[1])
    if share > DOMINATION:
        claim = f"term `{name}` is {share:.0%} of the reward's size in {len(case.episodes)} episodes"
        yield Sighting((Evidence(f"share of {name}", share, limit=DOMINATION),), claim)


def term_shares(episodes: tuple[PlayedEpisode, ...]) -> dict[str, float]:
    """Return the share of each reward term in the summed sizes of all terms."""
    sizes: dict[str, float] = {}
    for episode in episodes:
        for name, values in episode.terms.items():
            sizes[name] = sizes.get(name, 0.0) + float(np.abs(values).sum())
    total = sum(sizes.values())
    if not total:
        return {}
    return {name: size / total for name, size in sizes.items()}


def find_alive_bonus(case: SpecCase) -> Iterator[Sighting]:
    """Find a positive usual reward that pays more until the time limit than the largest final reward."""
    record = case.profile.record
    rewards = np.concatenate([episode.rewards for episode in record.episodes] or [np.zeros(0)])
    ends = [episode for episode in record.episodes if episode.ending in ("terminated", "both") and len(episode) > 1]
    if not len(rewards) or not ends:
        return
    values, counts = np.unique(np.round(rewards, 9), return_counts=True)
    usual = float(values[counts.argmax()])
    if usual <= 0 or counts.max() < 0.5 * len(rewards):
        return
    goal = max(float(episode.rewards[-1]) for episode in ends)
    shortest = min(len(episode) for episode in ends if float(episode.rewards[-1]) == goal)
    staying = usual * (case.profile.horizon - shortest)
    if goal > 1.5 * usual and staying > goal:
        claim = (
            f"staying until step {case.profile.horizon} pays {figure(staying)} more, finishing at step {shortest} pays "
            f"{figure(goal)}: the agent learns to wait"
        )
        yield Sighting((Evidence("reward of staying / reward of finishing", staying / goal, limit=1.0),), claim)


def find_scale(case: SpecCase) -> Iterator[Sighting]:
    """Find observations, rewards or actions far from a size of one, if the plan does not bring them there."""
    name = case.spec.strategy.algorithm
    measured = case.profile.signals()
    seen = measured.get("observation_range", 0.0)
    if seen > LARGEST_OBSERVATION and not normalises(case.spec):
        claim = f"observations reach {figure(seen)}, and nothing brings them to a size of about one"
        yield Sighting((Evidence("largest observation", seen, limit=LARGEST_OBSERVATION),), claim)
    paid = measured.get("reward_size", 0.0)
    if paid > LARGEST_REWARD and not normalises(case.spec):
        claim = f"a step pays {figure(paid)} on average: the value loss grows with its square"
        yield Sighting((Evidence("mean size of a reward", paid, limit=LARGEST_REWARD),), claim)
    bound = measured.get("action_bound", 0.0)
    if name in ON_POLICY and bound > LARGEST_ACTION:
        claim = f"actions reach to {figure(bound)}, and `{name}` starts with a spread of one"
        tries = ("env.wrappers: [rescale_action]",)
        yield Sighting((Evidence("bound of an action", bound, limit=LARGEST_ACTION),), claim, tries=tries)


def normalises(spec: ProblemSpec) -> bool:
    """Return whether the config that follows from a spec normalises observations and rewards."""
    is_vector = spec.architecture.learner.network == "mlp"
    return spec.strategy.algorithm in ON_POLICY and spec.action.kind == "continuous" and is_vector


def find_sparse_reward(case: SpecCase) -> Iterator[Sighting]:
    """Find an on-policy learner on a reward that simple policies never meet."""
    spec = case.spec
    density = case.profile.rewards.density
    has_help = spec.curriculum or spec.imitation or spec.offline or spec.algorithm_is_off_policy
    if case.profile.rewards.is_sparse and not has_help:
        claim = f"{density:.2%} of the played steps pay another reward, and {spec.strategy.algorithm} forgets rare ones"
        yield Sighting((Evidence("reward density", density, limit=SPARSE),), claim)


def find_algorithm(case: SpecCase) -> Iterator[Sighting]:
    """Find an algorithm that cannot act in the real action space, or that rlx does not know."""
    name = case.spec.strategy.algorithm
    if name not in (*ON_POLICY, *OFF_POLICY, "ars"):
        claim = f"`{name}` is not an algorithm that rlx trains"
        yield Sighting((Evidence("algorithm", name),), claim, severity="medium")
    elif not isinstance(case.profile.action, ACTIONS.get(name, KNOWN_SPACES)):
        claim = f"`{name}` cannot act in {case.profile.record.action}"
        yield Sighting((Evidence("action space", case.profile.record.action),), claim)
    elif case.profile.record.facts.has_masks and name != "maskable_ppo":
        claim = f"`{name}` ignores the environment's action masks"
        yield Sighting((Evidence("action masks", "offered"),), claim, severity="medium")


def find_placement(case: SpecCase) -> Iterator[Sighting]:
    """Find a placement that this machine does not have or that the measured step cost does not justify."""
    place = case.spec.architecture.placement
    step = case.profile.step_microseconds
    if place.learner == "gpu" and devices.present() == {"cpu"}:
        claim = "the learner is placed on a GPU, and this machine has none"
        yield Sighting((Evidence("devices", "cpu"),), claim)
    if place.simulator == "gpu" and not case.is_batched:
        claim = "the simulator is placed on a GPU, but the environment steps one world at a time"
        yield Sighting((Evidence("batched", "no"),), claim)
    if place.machines > 1 and step < CHEAP_FOR_MACHINES:
        claim = f"{place.machines} machines for steps of {figure(step)} µs: messages cost more than the steps"
        yield Sighting((Evidence("microseconds per step", step, limit=CHEAP_FOR_MACHINES),), claim)
    cores = os.cpu_count() or 1
    if place.machines == 1 and place.cores > cores:
        yield Sighting(
            (Evidence("cores", cores, limit=float(place.cores)),), f"{place.cores} cores, but there are {cores}"
        )


def find_control_rate(case: SpecCase) -> Iterator[Sighting]:
    """Find a control step that is not a multiple of the physics step, or not the simulator's own."""
    mdp = case.spec.mdp
    if mdp.control_dt is not None and mdp.physics_dt is not None:
        ratio = mdp.control_dt / mdp.physics_dt
        if abs(ratio - round(ratio)) > 1e-6 or ratio < 1:
            claim = f"a decision of {mdp.control_dt} s is {figure(ratio)} physics steps of {mdp.physics_dt} s"
            yield Sighting((Evidence("control step / physics step", ratio),), claim)
            return
    if mdp.control_dt is not None and case.control_dt is not None and abs(mdp.control_dt - case.control_dt) > 1e-9:
        yield _differs("the control step", mdp.control_dt, case.control_dt)


MEASURED_RULES: tuple[Rule[SpecCase], ...] = (
    Rule("spec_observation", "high", find_observation, ("rlx spec new --env ENV writes what is there",)),
    Rule("spec_action", "high", find_action, ("rlx spec new --env ENV writes what is there",)),
    Rule("spec_leak", "medium", find_leaks, ("leave the number out of the observation",)),
    Rule("spec_horizon", "medium", find_horizon, ("set mdp.horizon to the environment's limit",)),
    Rule("spec_discount", "medium", find_discount, source="γ ≈ 1 − 1/H; Sutton and Barto 2018"),
    Rule("spec_observability", "medium", find_observability, ("observation.history: 4",)),
    Rule("spec_reward_dominance", "medium", find_dominance, ("scale the term down",)),
    Rule("spec_alive_bonus", "medium", find_alive_bonus, ("a cost per step, or a goal reward above the bonus",)),
    Rule("spec_scale", "medium", find_scale, ("rescale it in the environment, or with a wrapper",)),
    Rule("spec_sparse_reward", "medium", find_sparse_reward, ("strategy.algorithm: dqn or sac, or a curriculum",)),
    Rule("spec_algorithm", "high", find_algorithm, ("rlx recommend ENV",)),
    Rule("spec_placement", "medium", find_placement, ("architecture.placement: {machines: 1, learner: cpu}",)),
    Rule("spec_control_rate", "medium", find_control_rate, ("mdp.control_dt: a multiple of mdp.physics_dt",)),
)
