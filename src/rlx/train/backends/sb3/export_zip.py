"""Exports a checkpoint as files that Stable-Baselines3 opens: the algorithm's .zip, and its VecNormalize.

SB3's own `save` writes both with pickle. They do not mention rlx, so they open in places that do not have it.
Not exported: optimizer state and the replay buffer. Schedules become their first value.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gymnasium import Space, spaces
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from rlx.config.load import parse
from rlx.config.schema import Experiment, Schedule
from rlx.envs.global_rng import global_generators_kept
from rlx.envs.make import EnvFacts
from rlx.envs.spaces import build
from rlx.errors import UsageError
from rlx.evaluate.policy import refuse_named_code
from rlx.runs.checkpoints.checkpoint import Checkpoint
from rlx.train.backends.sb3 import algorithms, requirements, torch_policy, training_state
from rlx.train.backends.sb3.sb3_learner import normalizer_for
from rlx.train.backends.sb3.vec_env import SpacesOnly


def export(checkpoint: Checkpoint, target: Path) -> tuple[str, list[Path]]:
    """Write `target` (a .zip) and return the class that loads it (`module:Class`) and every file written."""
    refuse_named_code(checkpoint)
    observation_space = build(checkpoint.spaces.get("observation"))
    action_space = build(checkpoint.spaces.get("action"))
    experiment = parse(checkpoint.config, source=str(checkpoint.path / "manifest.json"))
    experiment = _as_sb3(experiment, observation_space)
    _refuse_unreadable(experiment, observation_space, action_space)
    env = SpacesOnly(observation_space, action_space, num_envs=experiment.env.num_envs or 1)
    algorithm = _algorithm(experiment, env, checkpoint)
    target.parent.mkdir(parents=True, exist_ok=True)
    algorithm.save(target)
    kind = next(kind for kind in type(algorithm).__mro__ if not kind.__module__.startswith("rlx."))
    written = [target, *_normalizer(experiment, env, checkpoint, target)]
    return f"{kind.__module__.partition('.')[0]}:{kind.__name__}", written


def _algorithm(experiment: Experiment, env: VecEnv, checkpoint: Checkpoint) -> Any:
    root = torch_policy.project_root(checkpoint.path)
    buffer_size = getattr(experiment.algo, "buffer_size", None)
    with global_generators_kept():
        algorithm: Any = algorithms.build(
            experiment, env, root=root, seed=None, device="cpu", is_inference=buffer_size is not None
        )
    if isinstance(algorithm, OffPolicyAlgorithm):  # it was built with a buffer of one row
        algorithm.buffer_size = buffer_size or algorithm.buffer_size
    training_state.load_policy(algorithm.policy, checkpoint.policy, where=str(checkpoint.path))
    algorithm.num_timesteps = checkpoint.step
    return algorithm


def _as_sb3(experiment: Experiment, observation_space: Space[Any]) -> Experiment:
    """Return the experiment with SB3's policy for dicts, and with every schedule replaced by its first value."""
    settings = {name: getattr(experiment.algo, name) for name in type(experiment.algo).model_fields}
    first_values = {name: value.at(1.0) for name, value in settings.items() if isinstance(value, Schedule)}
    policy = experiment.policy
    if isinstance(observation_space, spaces.Dict) and policy.type == "mlp":
        policy = policy.model_copy(update={"type": "multi"})
    algo = experiment.algo.model_copy(update=first_values)
    return experiment.model_copy(update={"algo": algo, "policy": policy})


def _refuse_unreadable(experiment: Experiment, observation_space: Space[Any], action_space: Space[Any]) -> None:
    """Raise for spaces that SB3 cannot read or act in."""
    has_masks = experiment.algo.name == "maskable_ppo"
    facts = EnvFacts(observation_space, action_space, None, None, has_masks=has_masks, source="")
    for problem in requirements.problems(experiment, facts):
        if problem.is_error and problem.key == "env.id":
            raise UsageError(f"cannot be exported: {problem.message}", hint="rlx.load opens the checkpoint itself")


def _normalizer(experiment: Experiment, env: VecEnv, checkpoint: Checkpoint, target: Path) -> list[Path]:
    """Write the statistics of normalised observations, set so that they are used and no longer updated."""
    normalizer = normalizer_for(experiment, env)
    if normalizer is None or not experiment.env.normalize.obs:
        return []
    training_state.set_normalizer_state(normalizer, checkpoint.state["normalizer"])
    normalizer.training = normalizer.norm_reward = False
    path = target.with_name(f"{target.stem}_vecnormalize.pkl")
    normalizer.save(str(path))
    return [path]
