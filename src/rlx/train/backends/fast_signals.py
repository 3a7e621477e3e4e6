"""What the last rollout of a seed says, for its metrics row."""

from __future__ import annotations

import numpy as np

from rlx.envs.spaces import choice_sizes
from rlx.train import signals
from rlx.train.backends.fast_rollout import Rollout
from rlx.train.backends.fast_stage import Stage


def rollout_row(rollout: Rollout, stage: Stage, *, place: int, entropy: float) -> dict[str, float]:
    """Return the figures of observations, rewards and actions of the seed at `place`, and its share of entropy."""
    real = ~rollout.idle[place].reshape(-1)
    inputs = rollout.inputs[place, :-1].reshape(len(real), -1)[:, :-1]
    rewards = rollout.raw_rewards[place].reshape(-1)
    chosen = np.stack([each[place].T for each in rollout.choices]).reshape(len(real), -1)
    if not real.all():
        inputs, rewards, chosen = inputs[real], rewards[real], chosen[real]
    row = signals.observations(*stage.features.split(inputs)) | signals.rewards(rewards)
    space = stage.action_space
    sizes = choice_sizes(space, with_bits=True)
    if not sizes:
        return row | signals.box_actions(chosen, space.low.reshape(-1), space.high.reshape(-1))  # type: ignore[attr-defined]
    closed = None if rollout.closed is None else rollout.closed[place].reshape(len(real), -1)
    return row | signals.choices(chosen, sizes) | signals.entropy_share(entropy, sizes, closed)
