"""Algorithms with a bug: patches of the backends that hold while a `with` block trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest import mock

import numpy as np


@contextmanager
def _advantages(change: Callable[[Any], None]) -> Iterator[None]:
    """Change the advantages (seeds, minibatches, rows), in place, after they were normalised."""
    from rlx.train.backends.fast import ppo_update

    normalize = ppo_update.normalize_advantages

    def broken(advantages: Any) -> None:
        normalize(advantages)
        change(advantages)

    with mock.patch.object(ppo_update, "normalize_advantages", broken):
        yield


def _flip(advantages: Any) -> None:
    advantages *= -1.0


def _erase(advantages: Any) -> None:
    advantages *= 0.0


def _misalign(advantages: Any) -> None:
    advantages[:] = np.roll(advantages, 1, axis=2)


@contextmanager
def ends_ignored() -> Iterator[None]:
    """Let advantages run on from one episode into the next."""
    from rlx.train.backends.fast import rollout_buffer

    gae = rollout_buffer.gae

    def broken(rewards: Any, values: Any, dones: Any, **settings: Any) -> Any:
        return gae(rewards, values, np.zeros_like(dones), **settings)

    with mock.patch.object(rollout_buffer, "gae", broken):
        yield


@contextmanager
def ends_lost() -> Iterator[None]:
    """Store every transition as if the episode went on."""
    from stable_baselines3.common.buffers import ReplayBuffer

    add = ReplayBuffer.add

    def broken(self: Any, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: Any) -> None:
        add(self, obs, next_obs, action, reward, np.zeros_like(done), infos)

    with mock.patch.object(ReplayBuffer, "add", broken):
        yield


PATCHES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "": nullcontext,
    "advantage_flipped": lambda: _advantages(_flip),
    "advantage_erased": lambda: _advantages(_erase),
    "advantage_misaligned": lambda: _advantages(_misalign),
    "ends_ignored": ends_ignored,
    "ends_lost": ends_lost,
}
