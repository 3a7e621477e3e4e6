"""A checkpoint as files that Stable-Baselines3 opens by itself: the algorithm's .zip, and its VecNormalize beside it.

Both are written by SB3's own `save`, which pickles; nothing in them names rlx, so they open where it is not installed.
What is not covered: optimizer state, the replay buffer, and schedules, which become their first value.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gymnasium import Space, spaces
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from rlx.config.load import parse
from rlx.config.schema import Experiment, Schedule
from rlx.envs.make import EnvFacts
from rlx.envs.spaces import build
from rlx.errors import UsageError
from rlx.runs.checkpoint import Checkpoint
from rlx.train.backends import sb3_algorithms, sb3_check, sb3_policy, sb3_state
from rlx.train.backends.sb3_learner import normalizer_for
from rlx.train.backends.sb3_vecenv import SpacesOnly


def export(checkpoint: Checkpoint, target: Path) -> tuple[str, list[Path]]:
    """Write `target` (a .zip) and return the class that loads it (`module:Class`) and every file written."""
    seen, acted = (build(checkpoint.spaces.get(key)) for key in ("observation", "action"))
    experiment = _as_sb3(parse(checkpoint.config, source=str(checkpoint.path / "manifest.json")), seen)
    _refuse_strange(experiment, seen, acted)
    env = SpacesOnly(seen, acted, num_envs=experiment.env.num_envs or 1)
    algorithm = _algorithm(experiment, env, checkpoint)
    target.parent.mkdir(parents=True, exist_ok=True)
    algorithm.save(target)
    kind = next(kind for kind in type(algorithm).__mro__ if not kind.__module__.startswith("rlx."))
    written = [target, *_normalizer(experiment, env, checkpoint, target)]
    return f"{kind.__module__.partition('.')[0]}:{kind.__name__}", written


def _algorithm(experiment: Experiment, env: VecEnv, checkpoint: Checkpoint) -> Any:
    root = sb3_policy.project_root(checkpoint.path)
    is_off_policy = hasattr(experiment.algo, "buffer_size")
    with sb3_state.untouched_randomness():
        algorithm: Any = sb3_algorithms.build(
            experiment, env, root=root, seed=None, device="cpu", is_inference=is_off_policy
        )
    if isinstance(algorithm, OffPolicyAlgorithm):  # built without the memory that it will have when it is loaded
        algorithm.buffer_size = getattr(experiment.algo, "buffer_size", algorithm.buffer_size)
    sb3_state.load_policy(algorithm.policy, checkpoint.policy, where=str(checkpoint.path))
    algorithm.num_timesteps = checkpoint.step
    return algorithm


def _as_sb3(experiment: Experiment, seen: Space[Any]) -> Experiment:
    """Return the experiment in SB3's words: dicts have a policy of their own, a schedule becomes its first value."""
    settings = {name: getattr(experiment.algo, name) for name in type(experiment.algo).model_fields}
    algo = {name: value.at(1.0) for name, value in settings.items() if isinstance(value, Schedule)}
    kind = "multi" if isinstance(seen, spaces.Dict) and experiment.policy.type == "mlp" else experiment.policy.type
    return experiment.model_copy(
        update={
            "algo": experiment.algo.model_copy(update=algo),
            "policy": experiment.policy.model_copy(update={"type": kind}),
        }
    )


def _refuse_strange(experiment: Experiment, seen: Space[Any], acted: Space[Any]) -> None:
    """Raise for spaces that SB3 cannot read or act in, in the words that a training with it would use."""
    is_masked = experiment.algo.name == "maskable_ppo"
    facts = EnvFacts(seen, acted, horizon=None, reward_threshold=None, has_masks=is_masked, source="")
    for problem in sb3_check.problems(experiment, facts):
        if problem.is_error and problem.key == "env.id":
            raise UsageError(f"cannot be exported: {problem.message}", hint="rlx.load opens it as it is")


def _normalizer(experiment: Experiment, env: VecEnv, checkpoint: Checkpoint, target: Path) -> list[Path]:
    """Write the statistics of normalised observations, set to be used and not to be learned any more."""
    normalizer = normalizer_for(experiment, env)
    if normalizer is None or not experiment.env.normalize.obs:
        return []
    sb3_state.set_normalizer_state(normalizer, checkpoint.state["normalizer"])
    normalizer.training = normalizer.norm_reward = False
    path = target.with_name(f"{target.stem}_vecnormalize.pkl")
    normalizer.save(str(path))
    return [path]
