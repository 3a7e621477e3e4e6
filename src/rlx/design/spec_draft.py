"""Writes a spec from measurements, and the config that follows from a spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlx.config.defaults import default_name
from rlx.config.load import parse
from rlx.config.schema import Env
from rlx.design.env_profile import SECONDS, EnvProfile, profile_working_env
from rlx.design.problem_spec import (
    ActionPlan,
    AgentsPlan,
    ArchitecturePlan,
    BufferPlan,
    EvaluationPlan,
    LearnerPlan,
    MdpPlan,
    ObservationPlan,
    ProblemSpec,
    RewardPlan,
    RolloutPlan,
    StrategyPlan,
)
from rlx.design.recommend import RankedAlgorithm, recommend
from rlx.design.signals import OFF_POLICY, ON_POLICY
from rlx.design.spec_rules import action_kind, normalises, term_shares
from rlx.design.step_cost import Throughput, measure_throughput
from rlx.diagnose.reward_review.review import play_random
from rlx.diagnose.reward_review.step_findings import PlayedEpisode

MOST_SECONDS = 10.0


def draft_spec(env: Env, *, root: Path, task: str = "", seconds: float = SECONDS) -> ProblemSpec:
    """Measure an environment and write down what was found, with the first recommended algorithm."""
    profile = profile_working_env(env, root=root, seconds=seconds)
    throughput = measure_throughput(env, root=root)
    choice = recommend(profile, throughput).ranked[0]
    episodes: tuple[PlayedEpisode, ...] = ()
    is_broken = any(finding.severity == "high" for finding in profile.findings)
    is_short = profile.is_horizon_known and 10 * profile.horizon * profile.record.cost.step < MOST_SECONDS
    if is_short and not is_broken:
        episodes = tuple(play_random(env, root=root))
    return _filled(profile, throughput, choice, episodes, task)


def _filled(
    profile: EnvProfile,
    throughput: Throughput,
    choice: RankedAlgorithm,
    episodes: tuple[PlayedEpisode, ...],
    task: str,
) -> ProblemSpec:
    record = profile.record
    algo = choice.config["algo"]
    reports_success = any(episode.success is not None for episode in episodes)
    endings = sorted({episode.ending for episode in record.episodes} - {"cut"})
    return ProblemSpec(
        env=profile.env,
        task=task,
        observation=ObservationPlan(space=record.observation, size=len(record.columns)),
        action=ActionPlan(
            space=record.action,
            kind=action_kind(profile),
            size=len(record.action_columns),
        ),
        reward=RewardPlan(
            terms=dict.fromkeys(term_shares(episodes), 1.0),
            scale=round(profile.rewards.size, 4),
            reports_success=reports_success,
        ),
        mdp=MdpPlan(
            horizon=profile.horizon if profile.is_horizon_known else None,
            discount=algo["gamma"],
            termination=f"seen in play: {', '.join(endings) or 'no end'}",
            truncation=_truncation(profile),
        ),
        strategy=StrategyPlan(
            algorithm=choice.name,
            total_timesteps=algo["total_timesteps"],
            because="; ".join(reason.why for reason in choice.reasons),
        ),
        architecture=_architecture(choice, throughput),
        multi_agent=_team(profile),
        evaluation=EvaluationPlan(metric="success_rate" if reports_success else "return"),
        **{"schema": 1},
    )


def _truncation(profile: EnvProfile) -> str:
    """Return how episodes are truncated: by a declared limit, as seen in play, or not at all."""
    if profile.has_time_limit:
        return f"time limit of {profile.horizon} steps"
    lengths = {len(episode) for episode in profile.record.episodes if episode.ending in ("truncated", "both")}
    if lengths:
        steps = " to ".join(str(length) for length in sorted({min(lengths), max(lengths)}))
        return f"seen in play after {steps} steps"
    if not profile.is_horizon_known:
        return "not known: no episode ended in play"
    return "none found"


def _team(profile: EnvProfile) -> AgentsPlan | None:
    """Return the section of a team's environment, else None."""
    if profile.agents < 2:
        return None
    return AgentsPlan(agents=profile.agents)


def _architecture(choice: RankedAlgorithm, throughput: Throughput) -> ArchitecturePlan:
    config = choice.config
    algo = config["algo"]
    rate = algo.get("learning_rate", 3e-4)
    if isinstance(rate, dict):
        rate = rate["linear"][0]
    kind = "rollout" if choice.name in ON_POLICY else "replay"
    return ArchitecturePlan(
        rollout=RolloutPlan(num_envs=config["env"]["num_envs"], steps=algo.get("rollout_steps", 1)),
        buffer=BufferPlan(kind=kind, size=algo.get("buffer_size", 0)),
        learner=LearnerPlan(
            network=config["policy"]["type"],
            hidden_sizes=tuple(config["policy"]["hidden_sizes"]),
            learning_rate=rate,
            batch_size=algo.get("batch_size", 256),
            update_epochs=algo.get("update_epochs", 1),
        ),
    )


def experiment_data(spec: ProblemSpec) -> dict[str, Any]:
    """Return the config that follows from a spec, as plain data. It is checked by whoever loads it."""
    plan = spec.architecture
    name = spec.strategy.algorithm
    env = spec.env.model_dump(mode="json", include={"id", "kwargs", "wrappers"}, exclude_defaults=True)
    wrappers = list(env.get("wrappers", ()))
    if spec.observation.history > 1 and not any(row["name"] == "frame_stack" for row in wrappers):
        wrappers.append({"name": "frame_stack", "kwargs": {"size": spec.observation.history}})
    if wrappers:
        env["wrappers"] = wrappers
    env["num_envs"] = plan.rollout.num_envs
    if normalises(spec):
        env["normalize"] = {"obs": True, "reward": True}
    algo: dict[str, Any] = {
        "name": name,
        "total_timesteps": spec.strategy.total_timesteps,
        "gamma": spec.mdp.discount,
        "learning_rate": plan.learner.learning_rate,
    }
    if name in ON_POLICY:
        algo["rollout_steps"] = plan.rollout.steps
    if name in ("ppo", "maskable_ppo", "recurrent_ppo", "trpo", *OFF_POLICY):
        algo["batch_size"] = plan.learner.batch_size
    if name in ("ppo", "maskable_ppo", "recurrent_ppo"):
        algo["update_epochs"] = plan.learner.update_epochs
    if name in OFF_POLICY and plan.buffer.size:
        algo["buffer_size"] = plan.buffer.size
    offline = _offline_algo(spec)
    if offline is not None:
        algo = offline
        env["num_envs"] = 1
    return {
        "env": env,
        "algo": algo,
        "policy": _policy(spec),
        "eval": {
            "every": max(1, spec.strategy.total_timesteps // 5),
            "episodes": spec.evaluation.episodes,
            "metric": spec.evaluation.metric,
        },
    }


OFFLINE = "rlx.train.backends.sb3.offline"
OFFLINE_CLASSES = {
    ("bc", "discrete"): ("Cloning", {}),
    ("cql", "discrete"): ("ConservativeQ", {}),
    ("bc", "continuous"): ("Td3Cloning", {"greed": 0.0}),
}
"""The offline learners that rlx trains, by algorithm and kind of action. IQL is a recipe only."""
TEAM_POLICY = "rlx.train.backends.sb3.team_policy:TeamPolicy"


def _offline_algo(spec: ProblemSpec) -> dict[str, Any] | None:
    """Return the `algo` section of a plan that learns from a dataset, if rlx trains its algorithm."""
    plan = spec.offline
    if plan is None or not plan.dataset or (plan.algorithm, spec.action.kind) not in OFFLINE_CLASSES:
        return None
    name, settings = OFFLINE_CLASSES[plan.algorithm, spec.action.kind]
    return {
        "name": f"{OFFLINE}:{name}",
        "total_timesteps": spec.strategy.total_timesteps,
        "gamma": spec.mdp.discount,
        "learning_rate": spec.architecture.learner.learning_rate,
        "kwargs": {"dataset": plan.dataset, **settings},
    }


def _policy(spec: ProblemSpec) -> dict[str, Any]:
    """Return the `policy` section. A team that PPO trains acts on local observations."""
    learner = spec.architecture.learner
    policy: dict[str, Any] = {"type": learner.network, "hidden_sizes": list(learner.hidden_sizes)}
    team = spec.multi_agent
    if team is not None and team.agents > 1 and spec.strategy.algorithm == "ppo":
        critic = "central" if team.training == "central" else "local"
        policy["type"] = TEAM_POLICY
        policy["kwargs"] = {"agents": team.agents, "critic": critic}
    return policy


def config_name(spec: ProblemSpec) -> str:
    """Return the name of the config's file."""
    experiment = parse(experiment_data(spec), source="the spec")
    return default_name(experiment.env, experiment.algo)
