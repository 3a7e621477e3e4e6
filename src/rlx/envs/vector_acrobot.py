"""Computes the next steps of many Gymnasium Acrobots together, with bit-equal results.

A single step takes about three hundred NumPy operations on single numbers, three quarters of a training's time. The
environments stay unchanged. A wrapper, `Foreseen`, right around each of them returns the precomputed step if state and
action are still those that it was computed for. Otherwise the environment steps by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from numpy.typing import NDArray

Array = NDArray[np.float64]
Step = tuple[Any, Any, bool, bool, dict[str, Any]]
PHYSICS = (
    "LINK_LENGTH_1", "LINK_MASS_1", "LINK_MASS_2", "LINK_COM_POS_1", "LINK_COM_POS_2", "LINK_MOI", "dt", "MAX_VEL_1",
    "MAX_VEL_2", "AVAIL_TORQUE", "torque_noise_max", "book_or_nips",
)  # fmt: skip
physics_of = attrgetter(*PHYSICS)
NAMES = frozenset(PHYSICS)
DEFAULTS = (1.0, 1.0, 1.0, 0.5, 0.5, 1.0, 0.2, 4 * np.pi, 9 * np.pi, [-1.0, 0.0, 1], 0.0, "book")
GRAVITY = 9.8
TIME = 0.2
FASTEST = np.array([[4 * np.pi], [9 * np.pi]])
TORQUES = np.array([-1.0, 0.0, 1.0])
# Constants as arrays: with a plain number, an operation on so few columns takes twice as long.
ONE, TWO, HALF, QUARTER, FIVE_QUARTERS = map(np.array, (1.0, 2.0, 0.5, 0.25, 1.25))
RIGHT_ANGLE, OUTER_WEIGHT, INNER_WEIGHT = map(np.array, (np.pi / 2, 0.5 * GRAVITY, 1.5 * GRAVITY))
WHOLE_STEP, HALF_STEP, SIXTH_STEP = map(np.array, (TIME, TIME / 2.0, TIME / 6.0))
HALVES = np.array([[0.5], [-0.5]])


class Foreseen(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An Acrobot whose next step may be computed in advance."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._next: tuple[bytes, int, Array, Step] | None = None
        """The state and action before the step, the state after it, and the result of `step`."""

    def step(self, action: Any) -> Step:
        env: Any = self.env
        step = self._next
        self._next = None
        if step is None or step[1] != action or step[0] != env.state.tobytes():
            return env.step(action)  # type: ignore[no-any-return]
        env.state = step[2]
        return step[3]


def places(envs: Sequence[gymnasium.Env[Any, Any]]) -> list[Foreseen]:
    """Wrap these environments in `Foreseen`, unless one of them is not an unchanged Acrobot of Gymnasium."""
    inner = [_innermost(env) for env in envs]
    if len(inner) < 2 or not all(map(_is_plain, inner)):
        return []
    return [_place(wrapper) for wrapper in inner]


def prepare(foreseen: Sequence[Foreseen], actions: Any) -> None:
    """Compute the step that each action leads to."""
    envs: list[Any] = [place.env for place in foreseen]
    if physics_of(AcrobotEnv) != DEFAULTS or not all(map(NAMES.isdisjoint, map(vars, envs))):
        return  # the class was changed, or an instance overrides one of its constants
    chosen = np.asarray(actions)
    if chosen.shape != (len(foreseen),) or chosen.dtype.kind not in "iu":
        return  # a wrapper changes the actions
    states = np.concatenate([env.state for env in envs], dtype=np.float64)
    after = _after(states.reshape(-1, 4).T.copy(), TORQUES[chosen])  # a copy, so that rows lie together
    cosines = np.cos(after[:2])
    sines = np.sin(after[:2])
    shown = np.empty((len(chosen), 6), dtype=np.float32)
    shown[:, 0:4:2] = cosines.T
    shown[:, 1:4:2] = sines.T
    shown[:, 4:] = after[2:].T
    is_up = -cosines[0] - np.cos(after[1] + after[0]) > ONE
    rows = zip(foreseen, envs, chosen.tolist(), after.T.copy(), shown, is_up.tolist(), strict=True)
    for place, env, action, state, observation, ends in rows:
        step: Step = (observation, 0.0 if ends else -1.0, ends, False, {})
        place._next = (env.state.tobytes(), action, state, step)


def _innermost(env: gymnasium.Env[Any, Any]) -> Any:
    while isinstance(env, gymnasium.Wrapper) and isinstance(env.env, gymnasium.Wrapper):
        env = env.env
    return env


def _place(wrapper: Any) -> Foreseen:
    if isinstance(wrapper, Foreseen):
        return wrapper
    wrapper.env = place = Foreseen(wrapper.env)
    return place


def _is_plain(wrapper: Any) -> bool:
    env = getattr(wrapper, "env", None)
    return type(env) is AcrobotEnv and env.render_mode != "human" and physics_of(env) == DEFAULTS


def _after(states: Array, torques: Array) -> Array:
    """Return the states, one per column, one step later."""
    first = _slopes(states, torques)
    second = _slopes(states + HALF_STEP * first, torques)
    third = _slopes(states + HALF_STEP * second, torques)
    fourth = _slopes(states + WHOLE_STEP * third, torques)
    after: Array = states + SIXTH_STEP * (first + TWO * second + TWO * third + fourth)
    _wrap(after[:2])
    np.maximum(after[2:], -FASTEST, out=after[2:])
    np.minimum(after[2:], FASTEST, out=after[2:])
    return after


def _wrap(angles: Array) -> None:
    if np.maximum.reduce(np.abs(angles), axis=None) <= np.pi:
        return
    while (above := angles > np.pi).any():
        angles[above] -= 2 * np.pi
    while (below := angles < -np.pi).any():
        angles[below] += 2 * np.pi


def _slopes(states: Array, torques: Array) -> Array:
    """Return the time derivatives of the states, for two links of length and mass one.

    The order of the operations is Gymnasium's, because it decides the last bit. So does `float_power`: it computes
    like the power of single numbers, while the power of arrays would multiply.
    """
    angle, bend, speed, bending = states
    inertia = np.cos(bend)
    sine = np.sin(bend)
    coupling = HALF * inertia
    coupling += QUARTER
    coupling += ONE
    inertia += FIVE_QUARTERS
    inertia += QUARTER
    inertia += ONE
    inertia += ONE
    outer = np.cos(angle + bend - RIGHT_ANGLE)
    inner = np.cos(angle - RIGHT_ANGLE)
    outer *= OUTER_WEIGHT
    inner *= INNER_WEIGHT
    squares = np.float_power(states[2:], TWO)
    squares *= HALVES
    squares *= sine
    pull, push = squares
    push -= bending * speed * sine
    push += inner
    push += outer
    slopes = np.empty_like(states)
    slopes[:2] = states[2:]
    slope = np.divide(coupling, inertia, out=slopes[3])
    slope *= push
    slope += torques
    slope -= pull
    slope -= outer
    slope /= FIVE_QUARTERS - np.float_power(coupling, TWO) / inertia
    coupling *= slope
    coupling += push
    np.divide(-coupling, inertia, out=slopes[2])
    return slopes
