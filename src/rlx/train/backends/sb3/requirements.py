"""Problems that keep SB3 from training an experiment: packages, spaces and settings, found without importing torch."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata, util
from typing import Any

from gymnasium import spaces

from rlx.config.schema import Experiment, Problem, Trpo
from rlx.envs.make import EnvFacts
from rlx.envs.spaces import is_image
from rlx.train.space_problems import KNOWN_SPACES, action_problems, buffer_problems, normalisation_problems, starts_late

PACKAGES = ("torch", "stable_baselines3", "sb3_contrib")
SMALLEST_IMAGE = 36  # SB3's three convolutions need at least so many pixels


def problems(experiment: Experiment, facts: EnvFacts) -> list[Problem]:
    """Return every problem with training this experiment with SB3."""
    return [
        *_installation_problems(experiment),
        *action_problems(experiment, facts, backend="SB3"),
        *_sb3_action_problems(experiment, facts.action_space),
        *_observation_problems(experiment, facts.observation_space),
        *normalisation_problems(experiment, facts),
        *buffer_problems(experiment, facts),
        *_unused_settings(experiment),
    ]


def missing_package() -> str | None:
    """Return the first package that is needed and not installed."""
    return next((package for package in PACKAGES if util.find_spec(package) is None), None)


def _installation_problems(experiment: Experiment) -> Iterator[Problem]:
    missing = missing_package()
    if missing:
        message = f"`{experiment.algo.name}` needs `{missing}`, which is not installed"
        yield Problem("algo.name", message, "pip install 'rlx[sb3]'")
    elif experiment.device.startswith("cuda"):
        version = metadata.version("torch")
        if version.endswith("+cpu"):
            message = f"device `{experiment.device}`: the installed torch {version} was built without CUDA"
            yield Problem("device", message, "-s device=cpu, or install a CUDA build of torch")


def _sb3_action_problems(experiment: Experiment, space: spaces.Space[Any]) -> Iterator[Problem]:
    if isinstance(space, spaces.MultiBinary) and len(space.shape) > 1:
        message = "SB3 cannot act in MultiBinary spaces with several dimensions"
        yield Problem("env.id", message, "flatten it in a wrapper")
    if getattr(experiment.algo, "use_sde", False) and isinstance(space, KNOWN_SPACES[1:]):
        message = "`algo.use_sde` explores continuous actions only"
        yield Problem("algo.use_sde", message, "-s algo.use_sde=false")


def _observation_problems(experiment: Experiment, space: spaces.Space[Any]) -> Iterator[Problem]:
    policy = experiment.policy.type
    env_id = experiment.env.id
    if ":" in policy:
        return
    unreadable = _unreadable(space)
    if unreadable:
        yield Problem("env.id", unreadable, "flatten it: env.wrappers: [flatten]")
    elif isinstance(space, spaces.Dict):
        if experiment.algo.name == "ars":
            yield Problem("algo.name", "`ars` cannot read dict observations", "flatten them: env.wrappers: [flatten]")
        elif policy != "multi":
            message = f"{env_id} has dict observations; policy `{policy}` cannot read them"
            yield Problem("policy.type", message, "-s policy.type=multi")
    elif policy == "multi":
        message = f"policy `multi` reads dict observations; {env_id} has {type(space).__name__}"
        yield Problem("policy.type", message, f"-s policy.type={'cnn' if is_image(space) else 'mlp'}")
    elif policy == "cnn":
        yield from _image_problems(experiment, space)
    elif is_image(space):
        message = f"{env_id} has image observations, which an mlp reads poorly"
        yield Problem("policy.type", message, "-s policy.type=cnn", is_error=False)


def _image_problems(experiment: Experiment, space: spaces.Space[Any]) -> Iterator[Problem]:
    if experiment.algo.name == "ars":
        yield Problem("policy.type", "`ars` has no cnn policy", "-s policy.type=mlp")
    elif not is_image(space):
        message = f"policy `cnn` reads uint8 images of three dimensions; {experiment.env.id} has {space}"
        yield Problem("policy.type", message, "-s policy.type=mlp")
    elif sorted(space.shape or ())[1] < SMALLEST_IMAGE:
        message = f"policy `cnn` needs images of {SMALLEST_IMAGE}×{SMALLEST_IMAGE} or more; they are {space.shape}"
        yield Problem("policy.type", message, "resize them in a wrapper, or -s policy.type=mlp")


def _unreadable(space: spaces.Space[Any]) -> str | None:
    if isinstance(space, spaces.Dict):
        if any(isinstance(item, (spaces.Dict, spaces.Tuple)) for item in space.spaces.values()):
            return "SB3 cannot read dict observations inside dict observations"
    elif not isinstance(space, KNOWN_SPACES):
        return f"SB3 cannot read {type(space).__name__} observations"
    elif starts_late(space):
        return f"SB3 counts observations from 0; this space is {space}"
    return None


def _unused_settings(experiment: Experiment) -> Iterator[Problem]:
    algo = experiment.algo
    if isinstance(algo, Trpo) and algo.entropy_coef:
        yield Problem("algo.entropy_coef", "`trpo` has no entropy bonus: the key has no effect", is_error=False)
    if algo.name == "ars" and experiment.env.normalize.reward:
        message = "`ars` ranks whole episodes: normalised rewards change the ranking"
        yield Problem("env.normalize.reward", message, "-s env.normalize.reward=false", is_error=False)
