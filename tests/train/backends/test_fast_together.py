"""Seeds that share a process reach the very numbers they reach alone; one that fails leaves the others alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from rlx.config.load import parse
from rlx.config.schema import Experiment
from rlx.errors import ConfigError
from rlx.runs.checkpoints.checkpoint import Checkpoint
from rlx.testing import RecordingSession, digest
from rlx.train.backends.fast.fast_trainer import FastTrainer
from rlx.train.session import Session, StoppedByRule
from tests.envs.swarm import Swarm

ROOT = Path(__file__).parents[3]
SEEDS = (4, 0, 9)


def swarm(name: str = "tests.envs.swarm:Swarm", **changes: Any) -> Experiment:
    algo = {
        "name": "ppo", "total_timesteps": 600, "rollout_steps": 20, "batch_size": 50, "update_epochs": 3,
        "learning_rate": {"linear": [1e-2, 1e-3]}, "target_kl": 0.02,
    }  # fmt: skip
    env = {"id": name, "num_envs": 5, "normalize": {"obs": True, "reward": True}, **changes.pop("env", {})}
    return parse({"env": env, "algo": algo, "policy": {"hidden_sizes": [8]}, **changes})


def rehearse(
    folder: Path, seeds: tuple[int, ...], experiment: Experiment, **settings: Any
) -> dict[int, RecordingSession]:
    sessions = {
        seed: RecordingSession(experiment, folder / f"seed_{seed}", root=ROOT, seed=seed, **settings) for seed in seeds
    }
    errors = FastTrainer().train_together(cast("list[Session]", list(sessions.values())))
    assert not errors
    return sessions


def weights(checkpoint: Checkpoint) -> str:
    return digest(cast("Any", checkpoint))


def test_a_seed_does_not_notice_the_seeds_beside_it(tmp_path: Path) -> None:
    together = rehearse(tmp_path / "together", SEEDS, swarm())
    for seed in SEEDS:
        alone = RecordingSession(swarm(), tmp_path / f"alone_{seed}", root=ROOT, seed=seed)
        FastTrainer().train(cast("Session", alone))
        assert weights(alone.saved) == weights(together[seed].saved)
        assert alone.rows == together[seed].rows
        np.testing.assert_array_equal(alone.greedy, together[seed].greedy)
    assert len({weights(each.saved) for each in together.values()}) == len(SEEDS)


def test_seeds_that_were_stopped_together_go_on_exactly_with_others_or_alone(tmp_path: Path) -> None:
    whole = rehearse(tmp_path / "whole", SEEDS, swarm())
    first = rehearse(tmp_path / "first", SEEDS, swarm(), stop_at_poll=50)
    (step,) = {each.saved.step for each in first.values()}
    assert 0 < step < 600
    assert {each.saved.resume for each in first.values()} == {"exact"}
    pair = [
        RecordingSession(swarm(), tmp_path / "rest" / str(seed), root=ROOT, seed=seed, checkpoint=first[seed].saved)
        for seed in SEEDS[:2]
    ]
    assert not FastTrainer().train_together(cast("list[Session]", pair))
    for session in pair:
        assert weights(session.saved) == weights(whole[session.seed].saved)


class Ruled(RecordingSession):
    """A session that a rule ends, with what it has saved."""

    def after_update(self, step: int, metrics: Any, **arguments: Any) -> bool:
        goes_on = super().after_update(step, metrics, **arguments)
        if step >= 200:
            raise StoppedByRule("plateau")
        return goes_on


def test_a_seed_that_a_rule_ends_leaves_the_others_alone(tmp_path: Path) -> None:
    sessions = [
        kind(swarm(), tmp_path / str(seed), root=ROOT, seed=seed)
        for kind, seed in zip((RecordingSession, Ruled), SEEDS[:2], strict=True)
    ]
    errors = FastTrainer().train_together(cast("list[Session]", sessions))
    assert {seed: type(error) for seed, error in errors.items()} == {SEEDS[1]: StoppedByRule}
    alone = RecordingSession(swarm(), tmp_path / "alone", root=ROOT, seed=SEEDS[0])
    FastTrainer().train(cast("Session", alone))
    assert weights(sessions[0].saved) == weights(alone.saved)


class Fragile(Swarm):
    """Breaks where a cart began far on the right."""

    made = 0

    def __init__(self, num_envs: int = 1, horizon: int = 40) -> None:
        super().__init__(num_envs, horizon)
        Fragile.made += 1
        self.number, self.calls = Fragile.made, 0

    def step(self, actions: Any) -> Any:
        self.calls += 1
        if self.num_envs == 5 and self.number % 3 == 2 and self.calls > 30:
            raise RuntimeError("the cart broke")
        return super().step(actions)


def test_a_seed_that_fails_drops_out_and_the_others_are_as_if_it_had_never_been(tmp_path: Path) -> None:
    Fragile.made = 0
    experiment = swarm(f"{__name__}:Fragile")
    sessions = [RecordingSession(experiment, tmp_path / str(seed), root=ROOT, seed=seed) for seed in SEEDS]
    errors = FastTrainer().train_together(cast("list[Session]", sessions))
    assert len(errors) == 1
    assert all("the cart broke" in str(error) for error in errors.values())
    for session in sessions:
        if session.seed not in errors:
            alone = RecordingSession(swarm(), tmp_path / f"alone_{session.seed}", root=ROOT, seed=session.seed)
            FastTrainer().train(cast("Session", alone))
            assert weights(alone.saved) == weights(session.saved)


class Careless(Swarm):
    """Draws from the generator that everybody shares."""

    def step(self, actions: Any) -> Any:
        self.carts[:, 1] += 0.01 * np.random.standard_normal(self.num_envs)
        return super().step(actions)


def test_seeds_do_not_share_a_global_generator(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="global random generator"):
        rehearse(tmp_path, SEEDS, swarm(f"{__name__}:Careless"))
