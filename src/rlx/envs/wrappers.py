"""The wrappers that `env.wrappers` in a config can name, next to `file.py:Class`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rlx.envs.parameter_wrappers import ScaleModel, SetAttributes
from rlx.envs.reward_terms import TERMS, terms_of
from rlx.errors import ConfigError

AnyEnv = gymnasium.Env[Any, Any]


def frame_stack(env: AnyEnv, size: int = 4, padding: str = "reset") -> AnyEnv:
    """Stack the last `size` observations; at the start, repeat the first one (`reset`) or use zeros (`zero`)."""
    return gymnasium.wrappers.FrameStackObservation(env, size, padding_type=padding)


def time_limit(env: AnyEnv, max_steps: int) -> AnyEnv:
    """Truncate episodes after `max_steps`; replaces the limit that the environment was registered with."""
    layers = wrapper_layers(env)
    limit = next((layer for layer in layers if isinstance(layer, gymnasium.wrappers.TimeLimit)), None)
    if limit is None:
        return gymnasium.wrappers.TimeLimit(env, max_steps)
    gymnasium.wrappers.TimeLimit(limit.env, max_steps)  # refuses a limit that is not a positive integer
    limit._max_episode_steps = max_steps
    limit._saved_kwargs = {"max_episode_steps": max_steps}
    for layer in layers:  # every layer caches a spec that names the old limit
        layer._cached_spec = None
    return env


def wrapper_layers(env: AnyEnv) -> list[gymnasium.Wrapper[Any, Any, Any, Any]]:
    """Return the wrappers of an environment, from outside."""
    layers = []
    while isinstance(env, gymnasium.Wrapper):
        layers.append(env)
        env = env.env
    return layers


def rescale_action(env: AnyEnv, min: float = -1.0, max: float = 1.0) -> AnyEnv:
    """Let the agent act in [min, max]; the environment gets its own range."""
    return gymnasium.wrappers.RescaleAction(env, np.float32(min), np.float32(max))


def rescale_observation(env: AnyEnv, min: float = -1.0, max: float = 1.0) -> AnyEnv:
    """Map bounded observations to [min, max]."""
    return gymnasium.wrappers.RescaleObservation(env, np.float32(min), np.float32(max))


def clip_action(env: AnyEnv) -> AnyEnv:
    """Clip actions to the action space before the environment sees them."""
    return gymnasium.wrappers.ClipAction(env)


def clip_reward(env: AnyEnv, min: float | None = -1.0, max: float | None = 1.0) -> AnyEnv:
    """Clip rewards to [min, max]."""
    return gymnasium.wrappers.ClipReward(env, min, max)


class ScaleReward(gymnasium.RewardWrapper[Any, Any]):
    """Multiplies rewards by a constant."""

    def __init__(self, env: AnyEnv, scale: float) -> None:
        super().__init__(env)
        self.scale = float(scale)

    def reward(self, reward: Any) -> float:
        return float(reward) * self.scale


def flatten(env: AnyEnv) -> AnyEnv:
    """Flatten the observation to one vector (discrete parts become one-hot)."""
    return gymnasium.wrappers.FlattenObservation(env)


def one_hot(env: AnyEnv) -> AnyEnv:
    """Turn a discrete observation into a one-hot vector."""
    if not isinstance(env.observation_space, (spaces.Discrete, spaces.MultiDiscrete)):
        raise ConfigError(
            f"wrapper `one_hot` needs a discrete observation, not {env.observation_space}", hint="use `flatten`"
        )
    return gymnasium.wrappers.FlattenObservation(env)


def grayscale(env: AnyEnv, keep_dim: bool = False) -> AnyEnv:
    """Turn RGB images into gray ones."""
    return gymnasium.wrappers.GrayscaleObservation(env, keep_dim=keep_dim)


class Resize(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Resizes image observations to (height, width), each pixel the mean of the area that it covers."""

    def __init__(self, env: AnyEnv, shape: Sequence[int] = (84, 84)) -> None:
        space = env.observation_space
        if not isinstance(space, spaces.Box) or len(space.shape) not in (2, 3) or space.dtype != np.uint8:
            raise ConfigError(f"wrapper `resize` needs an image (uint8, 2 or 3 dimensions), not {space}")
        super().__init__(env)
        self.shape = (int(shape[0]), int(shape[1]))
        self.observation_space = spaces.Box(0, 255, (*self.shape, *space.shape[2:]), np.uint8)

    def observation(self, observation: Any) -> Any:
        from PIL import Image

        planes = observation if observation.ndim == 3 else observation[..., None]
        height, width = self.shape
        resized = [
            np.asarray(Image.fromarray(planes[..., channel]).resize((width, height), Image.Resampling.BOX))
            for channel in range(planes.shape[-1])
        ]
        return np.stack(resized, axis=-1) if observation.ndim == 3 else resized[0]


def reshape(env: AnyEnv, shape: Sequence[int]) -> AnyEnv:
    """Give array observations another shape."""
    return gymnasium.wrappers.ReshapeObservation(env, tuple(shape))


def time_aware(env: AnyEnv, flatten: bool = True, normalize: bool = True) -> AnyEnv:
    """Add the elapsed time (as a share of the horizon, or in steps) to the observation."""
    return gymnasium.wrappers.TimeAwareObservation(env, flatten=flatten, normalize_time=normalize)


class ActionRepeat(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Repeats every action and adds up the rewards and their terms; stops when the episode ends."""

    def __init__(self, env: AnyEnv, repeat: int = 4) -> None:
        if repeat < 1:
            raise ConfigError(f"wrapper `action_repeat`: repeat must be at least 1, not {repeat}")
        super().__init__(env)
        self.repeat = repeat

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        total = 0.0
        terms = Counter[str]()
        for _ in range(self.repeat):
            observation, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            terms.update(terms_of(info))
            if terminated or truncated:
                break
        if terms:
            info = {**info, TERMS: dict(terms)}
        return observation, total, terminated, truncated, info


class RewardTerms(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Reports entries of the environment's infos as reward terms: `{forward: reward_forward}`."""

    def __init__(self, env: AnyEnv, /, **terms: str) -> None:
        _refuse_repeated(env)
        super().__init__(env)
        self.terms = dict(terms)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        own = info.get(TERMS) or {}
        named = {name: self._term(info, key) for name, key in self.terms.items()}
        return observation, reward, terminated, truncated, {**info, TERMS: {**own, **named}}

    def _term(self, info: dict[str, Any], key: str) -> float:
        try:
            return float(info[key])
        except (KeyError, TypeError, ValueError):
            problem = f"has a {type(info[key]).__name__}" if key in info else "has nothing"
            known = [name for name, value in info.items() if isinstance(value, (int, float, np.number))]
            raise ConfigError(
                f"wrapper `reward_terms`: the step's info {problem} under `{key}`",
                hint=f"its numbers: {', '.join(known) or 'none'}",
            ) from None


def _refuse_repeated(env: AnyEnv) -> None:
    """Refuse terms that are named outside a wrapper that repeats actions: it drops the infos of the other steps."""
    if any(isinstance(layer, ActionRepeat) for layer in wrapper_layers(env)):
        raise ConfigError(
            "wrapper `reward_terms` comes after `action_repeat`, which passes on the last step's terms only",
            hint="put `reward_terms` before `action_repeat`, which then adds the terms up",
        )


def max_skip(env: AnyEnv, skip: int = 4) -> AnyEnv:
    """Repeat actions `skip` times and return the pixel-wise maximum of the last two frames."""
    return gymnasium.wrappers.MaxAndSkipObservation(env, skip=skip)


def sticky_actions(env: AnyEnv, probability: float = 0.25) -> AnyEnv:
    """Repeat the previous action with a probability."""
    return gymnasium.wrappers.StickyAction(env, repeat_action_probability=probability)


def delay(env: AnyEnv, steps: int = 1) -> AnyEnv:
    """Delay observations by some steps; zeros come first."""
    return gymnasium.wrappers.DelayObservation(env, delay=steps)


def dtype(env: AnyEnv, dtype: str = "float32") -> AnyEnv:
    """Give observations another NumPy type."""
    return gymnasium.wrappers.DtypeObservation(env, np.dtype(dtype))


def discretize_action(env: AnyEnv, bins: int | Sequence[int] = 11) -> AnyEnv:
    """Turn continuous actions into discrete ones."""
    return gymnasium.wrappers.DiscretizeAction(env, bins if isinstance(bins, int) else tuple(bins))


def discretize_observation(env: AnyEnv, bins: int | Sequence[int] = 11) -> AnyEnv:
    """Turn bounded continuous observations into discrete ones."""
    return gymnasium.wrappers.DiscretizeObservation(env, bins if isinstance(bins, int) else tuple(bins))


def filter_keys(env: AnyEnv, keys: Sequence[str]) -> AnyEnv:
    """Keep only some keys of a dict observation."""
    return gymnasium.wrappers.FilterObservation(env, list(keys))


def atari(env: AnyEnv, screen_size: int = 84, frame_skip: int = 4, noop_max: int = 30) -> AnyEnv:
    """The usual preprocessing of Atari games: no-op starts, frame skip, gray, resized."""
    return gymnasium.wrappers.AtariPreprocessing(env, screen_size=screen_size, frame_skip=frame_skip, noop_max=noop_max)


def _kept_elsewhere(key: str) -> Callable[..., AnyEnv]:
    def refuse(env: AnyEnv, **_: object) -> AnyEnv:
        raise ConfigError(
            "running normalisation is not a wrapper in rlx: its statistics belong to the checkpoint",
            hint=f"set `env.normalize.{key}: true`",
        )

    return refuse


WRAPPERS: dict[str, Callable[..., AnyEnv]] = {
    "frame_stack": frame_stack, "time_limit": time_limit, "rescale_action": rescale_action,
    "rescale_observation": rescale_observation, "clip_action": clip_action, "clip_reward": clip_reward,
    "scale_reward": ScaleReward, "flatten": flatten, "one_hot": one_hot, "grayscale": grayscale, "resize": Resize,
    "reshape": reshape, "time_aware": time_aware, "action_repeat": ActionRepeat, "reward_terms": RewardTerms,
    "max_skip": max_skip, "sticky_actions": sticky_actions, "delay": delay, "dtype": dtype,
    "discretize_action": discretize_action, "discretize_observation": discretize_observation, "filter": filter_keys,
    "atari": atari, "set_attributes": SetAttributes, "scale_model": ScaleModel,
}  # fmt: skip
REWARD_ONLY = ("clip_reward",)
"""Functions that return a RewardWrapper; classes show that themselves."""
REFUSED: dict[str, Callable[..., AnyEnv]] = {
    "normalize_observation": _kept_elsewhere("obs"),
    "normalize_reward": _kept_elsewhere("reward"),
    "NormalizeObservation": _kept_elsewhere("obs"),
    "NormalizeReward": _kept_elsewhere("reward"),
}


def find(name: str) -> Callable[..., AnyEnv] | None:
    """Return rlx's wrapper of this name, or Gymnasium's class of this name (`FrameStackObservation`)."""
    known = WRAPPERS.get(name) or REFUSED.get(name)
    if known is not None or name not in gymnasium.wrappers.__all__:
        return known
    kind = getattr(gymnasium.wrappers, name)
    return kind if isinstance(kind, type) and issubclass(kind, gymnasium.Wrapper) else None
