"""Training and evaluation see the same: replays are recorded, known again, and refused where the order is another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlx.config.schema import Env
from rlx.envs import spaces
from rlx.envs.make import make_env
from rlx.errors import EvidenceInvalid
from rlx.evaluate.parity import compare_replay, record_replay
from rlx.evaluate.protocol import Protocol
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.checkpoints.checkpoint import Bundle

WRAPPERS = '''
import time
import gymnasium
import numpy as np


class Stack(gymnasium.wrappers.FrameStackObservation):
    """A frame stack of one's own, which can be newest first."""

    def __init__(self, env, size=3, is_flipped=False):
        super().__init__(env, size)
        self.is_flipped = is_flipped

    def turned(self, frames):
        return frames[::-1].copy() if self.is_flipped else frames

    def reset(self, **settings):
        frames, info = super().reset(**settings)
        return self.turned(frames), info

    def step(self, action):
        frames, *rest = super().step(action)
        return self.turned(frames), *rest


class Turned(gymnasium.ObservationWrapper):
    """Axes the other way round."""

    def __init__(self, env):
        super().__init__(env)
        box = env.observation_space
        self.observation_space = gymnasium.spaces.Box(box.low.T, box.high.T, dtype=box.dtype)

    def observation(self, observation):
        return observation.T


class Keys(gymnasium.ObservationWrapper):
    """Position and speed under two keys, which can be exchanged."""

    def __init__(self, env, is_exchanged=False):
        super().__init__(env)
        self.is_exchanged = is_exchanged
        part = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.observation_space = gymnasium.spaces.Dict(one=part, other=part)

    def observation(self, observation):
        parts = observation[:2], observation[2:]
        return dict(zip(("other", "one") if self.is_exchanged else ("one", "other"), parts))


class Restless(gymnasium.ObservationWrapper):
    """Shows what no seed decides."""

    def observation(self, observation):
        return observation + np.float32(time.perf_counter_ns() % 1000)


class Shifted(gymnasium.ObservationWrapper):
    def observation(self, observation):
        return observation + np.float32(0.5)


class Breaking(gymnasium.Wrapper):
    def step(self, action):
        raise ZeroDivisionError("the floor is lava")
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(WRAPPERS)
    return tmp_path


def world(*wrappers: Any, **settings: Any) -> Env:
    return Env(id="CartPole-v1", wrappers=list(wrappers), **settings)


def own(name: str, **kwargs: Any) -> dict[str, Any]:
    return {"name": f"own.py:{name}", "kwargs": kwargs}


def bundle(env: Env, root: Path) -> Bundle:
    """Return what a backend would save of a training in this environment."""
    made = make_env(env, root=root)
    kinds = {"observation": spaces.describe(made.observation_space), "action": spaces.describe(made.action_space)}
    made.close()
    return Bundle(0, "linear", "ppo", "warm", "", {}, {}, {}, {}, kinds, parity=record_replay(env, root=root))


def retraced(trained: Env, evaluated: Env, root: Path) -> str | None:
    """Train in one environment, evaluate in another."""
    kept = checkpoints.write(root / "checkpoints", bundle(trained, root), name="latest", config={})
    made = make_env(evaluated, root=root)
    try:
        return compare_replay(checkpoints.read(kept), made, Protocol(evaluated, 5, True, "report", root))
    finally:
        made.close()


@pytest.mark.parametrize(
    "wrappers",
    [(), (own("Stack"),), (own("Keys"),), ({"name": "frame_stack", "kwargs": {"size": 4}},), ("time_aware",)],
    ids=str,
)
def test_the_same_environment_is_known_again(wrappers: tuple[Any, ...], root: Path) -> None:
    assert retraced(world(*wrappers), world(*wrappers), root) is None


def test_a_replay_is_short_and_crosses_the_ends_of_episodes(root: Path) -> None:
    replay = record_replay(world(), root=root)
    assert len(replay["observations"]) == 32
    assert len(replay["actions"]) == 32 - len(replay["starts"])
    assert replay["starts"][0] == 0 < replay["starts"][1]
    assert replay["is_repeatable"]


def test_a_replay_of_images_is_shorter(root: Path) -> None:
    (root / "images.py").write_text(
        "import gymnasium, numpy as np\n"
        "class Images(gymnasium.Env):\n"
        "    observation_space = gymnasium.spaces.Box(0, 255, (200, 200, 3), np.uint8)\n"
        "    action_space = gymnasium.spaces.Box(-1, 1, (2,))\n"
        "    def reset(self, *, seed=None, options=None):\n"
        "        super().reset(seed=seed)\n"
        "        return self.observation_space.low, {}\n"
        "    def step(self, action):\n"
        "        return self.observation_space.low, 0.0, False, False, {}\n"
    )
    assert len(record_replay(Env(id="images.py:Images"), root=root)["observations"]) == 4


def test_recording_disturbs_no_generator(root: Path) -> None:
    before = np.random.get_state()[1].copy()
    record_replay(world(), root=root)
    assert (np.random.get_state()[1] == before).all()


@pytest.mark.parametrize(
    ("trained", "evaluated"),
    [
        ((own("Stack"),), (own("Stack", is_flipped=True),)),
        ((own("Stack"),), (own("Stack"), own("Turned"))),
        ((own("Keys"),), (own("Keys", is_exchanged=True),)),
    ],
    ids=["flipped", "turned", "exchanged"],
)
def test_the_same_numbers_in_another_order_are_refused(trained: Any, evaluated: Any, root: Path) -> None:
    with pytest.raises(EvidenceInvalid, match="CartPole-v1: observations have another order than in training"):
        retraced(world(*trained), world(*evaluated), root)


@pytest.mark.parametrize("evaluated", [(), (own("Stack", size=4),)], ids=["no stack", "another size"])
def test_another_shape_is_refused(evaluated: Any, root: Path) -> None:
    with pytest.raises(EvidenceInvalid, match=r"its observations are .*, in training they were float32 \(3, 4\)"):
        retraced(world(own("Stack")), world(*evaluated), root)


def test_another_range_is_refused(root: Path) -> None:
    with pytest.raises(EvidenceInvalid, match="its observations have other bounds than in training"):
        retraced(Env(id="Pendulum-v1", wrappers=["rescale_observation"]), Env(id="Pendulum-v1"), root)


def test_other_actions_are_refused(root: Path) -> None:
    with pytest.raises(EvidenceInvalid, match=r"its actions are float32 \(1,\), in training they were Discrete\(3\)"):
        retraced(Env(id="MountainCar-v0"), Env(id="MountainCarContinuous-v0"), root)


def test_other_numbers_in_the_same_layout_are_said(root: Path) -> None:
    note = retraced(world(), world(own("Shifted")), root)
    assert note is not None
    assert note.startswith("CartPole-v1 shows other observations than in training (from row 0 of a stored replay)")


def test_a_world_that_never_repeats_itself_is_not_compared(root: Path) -> None:
    note = retraced(world(own("Restless")), world(own("Restless")), root)
    assert note is not None
    assert "was not repeatable in training" in note


def test_an_environment_that_raises_leaves_no_replay(root: Path) -> None:
    assert record_replay(world(own("Breaking")), root=root) == {}
    assert retraced(world(own("Breaking")), world(), root) is None
