"""What is taken out of an SB3 training goes back in without loss."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise, VectorizedActionNoise
from stable_baselines3.common.save_util import recursive_getattr

from rlx.envs.global_rng import GlobalGenerators, global_generators_kept
from rlx.errors import CheckpointInvalid
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.checkpoints import state_tree
from rlx.train.backends.sb3 import training_state
from rlx.train.backends.sb3.sb3_learner import Sb3Learner
from tests.train.backends.sb3_examples import rehearse, tiny


def test_generators_go_back_to_where_they_were() -> None:
    state = GlobalGenerators.now().document()
    drawn = [(random.random(), np.random.rand(), np.random.randn(), float(torch.rand(1))) for _ in range(3)]
    GlobalGenerators.read(state).put_back()
    again = [(random.random(), np.random.rand(), np.random.randn(), float(torch.rand(1))) for _ in range(3)]
    assert drawn == again


def test_a_block_may_draw_without_being_noticed() -> None:
    state = GlobalGenerators.now().document()
    with global_generators_kept():
        random.random(), np.random.rand(), torch.rand(1)
    after = GlobalGenerators.now().document()
    assert state["python"] == after["python"]
    np.testing.assert_array_equal(state["torch"], after["torch"])
    np.testing.assert_array_equal(state["numpy"][1], after["numpy"][1])


class Box:
    """As much of an algorithm as an optimizer needs."""

    def __init__(self, kind: Any, **settings: Any) -> None:
        torch.manual_seed(0)
        self.network = torch.nn.Linear(3, 2)
        self.inner = torch.optim.SGD([self.network.bias], lr=0.1, momentum=0.9)
        self.optimizer = kind(self.network.parameters(), lr=1e-2, **settings)
        self.scale = torch.zeros(1, requires_grad=True)

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy", "optimizer", "inner"], ["scale"]

    def learn(self, steps: int) -> None:
        for step in range(steps):
            for optimizer in (self.optimizer, self.inner):
                optimizer.zero_grad()
                self.network(torch.full((4, 3), float(step))).square().mean().backward()
                optimizer.step()
            self.scale.data += 1


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (torch.optim.Adam, {"eps": 1e-5}),
        (torch.optim.AdamW, {"amsgrad": True}),
        (torch.optim.RMSprop, {"momentum": 0.5, "centered": True}),
        (torch.optim.SGD, {"nesterov": True, "momentum": 0.9}),
        (torch.optim.Adagrad, {}),
        (torch.optim.Rprop, {}),
    ],
)
def test_any_optimizer_continues_bit_for_bit(kind: Any, settings: Any, tmp_path: Path) -> None:
    whole, half, resumed = Box(kind, **settings), Box(kind, **settings), Box(kind, **settings)
    whole.learn(3), half.learn(3)
    arrays, plain = training_state.optimizer_state(half)  # type: ignore[arg-type]
    bundle = checkpoints.Bundle(0, "sb3", "x", "exact", "", {}, arrays, {"plain": plain}, {}, {})
    found = checkpoints.read(checkpoints.write(tmp_path, bundle, name="latest", config={}))
    resumed.network.load_state_dict(half.network.state_dict())
    training_state.load_optimizers(resumed, found.optimizer, found.state["plain"])  # type: ignore[arg-type]
    whole.learn(3), resumed.learn(3)
    for name in ("network.weight", "network.bias", "scale"):
        assert torch.equal(recursive_getattr(whole, name), recursive_getattr(resumed, name))


def filled(rows: int, *, size: int = 8, **settings: Any) -> ReplayBuffer:
    learner = Sb3Learner(tiny("dqn"), root=Path(), seed=0)
    learner.close()
    buffer = ReplayBuffer(2 * size, learner.env.observation_space, learner.env.action_space, n_envs=2, **settings)
    for row in range(rows):
        observation = np.full((2, 4), row, dtype=np.float32)
        buffer.add(observation, observation + 0.5, np.array([0, 1]), np.ones(2), np.zeros(2), [{}, {}])
    return buffer


@pytest.mark.parametrize("rows", [0, 3, 8, 11])
def test_only_the_filled_part_of_a_replay_buffer_is_kept_and_without_a_copy(rows: int) -> None:
    buffer, empty = filled(rows), filled(0)
    arrays, position = training_state.replay_arrays(buffer)
    assert {len(array) for array in arrays.values()} == {min(rows, 8)}
    assert all(array.base is not None for array in arrays.values())
    training_state.load_replay(empty, arrays, position, where="here")
    assert (empty.pos, empty.full) == (buffer.pos, buffer.full)
    for name in ("observations", "next_observations", "actions", "rewards", "dones", "timeouts"):
        np.testing.assert_array_equal(getattr(empty, name), getattr(buffer, name))


def test_a_buffer_that_shares_rows_keeps_the_row_after_the_last() -> None:
    buffer = filled(3, optimize_memory_usage=True, handle_timeout_termination=False)
    arrays, position = training_state.replay_arrays(buffer)
    assert position["rows"] == 4
    np.testing.assert_array_equal(arrays["observations"][3], np.full((2, 4), 2.5))


def test_a_replay_that_does_not_fit_is_refused() -> None:
    arrays, position = training_state.replay_arrays(filled(8))
    with pytest.raises(CheckpointInvalid, match=r"replay `observations` is of shape \(8, 2, 4\)"):
        training_state.load_replay(filled(0, size=4), arrays, position, where="here")
    with pytest.raises(CheckpointInvalid, match="absent"):
        training_state.load_replay(filled(0), {}, position, where="here")


def test_noise_with_a_memory_keeps_it(tmp_path: Path) -> None:
    def learner() -> Sb3Learner:
        made = Sb3Learner(tiny("td3"), root=tmp_path, seed=0)
        noise = OrnsteinUhlenbeckActionNoise(np.zeros(1), np.ones(1))
        made.algorithm.action_noise = VectorizedActionNoise(noise, 2)
        made.begin()
        made.close()
        return made

    one, two = learner(), learner()
    assert one.algorithm.action_noise is not None
    assert two.algorithm.action_noise is not None
    one.algorithm.action_noise()
    training_state.set_progress_state(two.algorithm, training_state.progress_state(one.algorithm))
    state = GlobalGenerators.now().document()
    first = one.algorithm.action_noise()
    GlobalGenerators.read(state).put_back()
    np.testing.assert_array_equal(first, two.algorithm.action_noise())


def test_a_mark_is_not_changed_by_the_training_that_follows(tmp_path: Path) -> None:
    learner = Sb3Learner(tiny("recurrent_ppo", env={"normalize": {"obs": True, "reward": True}}), root=tmp_path, seed=0)
    learner.begin()
    mark = learner.mark()
    before = state_tree.pack(mark)
    frozen = {key: array.copy() for key, array in before[1].items()}
    algorithm: Any = learner.algorithm
    algorithm.learn(64)
    learner.close()
    after = state_tree.pack(mark)
    assert after[0] == before[0]
    for key, array in after[1].items():
        np.testing.assert_array_equal(array, frozen[key])


def test_nothing_in_a_checkpoint_is_pickled(tmp_path: Path) -> None:
    folder = rehearse(tiny("sac"), tmp_path).saved.path
    names = {path.name for path in folder.iterdir()}
    assert names == {"manifest.json", "policy.safetensors", "optimizer.safetensors", "state.json", "state.safetensors",
                     "replay.safetensors"}  # fmt: skip
    assert not any(b"\x80\x04" in path.read_bytes()[:2] for path in folder.iterdir())
