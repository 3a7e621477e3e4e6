"""What stands between an experiment and SB3: packages, action and observation spaces, told without importing torch."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata, util
from typing import Any

import numpy as np
from gymnasium import spaces

from rlx.config.schema import ALGORITHMS, Experiment, Problem, Trpo
from rlx.envs.make import EnvFacts
from rlx.envs.spaces import is_image, normalised_keys

PACKAGES = ("torch", "stable_baselines3", "sb3_contrib")
DISCRETE = (spaces.Discrete,)
CONTINUOUS = (spaces.Box,)
COUNTABLE = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
ANY = (spaces.Box, *COUNTABLE)
ACTIONS: dict[str, tuple[type[spaces.Space[Any]], ...]] = {
    "ppo": ANY,
    "a2c": ANY,
    "trpo": ANY,
    "recurrent_ppo": ANY,
    "maskable_ppo": COUNTABLE,
    "dqn": DISCRETE,
    "qrdqn": DISCRETE,
    "sac": CONTINUOUS,
    "td3": CONTINUOUS,
    "ddpg": CONTINUOUS,
    "tqc": CONTINUOUS,
    "ars": (spaces.Box, spaces.Discrete),
}
INSTEAD = {spaces.Box: "ppo, sac or td3", spaces.Discrete: "ppo or dqn"}
SMALLEST_IMAGE = 36  # what three convolutions of strides 4, 2, 1 leave something of


def problems(experiment: Experiment, facts: EnvFacts) -> list[Problem]:
    """Return everything that stands against training this experiment with SB3."""
    return [
        *_packages(experiment),
        *_device(experiment),
        *_actions(experiment, facts),
        *_masks(experiment, facts),
        *_observations(experiment, facts),
        *_normalisation(experiment, facts),
        *_unused(experiment),
    ]


def missing_package() -> str | None:
    """Return the first package that is needed and not installed."""
    return next((package for package in PACKAGES if util.find_spec(package) is None), None)


def _packages(experiment: Experiment) -> Iterator[Problem]:
    missing = missing_package()
    if missing:
        message = f"`{experiment.algo.name}` needs `{missing}`, which is not installed"
        yield Problem("algo.name", message, "pip install 'rlx[sb3]'")


def _device(experiment: Experiment) -> Iterator[Problem]:
    if not experiment.device.startswith("cuda"):
        return
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return
    if version.endswith("+cpu"):
        message = f"device `{experiment.device}`: the installed torch {version} was built without CUDA"
        yield Problem("device", message, "-s device=cpu, or install a CUDA build of torch")


def _actions(experiment: Experiment, facts: EnvFacts) -> Iterator[Problem]:
    name, space = experiment.algo.name, facts.action_space
    if not isinstance(space, ANY):
        yield Problem(
            "env.id",
            f"SB3 cannot act in {_kind(space)} action spaces",
            "flatten it to Box or MultiDiscrete in a wrapper",
        )
        return
    allowed = ACTIONS.get(name, ANY)
    if not isinstance(space, allowed):
        wanted = " or ".join(kind.__name__ for kind in allowed)
        instead = next((names for kind, names in INSTEAD.items() if isinstance(space, kind)), "ppo")
        message = f"`{name}` needs {wanted} actions; {experiment.env.id} has {_kind(space)}"
        yield Problem("algo.name", message, f"use {instead}: -s algo.name={instead.split()[0].rstrip(',')}")
    if isinstance(space, spaces.Box) and not _is_finite(space):
        message = f"the action space of {experiment.env.id} has no finite bounds"
        yield Problem("env.wrappers", message, "bound it with a wrapper: env.wrappers: [clip_action]")
    if isinstance(space, spaces.MultiBinary) and len(space.shape) > 1:
        yield Problem(
            "env.id", "SB3 cannot act in MultiBinary spaces with several dimensions", "flatten it in a wrapper"
        )
    if _starts_late(space):
        yield Problem("env.id", f"SB3 counts actions from 0; {experiment.env.id} has {space}", "shift it in a wrapper")
    if getattr(experiment.algo, "use_sde", False) and not isinstance(space, spaces.Box):
        message = "`algo.use_sde` explores continuous actions only"
        yield Problem("algo.use_sde", message, "-s algo.use_sde=false")


def _masks(experiment: Experiment, facts: EnvFacts) -> Iterator[Problem]:
    is_masked = experiment.algo.name == "maskable_ppo"
    if is_masked and not facts.has_masks:
        message = f"`maskable_ppo` needs action masks, and {experiment.env.id} has no `action_masks()` method"
        yield Problem("algo.name", message, "add the method to the environment, or use ppo: -s algo.name=ppo")
    if facts.has_masks and not is_masked and experiment.algo.name in ALGORITHMS:
        message = f"`{experiment.algo.name}` ignores the action masks of {experiment.env.id}"
        yield Problem("algo.name", message, "maskable_ppo uses them", is_error=False)


def _observations(experiment: Experiment, facts: EnvFacts) -> Iterator[Problem]:
    kind, space = experiment.policy.type, facts.observation_space
    if ":" in kind:
        return
    unreadable = _unreadable(space)
    if unreadable:
        yield Problem("env.id", unreadable, "flatten it: env.wrappers: [flatten]")
    elif isinstance(space, spaces.Dict):
        yield from _dict_observations(experiment)
    elif kind == "multi":
        message = f"policy `multi` reads dict observations; {experiment.env.id} has {_kind(space)}"
        yield Problem("policy.type", message, f"-s policy.type={'cnn' if is_image(space) else 'mlp'}")
    elif kind == "cnn":
        yield from _image_observations(experiment, space)
    elif is_image(space):
        message = f"{experiment.env.id} has image observations, which an mlp reads poorly"
        yield Problem("policy.type", message, "-s policy.type=cnn", is_error=False)


def _dict_observations(experiment: Experiment) -> Iterator[Problem]:
    if experiment.algo.name == "ars":
        yield Problem("algo.name", "`ars` cannot read dict observations", "flatten them: env.wrappers: [flatten]")
    elif experiment.policy.type != "multi":
        message = f"{experiment.env.id} has dict observations; policy `{experiment.policy.type}` cannot read them"
        yield Problem("policy.type", message, "-s policy.type=multi")


def _image_observations(experiment: Experiment, space: spaces.Space[Any]) -> Iterator[Problem]:
    if experiment.algo.name == "ars":
        yield Problem("policy.type", "`ars` has no cnn policy", "-s policy.type=mlp")
    elif not is_image(space):
        message = f"policy `cnn` reads uint8 images of three dimensions; {experiment.env.id} has {space}"
        yield Problem("policy.type", message, "-s policy.type=mlp")
    else:
        assert space.shape is not None
        sides = sorted(space.shape)[1:]
        if sides[0] < SMALLEST_IMAGE:
            message = f"policy `cnn` needs images of {SMALLEST_IMAGE}×{SMALLEST_IMAGE} or more; they are {space.shape}"
            yield Problem("policy.type", message, "resize them in a wrapper, or -s policy.type=mlp")


def _unreadable(space: spaces.Space[Any]) -> str | None:
    if isinstance(space, spaces.Dict):
        inner = [item for item in space.spaces.values() if isinstance(item, (spaces.Dict, spaces.Tuple))]
        return "SB3 cannot read dict observations inside dict observations" if inner else None
    if not isinstance(space, ANY):
        return f"SB3 cannot read {_kind(space)} observations"
    return f"SB3 counts observations from 0; this space is {space}" if _starts_late(space) else None


def _normalisation(experiment: Experiment, facts: EnvFacts) -> Iterator[Problem]:
    if experiment.env.normalize.obs and not normalised_keys(facts.observation_space):
        what = "images are scaled by the network" if is_image(facts.observation_space) else "nothing in it has a scale"
        message = f"`env.normalize.obs`: {experiment.env.id} has {_kind(facts.observation_space)} observations; {what}"
        yield Problem("env.normalize.obs", message, "-s env.normalize.obs=false")


def _unused(experiment: Experiment) -> Iterator[Problem]:
    algo = experiment.algo
    if isinstance(algo, Trpo) and algo.entropy_coef:
        yield Problem("algo.entropy_coef", "`trpo` has no entropy bonus: the key has no effect", is_error=False)
    if algo.name == "ars" and experiment.env.normalize.reward:
        message = "`ars` ranks whole episodes: normalised rewards change the ranking"
        yield Problem("env.normalize.reward", message, "-s env.normalize.reward=false", is_error=False)


def _is_finite(space: spaces.Box) -> bool:
    return bool(np.isfinite(space.low).all() and np.isfinite(space.high).all())


def _starts_late(space: spaces.Space[Any]) -> bool:
    return isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)) and bool(np.any(space.start != 0))


def _kind(space: spaces.Space[Any]) -> str:
    return type(space).__name__
