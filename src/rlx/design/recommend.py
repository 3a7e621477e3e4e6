"""Recommends algorithms, networks and starting values for an environment, from measurements, with reasons and sources.

Every reason adds points to algorithms and names the card behind it. The ranking is a start, not a verdict: `rlx settle`
on the first two configs decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from gymnasium import spaces

from rlx.config import catalog
from rlx.config.defaults import default_name, fitting_batch
from rlx.config.load import parse
from rlx.design.env_profile import EnvProfile
from rlx.design.knowledge_card import PRACTICE, find_card
from rlx.design.signals import OFF_POLICY, ON_POLICY
from rlx.design.step_cost import Throughput
from rlx.number_format import figure
from rlx.train.space_problems import ACTIONS, KNOWN_SPACES, step_bytes

Confidence = Literal["high", "medium", "low"]
CANDIDATES = ("ppo", "sac", "tqc", "td3", "dqn", "qrdqn", "a2c", "trpo", "ddpg", "maskable_ppo", "recurrent_ppo")
CHEAP_MICROSECONDS = 300.0
COSTLY_MICROSECONDS = 2000.0
BUFFER_BYTES = 4e9
"""The largest replay buffer that a start proposes: images fill memory long before a million steps."""
UNKNOWN_HORIZON_GAMMA = 0.99
CLEAR_LEAD = 2.0
SMALL_LEAD = 0.75


@dataclass(frozen=True)
class DataAtHand:
    """What exists besides the environment."""

    demonstrations: int = 0
    offline_episodes: int = 0
    is_partially_observable: bool = False


@dataclass(frozen=True)
class Reason:
    """Points for some algorithms, why, and the card behind it (empty for the tool's own prior)."""

    algorithms: tuple[str, ...]
    points: float
    why: str
    card: str = ""

    def document(self) -> dict[str, Any]:
        """Return the reason as JSON-able data with its sources."""
        sources = find_card(self.card).cite() if self.card else [PRACTICE]
        return {"why": self.why, "points": self.points, "card": self.card or None, "sources": sources}


@dataclass(frozen=True)
class RankedAlgorithm:
    """An algorithm, its points, its reasons and the config to start with."""

    name: str
    points: float
    reasons: tuple[Reason, ...]
    config: dict[str, Any] = field(hash=False)

    def document(self) -> dict[str, Any]:
        """Return the choice as JSON-able data."""
        reasons = [reason.document() for reason in self.reasons]
        return {"algorithm": self.name, "points": self.points, "reasons": reasons, "config": self.config}


@dataclass(frozen=True)
class Recommendation:
    """The ranked algorithms of an environment, how sure the ranking is, and why."""

    ranked: tuple[RankedAlgorithm, ...]
    confidence: Confidence
    because: str
    notes: tuple[str, ...]


def recommend(profile: EnvProfile, throughput: Throughput, data: DataAtHand | None = None) -> Recommendation:
    """Rank the algorithms that can act in this environment."""
    data = data or DataAtHand()
    possible = [name for name in CANDIDATES if _can_act(name, profile)]
    reasons = list(_reasons(profile, data))
    ranked = []
    for name in possible:
        own = tuple(reason for reason in reasons if name in reason.algorithms)
        points = round(sum(reason.points for reason in own), 2)
        ranked.append(RankedAlgorithm(name, points, own, start_config(name, profile, throughput)))
    ranked.sort(key=lambda choice: (-choice.points, CANDIDATES.index(choice.name)))
    ranked = _apart(ranked)
    confidence, because = _confidence(ranked, profile)
    return Recommendation(tuple(ranked), confidence, because, tuple(_notes(profile, data)))


def _can_act(name: str, profile: EnvProfile) -> bool:
    if name == "maskable_ppo" and not profile.record.facts.has_masks:
        return False
    return isinstance(profile.action, ACTIONS.get(name, KNOWN_SPACES))


def _apart(ranked: list[RankedAlgorithm]) -> list[RankedAlgorithm]:
    """Put a second choice of the other family second: two variants of one idea would settle nothing."""
    if len(ranked) < 3:
        return ranked
    first = ranked[0]
    for other in ranked[1:]:
        if (other.name in OFF_POLICY) != (first.name in OFF_POLICY):
            rest = [choice for choice in ranked[1:] if choice is not other]
            return [first, other, *rest]
    return ranked


def _reasons(profile: EnvProfile, data: DataAtHand) -> Iterator[Reason]:
    yield from _space_reasons(profile)
    step = profile.step_microseconds
    cost = f"a step takes {step_text(step)}"
    if step < CHEAP_MICROSECONDS:
        yield Reason(("ppo", "maskable_ppo", "recurrent_ppo"), 2.0, f"{cost}: data is cheap", "strategy-ppo-cheap")
    elif step > COSTLY_MICROSECONDS and profile.is_continuous:
        yield Reason(
            ("sac", "tqc", "td3"), 3.0, f"{cost}: every transition must be reused", "strategy-offpolicy-costly"
        )
    elif step > COSTLY_MICROSECONDS:
        why = f"{cost}: every transition must be reused"
        yield Reason(("dqn", "qrdqn"), 3.0, why, "strategy-dqn-costly-discrete")
    if profile.rewards.is_sparse:
        why = f"only {profile.rewards.density:.2%} of the played steps pay another reward: replay keeps the rare ones"
        yield Reason(OFF_POLICY, 2.5, why, "reward-sparse-start")
        yield Reason(ON_POLICY, -1.0, why, "reward-sparse-start")
    if profile.is_goal_based:
        yield Reason(("sac", "tqc", "td3", "dqn"), 2.0, "goals are observed: hindsight works", "replay-hindsight")
    if data.is_partially_observable:
        why = "one observation does not determine the state"
        yield Reason(("recurrent_ppo",), 3.0, why, "obs-history-for-pomdp")
    else:
        yield Reason(("recurrent_ppo",), -3.0, "no hint that memory is needed", "memory-last")


def step_text(microseconds: float) -> str:
    """Return the time of a step with a unit that a reader grasps."""
    if microseconds >= 1e6:
        return f"{figure(microseconds / 1e6)} s"
    if microseconds >= 1e3:
        return f"{figure(microseconds / 1e3)} ms"
    return f"{figure(microseconds)} µs"


def _space_reasons(profile: EnvProfile) -> Iterator[Reason]:
    yield Reason(("ppo", "maskable_ppo"), 1.0, "often works with default settings", "strategy-ppo-cheap")
    yield Reason(("a2c",), -0.5, "PPO with fewer safeguards", "loss-clip")
    if profile.record.facts.has_masks:
        yield Reason(("maskable_ppo",), 4.0, "the environment offers action masks", "action-mask")
        yield Reason(("dqn", "qrdqn", "ppo", "a2c", "trpo"), -2.0, "ignores the action masks", "action-mask")
    if profile.is_continuous:
        why = "continuous actions: replay reuses data, entropy keeps exploring"
        yield Reason(("sac",), 2.0, why, "strategy-offpolicy-costly")
        yield Reason(("tqc", "td3"), 1.5, "continuous actions: replay reuses data, several critics", "critic-twin")
        yield Reason(("ddpg",), -1.5, "one critic overestimates", "critic-twin")
        return
    why = "few discrete actions: one value per action"
    yield Reason(("dqn",), 1.5, why, "strategy-dqn-costly-discrete")
    yield Reason(("qrdqn",), 1.25, why, "strategy-dqn-costly-discrete")
    if profile.is_label:
        yield Reason(("dqn", "qrdqn"), 1.0, "the observation is a label: values are nearly a table")


def _confidence(ranked: list[RankedAlgorithm], profile: EnvProfile) -> tuple[Confidence, str]:
    if any(finding.severity == "high" for finding in profile.findings):
        return "low", "the environment has defects: fix them first (rlx check env)"
    if profile.record.unchecked:
        what = ", ".join(name for name, _ in profile.record.unchecked)
        return "low", f"the inspection could not try everything: {what} (--seconds 60 plays longer)"
    if len(ranked) < 2:
        return "high", "no other algorithm can act in this space"
    lead = ranked[0].points - ranked[1].points
    text = f"{ranked[0].name} leads {ranked[1].name} by {lead:.2f} points"
    if lead >= CLEAR_LEAD:
        return "high", text
    if lead >= SMALL_LEAD:
        return "medium", text
    return "low", f"{text}: measure it"


def _notes(profile: EnvProfile, data: DataAtHand) -> Iterator[str]:
    tuned = catalog.for_env(profile.env.id)
    if tuned is not None:
        yield f"catalog:{tuned} is tuned for this environment (rlx config show catalog:{tuned})"
    if data.offline_episodes:
        yield "with a dataset, clone it first, then IQL or CQL (rlx docs cql --run)"
    if data.demonstrations:
        yield "with demonstrations, clone them first and fine-tune (rlx docs behaviour-cloning --run)"
    if profile.is_goal_based:
        yield "add hindsight relabelling (rlx docs hindsight-replay --run)"
    if profile.rewards.is_sparse:
        yield "simple policies meet almost no reward: shape it or start near the goal (rlx cards reward-sparse-start)"
    if profile.step_microseconds > COSTLY_MICROSECONDS:
        yield "steps are slow: `env.vectorization: async` plays environments in processes of their own"
    for finding in profile.findings:
        if finding.severity == "high":
            yield f"defect {finding.rule}: {finding.claim}"


def discount(profile: EnvProfile) -> float:
    """Return a γ to start with: 1 − 1/H, between 0.9 and 0.99; 0.995 for a rare reward in a long episode."""
    if not profile.is_horizon_known:
        return UNKNOWN_HORIZON_GAMMA
    if profile.rewards.is_sparse and profile.horizon > 500:
        return 0.995
    return round(min(0.99, max(0.9, 1 - 1 / max(profile.horizon, 1))), 3)


def start_config(name: str, profile: EnvProfile, throughput: Throughput) -> dict[str, Any]:
    """Return a config that trains: starting values of this algorithm for this environment."""
    kind = profile.policy_type
    steps = 100_000
    if profile.is_continuous and len(profile.record.action_columns) > 1:
        steps = 300_000
    if kind != "mlp":
        steps = 1_000_000
    algo: dict[str, Any] = {"name": name, "total_timesteps": steps, "gamma": discount(profile)}
    env: dict[str, Any] = {"id": profile.env.id}
    if profile.env.kwargs:
        env["kwargs"] = profile.env.kwargs
    if profile.env.wrappers:
        env["wrappers"] = [wrapper.model_dump() for wrapper in profile.env.wrappers]
    if name in ON_POLICY:
        env["num_envs"] = throughput.num_envs
        _on_policy_start(algo, env, profile)
    else:
        env["num_envs"] = 1
        _off_policy_start(algo, profile, steps)
    sizes = [64, 64] if name in (*ON_POLICY, "dqn", "qrdqn") else [256, 256]
    config: dict[str, Any] = {"env": env, "algo": algo, "policy": {"type": kind, "hidden_sizes": sizes}}
    config["eval"] = {"every": steps // 5, "episodes": 20}
    experiment = parse(config, source=f"recommended {name}")
    return {"run_name": default_name(experiment.env, experiment.algo), **config}


def _on_policy_start(algo: dict[str, Any], env: dict[str, Any], profile: EnvProfile) -> None:
    total = 2048
    per_env = max(32, total // env["num_envs"])
    algo["rollout_steps"] = per_env
    if algo["name"] not in ("a2c",):
        algo["batch_size"] = fitting_batch(per_env * env["num_envs"], 64 if profile.is_continuous else 128)
    if algo["name"] in ("ppo", "maskable_ppo", "recurrent_ppo"):
        algo["learning_rate"] = {"linear": [3e-4 if profile.is_continuous else 1e-3, 0.0]}
        algo["update_epochs"] = 10
    if not profile.is_continuous and algo["name"] != "trpo":
        algo["entropy_coef"] = 0.01
    is_vector = isinstance(profile.observation, spaces.Box) and profile.policy_type == "mlp"
    if profile.is_continuous and is_vector:
        env["normalize"] = {"obs": True, "reward": True}


def _off_policy_start(algo: dict[str, Any], profile: EnvProfile, steps: int) -> None:
    fitting = int(BUFFER_BYTES / step_bytes(profile.observation, profile.action)) // 1000 * 1000
    algo["buffer_size"] = min(steps, max(fitting, 1000))
    algo["learning_starts"] = max(500, steps // 100)
    if algo["name"] in ("dqn", "qrdqn"):
        algo |= {"learning_rate": 1e-3, "batch_size": 128, "train_every": 4, "gradient_steps": 1}
        algo |= {"target_update_every": 1000, "exploration_final": 0.05, "exploration_fraction": 0.2}
        if profile.rewards.is_sparse:
            algo["exploration_fraction"] = 0.5
    else:
        algo["learning_rate"] = 1e-3 if algo["name"] in ("td3", "ddpg") else 3e-4
