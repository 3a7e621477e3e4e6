"""Gymnasium's own passive checks of an environment, as the lines they would warn with."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from gymnasium.utils import passive_env_checker as checker

from rlx.envs.inspect.player import Player

STEPS = 4
SEED = 1
_COVERED = (
    "is not within the observation space", "expecting numpy array dtype", "share an object", "must be a float",
    "expecting a numpy array", "boolean", "The reward is", "was not a tuple", "(obs, info)",
    "old step API", "can be passed", "Casting input",
)  # fmt: skip
"""Warnings about properties that the inspection checks itself, over more steps."""


def passive_warnings(player: Player) -> list[str]:
    """Return the warnings of Gymnasium's checks of spaces, reset and step that rlx does not check itself."""
    env: Any = player.env
    said: list[str] = []
    _listen(said, lambda: checker.check_observation_space(env.observation_space))
    _listen(said, lambda: checker.check_action_space(env.action_space))
    player.seed = SEED
    _listen(said, lambda: player.watched("reset", lambda: checker.env_reset_passive_checker(env, seed=SEED)))
    space = env.action_space
    space.seed(SEED)
    for _ in range(STEPS):
        action = space.sample(player.mask())
        result = _listen(said, partial(_step, player, action))
        if not isinstance(result, tuple) or len(result) != 5 or result[2] or result[3]:
            break
    return list(dict.fromkeys(line for line in said if not any(word in line for word in _COVERED)))


def _step(player: Player, action: Any) -> Any:
    return player.watched("step", lambda: checker.env_step_passive_checker(player.env, action))


def _listen(said: list[str], call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return call()
        except (AssertionError, TypeError) as error:
            said.append(" ".join(str(error).split()))
            return None
        finally:
            lines = [re.sub(r"\x1b\[\d+m", "", str(warning.message)) for warning in caught]
            said += [re.sub(r"^(WARN|ERROR): ", "", line) for line in lines if "WARN" in line or "ERROR" in line]
