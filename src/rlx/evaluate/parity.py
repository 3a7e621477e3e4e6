"""Check that training and evaluation see the same: a short replay of the training environment in every checkpoint.

A checkpoint's `parity` holds `starts` (rows that follow a reset), `actions`, the raw `observations` that they led to,
and `is_repeatable`. Next to it are the actions of the training path on these observations (`greedy`, see `policy`).

Not covered: a change that appears later in an episode than the replay, and masks, rewards and endings.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlx import files
from rlx.envs import spaces
from rlx.envs.make import make_env
from rlx.errors import EvidenceInvalid, JobFailed
from rlx.evaluate.episode import EpisodeRunner
from rlx.evaluate.policy import RandomPolicy, stack
from rlx.evaluate.protocol import EPISODE_SEEDS, Protocol
from rlx.evaluate.rollout import isolated_randomness

if TYPE_CHECKING:
    import gymnasium

    from rlx.config.schema import Env
    from rlx.runs.checkpoints.checkpoint import Bundle

MOST_ROWS = 32
LEAST_ROWS = 4
MOST_BYTES = 256 * 2**10
MOST_SECONDS = 0.2
SEEDS = EPISODE_SEEDS["parity"]
# Tolerance for observations: another machine rounds the last digits differently.
ROUNDING = 1e-5


def record_replay(env: Env, *, root: Path) -> dict[str, Any]:
    """Play random actions in a training environment and return the replay. It is empty if the environment fails."""
    protocol = Protocol(env=env, episodes=1, deterministic=True, purpose="parity", root=root)
    with isolated_randomness(SEEDS.start):
        made = make_env(env, root=root)
        try:
            replay = _record(EpisodeRunner(made, SEEDS, protocol=protocol))
            again = _follow(EpisodeRunner(made, SEEDS, protocol=protocol), replay)
        except JobFailed:  # training meets the same error and reports it better
            return {}
        finally:
            made.close()
    return {**replay, "is_repeatable": bool(_are_alike(again, replay["observations"]).all())}


def _record(runner: EpisodeRunner) -> dict[str, Any]:
    """Reset and step until there are enough rows, or the time is up."""
    env = runner.env
    policy = RandomPolicy(env.action_space, seed=SEEDS.start)
    observations: list[Any] = []
    actions: list[Any] = []
    starts: list[int] = []
    deadline = time.monotonic() + MOST_SECONDS
    is_over = True
    while len(observations) < _enough(env.observation_space) and (len(actions) < 2 or time.monotonic() < deadline):
        if is_over:
            starts.append(len(observations))
            runner.begin()
            is_over = False
        else:
            actions.append(policy.sample(runner.mask()))
            is_over = runner.step(actions[-1])
        observations.append(runner.observation)
    return {
        "observations": stack(env.observation_space, observations),
        "actions": stack(env.action_space, actions),
        "starts": starts,
    }


def _enough(space: gymnasium.Space[Any]) -> int:
    from gymnasium.vector.utils import create_empty_array

    size = sum(leaf.nbytes for leaf in _leaves(create_empty_array(space, n=1)))
    return min(MOST_ROWS, max(LEAST_ROWS, MOST_BYTES // max(1, size)))


def _follow(runner: EpisodeRunner, replay: Mapping[str, Any]) -> Any:
    """Return the observations of a replay in another environment: fewer if an episode ends earlier."""
    from gymnasium.vector.utils import batch_space, iterate

    rows = len(_leaves(replay["observations"])[0])
    actions = iterate(batch_space(runner.env.action_space, rows - len(replay["starts"])), replay["actions"])
    observations: list[Any] = []
    is_over = True
    for row in range(rows):
        if is_over != (row in replay["starts"]):
            break
        if is_over:
            runner.begin()
            is_over = False
        else:
            is_over = runner.step(next(actions))
        observations.append(runner.observation)
    return stack(runner.env.observation_space, observations)


def compare_replay(bundle: Bundle, env: gymnasium.Env[Any, Any], protocol: Protocol) -> str | None:
    """Play a checkpoint's replay in an evaluation environment. Return a note for the evaluation, if one is needed.

    Raises if observations have another order, shape or range than in training.
    """
    replay = bundle.parity
    name = protocol.env.id
    if "starts" not in replay:
        return None
    if not replay["is_repeatable"]:
        return f"{name} was not repeatable in training, so its observations were not compared"
    _refuse_other_space("action", env.action_space, bundle, name=name)
    with isolated_randomness(SEEDS.start):
        shown = _follow(EpisodeRunner(env, SEEDS, protocol=protocol), replay)
    trained = replay["observations"]
    is_alike = _are_alike(shown, trained)
    if is_alike.all():
        return None
    _refuse_other_order(shown, trained, name=name)
    _refuse_other_space("observation", env.observation_space, bundle, name=name)
    return (
        f"{name} shows other observations than in training (from row {int(np.argmin(is_alike))} of a stored replay): "
        "its code, arguments or version have changed"
    )


def _refuse_other_order(shown: Any, trained: Any, *, name: str) -> None:
    now = _sorted_rows(shown)
    then = _sorted_rows(trained)
    if now.shape == then.shape and np.allclose(now, then, rtol=ROUNDING, atol=ROUNDING, equal_nan=True):
        raise EvidenceInvalid(
            f"{name}: observations have another order than in training (the same numbers in other places)",
            hint="restore the frame stack, axes or keys that the training environment had",
        )


def _refuse_other_space(kind: str, space: gymnasium.Space[Any], bundle: Bundle, *, name: str) -> None:
    then = bundle.spaces.get(kind)
    if then is None or files.decode(files.encode(spaces.describe(space))) == files.decode(files.encode(then)):
        return
    current = spaces.in_words(space)
    trained = spaces.in_words(spaces.build(then))
    difference = "have other bounds than in training"
    if current != trained:
        difference = f"are {current}, in training they were {trained}"
    raise EvidenceInvalid(
        f"{name}: its {kind}s {difference}",
        hint=f"the evaluation environment needs the wrappers and arguments that shape the training {kind}s",
    )


def _leaves(batch: Any) -> list[NDArray[Any]]:
    """Return the arrays of a batch, (rows, …) each."""
    if isinstance(batch, dict):
        return [leaf for key in sorted(batch) for leaf in _leaves(batch[key])]
    if isinstance(batch, tuple):
        return [leaf for part in batch for leaf in _leaves(part)]
    return [np.asarray(batch)]


def _are_alike(shown: Any, trained: Any) -> NDArray[np.bool_]:
    """Return for every row of `trained` whether `shown` has the same row. A row that is missing is different."""
    now = _leaves(shown)
    then = _leaves(trained)
    rows = min(len(now[0]), len(then[0]))
    is_alike = np.zeros(len(then[0]), dtype=np.bool_)
    if [(leaf.shape[1:], leaf.dtype) for leaf in now] != [(leaf.shape[1:], leaf.dtype) for leaf in then]:
        return is_alike
    is_alike[:rows] = True
    for leaf, other in zip(now, then, strict=True):
        close = np.isclose(leaf[:rows], other[:rows], rtol=ROUNDING, atol=ROUNDING, equal_nan=True)
        is_alike[:rows] &= close.reshape(rows, -1).all(axis=1)
    return is_alike


def _sorted_rows(batch: Any) -> NDArray[np.float64]:
    """Return the numbers of every row in ascending order."""
    parts = [leaf.reshape(len(leaf), -1).astype(np.float64) for leaf in _leaves(batch)]
    return np.sort(np.concatenate(parts, axis=1), axis=1)
