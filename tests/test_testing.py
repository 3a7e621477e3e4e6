"""The conformance suite passes a good backend (see tests/train/backends) and fails bad ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from rlx.config.load import document
from rlx.config.schema import Experiment
from rlx.runs.checkpoints.checkpoint import Bundle, Checkpoint
from rlx.testing import RecordingSession, TrainerContract, digest
from rlx.train.trainer import Trainer
from tests.train.backends.sb3_examples import tiny


class Counter:
    """The smallest trainer there is: adds random numbers, exactly resumable."""

    name = "counter"

    def check(self, experiment: Experiment, facts: Any) -> list[Any]:
        return []

    def train(self, session: Any) -> None:
        generator = np.random.default_rng(self.seed(session))
        total, step = 0.0, 0
        if session.checkpoint is not None:
            total, step = float(session.checkpoint.policy["total"]), session.checkpoint.step
            self.restore(generator, session.checkpoint)
        else:
            session.begin(Adder(total), lambda: self.bundle(step, total, generator))
        while step < session.experiment.algo.total_timesteps:
            step += 8
            total += generator.random()
            self.look_at_reward(session, step)
            if not self.obey(self.update(session, step, total, generator)):
                return

    def update(self, session: Any, step: int, total: float, generator: np.random.Generator) -> bool:
        going: bool = session.after_update(
            step,
            lambda: {"train/learning_rate": 0.1},
            policy=Adder(total),
            snapshot=lambda: self.bundle(step, total, generator),
        )
        return going

    def bundle(self, step: int, total: float, generator: np.random.Generator) -> Bundle:
        state = {"generator": generator.bit_generator.state}
        return Bundle(step, "counter", "counter", "exact", "", {"total": np.array(total)}, {}, state, {}, {})

    def load(self, checkpoint: Checkpoint) -> Any:
        return Adder(float(checkpoint.policy["total"]))

    def seed(self, session: Any) -> int:
        return int(session.seed)

    def restore(self, generator: np.random.Generator, checkpoint: Checkpoint) -> None:
        generator.bit_generator.state = checkpoint.state["generator"]

    def obey(self, going: bool) -> bool:
        return going

    def look_at_reward(self, session: Any, step: int) -> None:
        from rlx.errors import JobFailed

        if step > 40 and any("Poisoned" in wrapper.name for wrapper in session.experiment.env.wrappers):
            raise JobFailed(f"reward is nan at step {step}")


class Adder:
    def __init__(self, total: float) -> None:
        self.total = total

    def predict(self, observations: Any, **_: Any) -> Any:
        return observations.sum(axis=1) + self.total

    def reset(self, finished: Any = None) -> None:
        pass


class Contract(TrainerContract):
    __test__ = False
    trainer: ClassVar[Callable[[], Trainer]]

    def experiment(self) -> Experiment:
        return tiny("ppo", total_timesteps=128)


TESTS = [name for name in dir(TrainerContract) if name.startswith("test_")]


def failures(trainer: Callable[[], Any], folder: Path) -> list[str]:
    """Return the tests of the contract that a trainer fails."""
    suite = type("Suite", (Contract,), {"trainer": trainer})()
    failed = []
    for name in TESTS:
        arguments = [] if name.endswith("own_check") else [folder / name]
        try:
            getattr(suite, name)(*arguments)
        except (AssertionError, pytest.fail.Exception):
            failed.append(name)
    return failed


def test_a_good_trainer_passes_everything(tmp_path: Path) -> None:
    assert failures(Counter, tmp_path) == []


class Forgetful(Counter):
    def restore(self, generator: np.random.Generator, checkpoint: Checkpoint) -> None:
        pass


class Deaf(Counter):
    def obey(self, going: bool) -> bool:
        return True


class Stubborn(Counter):
    def seed(self, session: Any) -> int:
        return 3


class Restless(Counter):
    def seed(self, session: Any) -> int:
        return int(np.random.default_rng().integers(2**32))


class Amnesiac(Counter):
    def load(self, checkpoint: Checkpoint) -> Any:
        return Adder(0.0)


class Careless(Counter):
    def look_at_reward(self, session: Any, step: int) -> None:
        pass


@pytest.mark.parametrize(
    ("trainer", "word"),
    [
        (Forgetful, "resumed"),
        (Deaf, "stop"),
        (Stubborn, "another_seed"),
        (Restless, "same_seed"),
        (Amnesiac, "loaded_policy"),
        (Careless, "not_a_number"),
    ],
)
def test_a_bad_trainer_fails_where_it_is_bad(trainer: Callable[[], Any], word: str, tmp_path: Path) -> None:
    failed = failures(trainer, tmp_path)
    assert any(word in name for name in failed)
    assert len(failed) < len(TESTS) - 2


def test_a_rehearsal_saves_what_it_is_given(tmp_path: Path) -> None:
    session = RecordingSession(tiny("ppo"), tmp_path, root=tmp_path)
    made = Bundle(3, "counter", "counter", "exact", "", {"w": np.ones(2)}, {}, {}, {}, {})
    session.interrupt(lambda: made)
    assert session.saved.step == 3
    assert session.saved.config == document(session.experiment)
    assert digest(session.saved) == digest(made)


def test_a_digest_tells_names_shapes_and_optimizers_apart() -> None:
    def made(policy: Mapping[str, Any], optimizer: Mapping[str, Any]) -> str:
        return digest(Bundle(0, "", "", "exact", "", dict(policy), dict(optimizer), {}, {}, {}))

    ones = np.ones(4)
    digests = {made({"a": ones}, {}), made({"b": ones}, {}), made({"a": ones.reshape(2, 2)}, {}), made({}, {"c": ones})}
    assert len(digests) == 4
