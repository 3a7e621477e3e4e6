"""Training and evaluation must see the same: a short replay of the training environment, kept with every checkpoint.

It is in a checkpoint's `parity`: `starts` (rows that follow a reset), `actions`, the raw `observations` they led to and
`is_repeatable`; beside it stand the actions of the training path on these observations (`greedy`, see `policy`).

What is not covered: a change that shows later in an episode than the replay, and masks, rewards and endings.
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
from rlx.evaluate.episode import Lane
from rlx.evaluate.policy import RandomPolicy, stack
from rlx.evaluate.protocol import EPISODE_SEEDS, Protocol
from rlx.evaluate.rollout import own_randomness

if TYPE_CHECKING:
    import gymnasium

    from rlx.config.schema import Env
    from rlx.runs.checkpoint import Bundle

MOST_ROWS, LEAST_ROWS = 32, 4
MOST_BYTES = 256 * 2**10
MOST_SECONDS = 0.2
SEEDS = EPISODE_SEEDS["parity"]
ROUNDING = 1e-5
"""Of observations: another machine's last digits."""


def record(env: Env, *, root: Path) -> dict[str, Any]:
    """Play random actions in a training environment and return the replay; empty where the environment raises."""
    protocol = Protocol(env=env, episodes=1, deterministic=True, purpose="parity", root=root)
    with own_randomness(SEEDS.start):
        made = make_env(env, root=root)
        try:
            replay = _recorded(Lane(made, SEEDS, protocol=protocol))
            again = _followed(Lane(made, SEEDS, protocol=protocol), replay)
        except JobFailed:  # training will meet it too, and tell it better
            return {}
        finally:
            made.close()
    return {**replay, "is_repeatable": bool(_are_alike(again, replay["observations"]).all())}


def _recorded(lane: Lane) -> dict[str, Any]:
    """Reset and step until there are enough rows or the time is up."""
    env = lane.env
    randomly = RandomPolicy(env.action_space, seed=SEEDS.start)
    observations: list[Any] = []
    actions: list[Any] = []
    starts: list[int] = []
    deadline = time.monotonic() + MOST_SECONDS
    is_over = True
    while len(observations) < _enough(env.observation_space) and (len(actions) < 2 or time.monotonic() < deadline):
        if is_over:
            starts.append(len(observations))
            lane.begin()
            is_over = False
        else:
            actions.append(randomly.sample(lane.mask() if lane.mask_of else None))
            is_over = lane.step(actions[-1])
        observations.append(lane.observation)
    return {
        "observations": stack(env.observation_space, observations),
        "actions": stack(env.action_space, actions),
        "starts": starts,
    }


def _enough(space: gymnasium.Space[Any]) -> int:
    from gymnasium.vector.utils import create_empty_array

    size = sum(leaf.nbytes for leaf in _leaves(create_empty_array(space, n=1)))
    return min(MOST_ROWS, max(LEAST_ROWS, MOST_BYTES // max(1, size)))


def _followed(lane: Lane, replay: Mapping[str, Any]) -> Any:
    """Return the observations of a replay in another environment; fewer where an episode ends before its time."""
    from gymnasium.vector.utils import batch_space, iterate

    rows = len(_leaves(replay["observations"])[0])
    actions = iterate(batch_space(lane.env.action_space, rows - len(replay["starts"])), replay["actions"])
    observations: list[Any] = []
    is_over = True
    for row in range(rows):
        if is_over != (row in replay["starts"]):
            break
        if is_over:
            lane.begin()
            is_over = False
        else:
            is_over = lane.step(next(actions))
        observations.append(lane.observation)
    return stack(lane.env.observation_space, observations)


def retrace(bundle: Bundle, env: gymnasium.Env[Any, Any], protocol: Protocol) -> str | None:
    """Play a checkpoint's replay in an evaluation environment; return what the evaluation must say about it.

    Refuses observations that come in another order, shape or range than in training.
    """
    told, name = bundle.parity, protocol.env.id
    if "starts" not in told:
        return None
    if not told["is_repeatable"]:
        return f"{name} did not repeat itself in training, so what it shows now was not compared with that"
    _refuse_another_space("action", env.action_space, bundle, name=name)
    with own_randomness(SEEDS.start):
        shown = _followed(Lane(env, SEEDS, protocol=protocol), told)
    trained = told["observations"]
    is_alike = _are_alike(shown, trained)
    if is_alike.all():
        return None
    _refuse_another_order(shown, trained, name=name)
    _refuse_another_space("observation", env.observation_space, bundle, name=name)
    return (
        f"{name} shows other observations than in training (from row {int(np.argmin(is_alike))} of a stored replay): "
        "its code, arguments or version are others"
    )


def _refuse_another_order(shown: Any, trained: Any, *, name: str) -> None:
    now, then = _sorted_rows(shown), _sorted_rows(trained)
    if now.shape == then.shape and np.allclose(now, then, rtol=ROUNDING, atol=ROUNDING, equal_nan=True):
        raise EvidenceInvalid(
            f"{name}: observations come in another order than in training (the same numbers, in other places)",
            hint="frame stack, axes or keys were changed since: make the evaluation environment's as they were",
        )


def _refuse_another_space(kind: str, space: gymnasium.Space[Any], bundle: Bundle, *, name: str) -> None:
    then = bundle.spaces.get(kind)
    if then is None or files.decode(files.encode(spaces.describe(space))) == files.decode(files.encode(then)):
        return
    found, trained = _said(space), _said(spaces.build(then))
    difference = (
        f"are {found}, in training they were {trained}" if found != trained else "have other bounds than in training"
    )
    raise EvidenceInvalid(
        f"{name}: its {kind}s {difference}",
        hint=f"the evaluation environment needs the wrappers and arguments that shape the training {kind}s",
    )


def _said(space: gymnasium.Space[Any]) -> str:
    return f"{space.dtype} {space.shape}" if space.shape else " ".join(str(space).split())


def _leaves(batch: Any) -> list[NDArray[Any]]:
    """Return the arrays of a batch, (rows, …) each."""
    if isinstance(batch, dict):
        return [leaf for key in sorted(batch) for leaf in _leaves(batch[key])]
    if isinstance(batch, tuple):
        return [leaf for part in batch for leaf in _leaves(part)]
    return [np.asarray(batch)]


def _are_alike(shown: Any, trained: Any) -> NDArray[np.bool_]:
    """Say of every row of `trained` whether `shown` has the same; a row that was never shown is not."""
    now, then = _leaves(shown), _leaves(trained)
    rows = min(len(now[0]), len(then[0]))
    is_alike = np.zeros(len(then[0]), dtype=np.bool_)
    if [(leaf.shape[1:], leaf.dtype) for leaf in now] != [(leaf.shape[1:], leaf.dtype) for leaf in then]:
        return is_alike
    is_alike[:rows] = True
    for one, other in zip(now, then, strict=True):
        close = np.isclose(one[:rows], other[:rows], rtol=ROUNDING, atol=ROUNDING, equal_nan=True)
        is_alike[:rows] &= close.reshape(rows, -1).all(axis=1)
    return is_alike


def _sorted_rows(batch: Any) -> NDArray[np.float64]:
    """Return every number of every row, whatever its place."""
    parts = [leaf.reshape(len(leaf), -1).astype(np.float64) for leaf in _leaves(batch)]
    return np.sort(np.concatenate(parts, axis=1), axis=1)
