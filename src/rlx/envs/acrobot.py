"""Gymnasium's Acrobot, many at once: their next steps worked out together, to the bit what each would take alone.

Alone a step is some three hundred operations of NumPy on single numbers, and three quarters of a training's time.
The environments stay what they are. Right around each stands `Foreseen`, which hands out the step that was worked out
for it where state and action are still those it was worked out for, and else lets the environment step by itself.
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
    "LINK_LENGTH_1",
    "LINK_MASS_1",
    "LINK_MASS_2",
    "LINK_COM_POS_1",
    "LINK_COM_POS_2",
    "LINK_MOI",
    "dt",
    "MAX_VEL_1",
    "MAX_VEL_2",
    "AVAIL_TORQUE",
    "torque_noise_max",
    "book_or_nips",
)
physics_of = attrgetter(*PHYSICS)
AS_IT_CAME = (1.0, 1.0, 1.0, 0.5, 0.5, 1.0, 0.2, 4 * np.pi, 9 * np.pi, [-1.0, 0.0, 1], 0.0, "book")
GRAVITY, TIME = 9.8, 0.2
FASTEST = np.array([[4 * np.pi], [9 * np.pi]])
TORQUES = np.array([-1.0, 0.0, 1.0])


class Foreseen(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An Acrobot whose next step may be given in advance."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._given: tuple[bytes, int, Array, Step] | None = None

    @property
    def is_as_it_came(self) -> bool:
        """Whether no attribute of this one hides the class's physics."""
        return vars(self.env).keys().isdisjoint(PHYSICS)

    def give(self, action: int, state: Array, step: Step) -> None:
        """Put down where an action leads from here, and what that step returns."""
        self._given = (self.env.state.tobytes(), action, state, step)  # type: ignore[attr-defined]

    def step(self, action: Any) -> Step:
        env: Any = self.env
        given, self._given = self._given, None
        if given is None or given[1] != action or given[0] != env.state.tobytes():
            return env.step(action)  # type: ignore[no-any-return]
        env.state = given[2]
        return given[3]


def places(envs: Sequence[gymnasium.Env[Any, Any]]) -> list[Foreseen]:
    """Make the steps of these environments foreseeable; none where one is not an Acrobot as Gymnasium makes it."""
    inner = [_innermost(env) for env in envs]
    if len(inner) < 2 or not all(map(_is_plain, inner)):
        return []
    return [_place(wrapper) for wrapper in inner]


def prepare(foreseen: Sequence[Foreseen], actions: Any) -> None:
    """Work out, for each of them, the step that its action leads to."""
    if physics_of(AcrobotEnv) != AS_IT_CAME or not all(place.is_as_it_came for place in foreseen):
        return
    chosen = np.asarray(actions)
    if chosen.shape != (len(foreseen),) or chosen.dtype.kind not in "iu":
        return  # a wrapper makes something else of them
    states = np.concatenate([place.env.state for place in foreseen], dtype=np.float64)  # type: ignore[attr-defined]
    after = _after(states.reshape(-1, 4).T, TORQUES[chosen])
    cosines, sines = np.cos(after[:2]), np.sin(after[:2])
    shown = np.empty((len(chosen), 6), dtype=np.float32)
    shown[:, 0:4:2], shown[:, 1:4:2], shown[:, 4:] = cosines.T, sines.T, after[2:].T
    is_up = -cosines[0] - np.cos(after[1] + after[0]) > 1.0
    rows = zip(foreseen, chosen.tolist(), after.T.copy(), shown, is_up.tolist(), strict=True)
    for place, action, state, observation, ends in rows:
        place.give(action, state, (observation, 0.0 if ends else -1.0, ends, False, {}))


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
    return type(env) is AcrobotEnv and env.render_mode != "human" and physics_of(env) == AS_IT_CAME


def _after(states: Array, torques: Array) -> Array:
    """Return the states, a column each, one step later."""
    half = TIME / 2.0
    first = _slopes(states, torques)
    second = _slopes(states + half * first, torques)
    third = _slopes(states + half * second, torques)
    fourth = _slopes(states + TIME * third, torques)
    after: Array = states + TIME / 6.0 * (first + 2 * second + 2 * third + fourth)
    _wrap(after[:2])
    np.clip(after[2:], -FASTEST, FASTEST, out=after[2:])
    return after


def _wrap(angles: Array) -> None:
    while (above := angles > np.pi).any():
        angles[above] -= 2 * np.pi
    while (below := angles < -np.pi).any():
        angles[below] += 2 * np.pi


def _slopes(states: Array, torques: Array) -> Array:
    """Return how the states change, of two links of length and mass one.

    The order of the operations is Gymnasium's, which decides the last bit; so does `float_power`, the power of single
    numbers, where the power of arrays would multiply.
    """
    angle, bend, speed, bending = states
    cosine, sine = np.cos(bend), np.sin(bend)
    inertia = 0.25 + (1.25 + cosine) + 1.0 + 1.0
    coupling = 0.25 + 0.5 * cosine + 1.0
    outer = 0.5 * GRAVITY * np.cos(angle + bend - np.pi / 2)
    inner = 1.5 * GRAVITY * np.cos(angle - np.pi / 2)
    push = -0.5 * np.float_power(bending, 2) * sine - bending * speed * sine + inner + outer
    pull = 0.5 * np.float_power(speed, 2) * sine
    slopes = np.empty_like(states)
    slopes[:2] = states[2:]
    slopes[3] = (torques + coupling / inertia * push - pull - outer) / (1.25 - np.float_power(coupling, 2) / inertia)
    slopes[2] = -(coupling * slopes[3] + push) / inertia
    return slopes
