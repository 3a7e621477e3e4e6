"""What rlx measured of an environment: spaces, step cost, horizon, rewards, determinism and throughput."""

from __future__ import annotations

import contextlib
import math
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from rlx.config.schema import Env
from rlx.design.signals import Signals, from_findings, from_words
from rlx.design.step_cost import step_seconds
from rlx.diagnose.env_checks.env_findings import RULES, check_env
from rlx.diagnose.env_checks.episode_findings import returns
from rlx.diagnose.finding import Finding
from rlx.envs.foreign_call import ForeignError, call_foreign
from rlx.envs.inspect.inspect_env import inspect
from rlx.envs.inspect.record import Inspection
from rlx.envs.make import make_env
from rlx.envs.spaces import is_image, leaves
from rlx.errors import RlxError

SECONDS = 3.0
STOPS_PLAY = ("env_raises", "env_hangs")
"""Findings of an environment that cannot be measured."""
SPARSE = 0.002
"""A reward is sparse if a smaller share of the steps pays another reward than the usual one."""
GOAL_KEYS = {"observation", "achieved_goal", "desired_goal"}


@dataclass(frozen=True)
class RewardFacts:
    """How rewards of simple policies are distributed, over `steps` played steps."""

    density: float
    size: float
    random_return: float | None
    best_return: float | None
    steps: int

    @property
    def is_density_known(self) -> bool:
        """Whether enough steps were played to tell a sparse reward from bad luck."""
        return self.steps >= 1 / SPARSE

    @property
    def is_sparse(self) -> bool:
        """Whether simple policies meet almost no reward."""
        return self.is_density_known and self.density < SPARSE


@dataclass(frozen=True)
class EnvProfile:
    """One environment as measured. `horizon` is its time limit, or the longest played episode.

    `is_horizon_known` is false if no episode ended in the time and no time limit is declared.
    `step_seconds` is the time of one step without what other programs on the machine add. `agents` is the number of
    agents of a team (`rlx.envs.team`).
    """

    env: Env
    record: Inspection
    findings: tuple[Finding, ...]
    horizon: int
    has_time_limit: bool
    is_horizon_known: bool
    rewards: RewardFacts
    is_deterministic: bool
    step_seconds: float
    agents: int = 1
    vector_error: str = ""
    """What a vector of this environment raised, if it cannot step."""

    @property
    def action(self) -> spaces.Space[Any]:
        return self.record.facts.action_space

    @property
    def observation(self) -> spaces.Space[Any]:
        return self.record.facts.observation_space

    @property
    def is_continuous(self) -> bool:
        return isinstance(self.action, spaces.Box)

    @property
    def is_label(self) -> bool:
        return isinstance(self.observation, spaces.Discrete)

    @property
    def is_goal_based(self) -> bool:
        return isinstance(self.observation, spaces.Dict) and set(self.observation.spaces) >= GOAL_KEYS

    @property
    def step_microseconds(self) -> float:
        return self.step_seconds * 1e6

    @property
    def policy_type(self) -> str:
        """The network that reads this observation."""
        if isinstance(self.observation, spaces.Dict):
            return "multi"
        if is_image(self.observation):
            return "cnn"
        return "mlp"

    def signals(self) -> Signals:
        """Return what was measured as signals for cards."""
        found = {finding.rule for finding in self.findings}
        quiet_rules = {rule.id for rule in RULES} - found
        signals = {
            **from_words(self.env.id),
            **from_findings(found, quiet_rules),
            **self._space_signals(),
            "step_microseconds": self.step_microseconds,
            "is_deterministic": float(self.is_deterministic),
            "reward_size": self.rewards.size,
            "has_masks": float(self.record.facts.has_masks),
            "has_environment": 1.0,
        }
        return {name: value for name, value in signals.items() if math.isfinite(value)}

    def _space_signals(self) -> Signals:
        parts = [leaf for _, leaf in leaves(self.observation)]
        signals = {
            "is_discrete": float(isinstance(self.action, spaces.Discrete)),
            "is_continuous": float(self.is_continuous),
            "action_values": _action_values(self.action),
            "action_size": float(len(self.record.action_columns)),
            "is_vector": float(isinstance(self.observation, spaces.Box) and not is_image(self.observation)),
            "is_image": float(is_image(self.observation)),
            "is_dict": float(isinstance(self.observation, spaces.Dict)),
            "has_image_part": float(any(is_image(part) for part in parts)),
            "is_goal_based": float(self.is_goal_based),
            "observation_size": float(len(self.record.columns)),
        }
        if self.is_horizon_known:
            signals["horizon"] = float(self.horizon)
        if self.rewards.is_density_known:
            signals["reward_density"] = self.rewards.density
        if self.record.bounds is not None:
            signals["action_bound"] = max(map(abs, (*self.record.bounds.low, *self.record.bounds.high)))
        if self.record.episodes and not self.record.is_image and not self.is_label:
            signals["observation_range"] = max(
                float(np.abs(episode.observations).max(initial=0.0)) for episode in self.record.episodes
            )
        return signals

    def document(self) -> dict[str, Any]:
        """Return the measurements as JSON-able data."""
        return {
            "observation": self.record.observation,
            "action": self.record.action,
            "horizon": self.horizon,
            "is_horizon_known": self.is_horizon_known,
            "has_time_limit": self.has_time_limit,
            "step_microseconds": round(self.step_microseconds, 1),
            "is_deterministic": self.is_deterministic,
            "reward_density": round(self.rewards.density, 4),
            "is_density_known": self.rewards.is_density_known,
            "reward_size": round(self.rewards.size, 4),
            "random_return": self.rewards.random_return,
            "findings": [finding.rule for finding in self.findings if finding.severity != "low"],
            "unchecked": [{"what": what, "why": why} for what, why in self.record.unchecked],
        }


def profile_env(env: Env, *, root: Path, seconds: float = SECONDS) -> EnvProfile:
    """Play an environment for a few seconds and measure it."""
    record = inspect(env, root=root, seconds=seconds)
    longest = max((len(episode) for episode in record.episodes), default=1)
    is_deterministic = record.seeds is not None and record.seeds.courses <= 1
    findings = check_env(record)
    cost = record.cost.step
    vector_error = ""
    if not any(finding.severity == "high" for finding in findings):
        try:  # the inspection times every call, also while other programs run
            cost = call_foreign(lambda: step_seconds(env, root=root))
        except ForeignError as error:
            vector_error = str(error)
    return EnvProfile(
        env=env,
        record=record,
        findings=findings,
        horizon=record.horizon or longest,
        has_time_limit=record.horizon is not None,
        is_horizon_known=record.horizon is not None or any(episode.ending != "cut" for episode in record.episodes),
        rewards=_reward_facts(record),
        is_deterministic=is_deterministic,
        step_seconds=cost,
        agents=_agents(env, root),
        vector_error=vector_error,
    )


def profile_working_env(env: Env, *, root: Path, seconds: float = SECONDS) -> EnvProfile:
    """Measure an environment as `profile_env` does. One that raises or hangs is an error that says where."""
    profile = profile_env(env, root=root, seconds=seconds)
    hint = f"fix the environment, then: rlx check env {shlex.quote(env.id)}"
    for finding in profile.findings:
        if finding.rule in STOPS_PLAY:
            raise RlxError(f"{env.id} cannot be played: {finding.claim}", hint=hint)
    if profile.vector_error:
        claims = [finding.claim for finding in profile.findings if finding.severity != "low"]
        why = "; ".join(claims) or profile.vector_error
        raise RlxError(f"{env.id} cannot be played in a vector: {why}", hint=hint)
    return profile


def _agents(env: Env, root: Path) -> int:
    with contextlib.closing(make_env(env, root=root)) as made:
        agents = getattr(made.unwrapped, "possible_agents", None)
    if isinstance(agents, (list, tuple)):
        return len(agents)
    return 1


def _reward_facts(record: Inspection) -> RewardFacts:
    """Measure the share of steps that pay another reward than the usual one, and the mean size of a paid step."""
    played = returns(record)
    random_return = played["random"]["return"] if "random" in played else None
    best = max((figures["best"] for figures in played.values()), default=None)
    rewards = [reward for episode in record.episodes for reward in episode.rewards.tolist() if math.isfinite(reward)]
    if not rewards:
        return RewardFacts(0.0, 0.0, random_return, best, 0)
    usual_reward, count = Counter(rewards).most_common(1)[0]
    sizes = [abs(reward) for reward in rewards if reward]
    density = 1 - count / len(rewards)
    size = float(np.mean(sizes)) if sizes else 0.0
    # A constant positive reward per step is dense: living longer pays more.
    if density < 0.05 and usual_reward > 0:
        density = 1.0
    return RewardFacts(density, size, random_return, best, len(rewards))


def _action_values(space: spaces.Space[Any]) -> float:
    if isinstance(space, spaces.Discrete):
        return float(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return float(np.prod(space.nvec.astype(float)))
    return math.inf
