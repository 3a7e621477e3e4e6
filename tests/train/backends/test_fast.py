"""The fast backend holds the trainer's contract in every kind of space."""

from __future__ import annotations

from typing import Any

from rlx.config.schema import Experiment
from rlx.testing import TrainerContract
from rlx.train.backends.fast import FastTrainer
from tests.train.backends.sb3_examples import TOYS, tiny


def fast(**settings: Any) -> Experiment:
    return tiny("ppo", total_timesteps=256, **settings).model_copy(update={"backend": "fast"})


class TestDiscrete(TrainerContract):
    trainer = FastTrainer

    def experiment(self) -> Experiment:
        return fast()


class TestBox(TrainerContract):
    trainer = FastTrainer

    def experiment(self) -> Experiment:
        return fast(env={"id": "Pendulum-v1", "normalize": {"obs": True, "reward": True}})


class TestBitsFromChoices(TrainerContract):
    trainer = FastTrainer

    def experiment(self) -> Experiment:
        return fast(env={"id": f"{TOYS}:Switches"})
