"""How many seeds the race for a study's head takes, and which p-values move it.

It loads without NumPy, because `rlx next` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlx import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

ROUNDING = 1e-12


@dataclass(frozen=True)
class RaceRule:
    """How the head is raced: the seeds of the two looks and of the head, and the p-values that go on and that move."""

    first: int = 3
    last: int = 6
    head: int = 6
    go_on: float = 0.35
    move: float = 0.17

    def goes_on(self, p: ArrayLike) -> NDArray[np.bool_]:
        """Say whether the first look's p earns the second look: (…) → (…)."""
        import numpy as np

        return np.asarray(p) < self.go_on - ROUNDING

    def moves(self, p: ArrayLike) -> NDArray[np.bool_]:
        """Say whether the last look's p moves the head: (…) → (…)."""
        import numpy as np

        return np.asarray(p) <= self.move + ROUNDING


RULE = RaceRule()
