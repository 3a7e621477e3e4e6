"""What a search has seen of a config, and the interface of a sampler."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rlx.search.space import Space, Values

if TYPE_CHECKING:
    from numpy.typing import NDArray

TRIES = 200
MORE_TRIES = 5
"""How many times more random configs are drawn if the space forbids some."""


@dataclass(frozen=True)
class Observation:
    """A config that was tried: the share of its training length that it got, and its score there; higher is better.

    A config that crashed, diverged or ran out of memory has `has_failed` and no score. One that is still in training
    has neither.
    """

    values: Values
    score: float | None = None
    share: float = 1.0
    has_failed: bool = False


class Sampler(Protocol):
    """Proposes configs. It keeps no state: the same history and seed give the same proposals."""

    def propose(self, space: Space, history: Sequence[Observation], count: int, *, seed: int) -> list[Values]:
        """Return up to `count` configs that are neither in the history nor equal to each other."""
        ...


def ranks(history: Sequence[Observation]) -> NDArray[Any]:
    """Return a target in [0, 1] per observation: failed ones last, then by training share, then by score: (n,).

    Halving trains the better configs longer. So a config that got further ranks above one that was dropped before,
    whatever their scores. Ranks do not depend on the unit or on outliers of the score.
    """
    import numpy as np

    standings = [_standing(observation) for observation in history]
    ordered = sorted(standings)
    below = [bisect_left(ordered, standing) for standing in standings]
    up_to = [bisect_right(ordered, standing) for standing in standings]
    position: NDArray[Any] = (np.array(below) + np.array(up_to)) / (2 * max(1, len(history)))
    return position


def _standing(observation: Observation) -> tuple[bool, float, float]:
    if observation.has_failed or observation.score is None:
        return (False, 0.0, 0.0)
    return (True, observation.share, observation.score)


class NewConfigs:
    """Collects configs that the space allows, and that are neither in the history nor equal to each other."""

    def __init__(self, space: Space, history: Sequence[Observation], count: int) -> None:
        self.space = space
        self.configs: list[Values] = []
        self.missing = count
        self._known = {space.identity(observation.values) for observation in history}
        self._drawn = len(history)

    def add(self, values: Values) -> bool:
        """Add a config if it is new and one is missing; return whether it was added."""
        if self.missing <= 0:
            return False
        identity = self.space.identity(values)
        if identity in self._known:
            return False
        self._known.add(identity)
        if not self.space.is_allowed(values):
            return False
        self.configs.append(values)
        self.missing -= 1
        return True

    def draw(self, *, seed: int) -> list[Values]:
        """Fill up with random configs and return all; fewer if the space has no more."""
        import numpy as np

        generator = np.random.default_rng([seed, self._drawn, len(self.configs)])
        tries = TRIES + 2 * self.missing
        if self.space.allows is not None:
            tries *= MORE_TRIES
        for _ in range(tries):
            if self.missing <= 0:
                return self.configs
            self.add(self.space.at(generator.random(len(self.space.parameters)).tolist()))
        if self.space.size <= TRIES:  # a small space that is nearly used up: take the rest in order
            for values in self.space.configs():
                self.add(values)
        return self.configs
