"""Random search: every parameter is drawn on its own."""

from __future__ import annotations

from collections.abc import Sequence

from rlx.search.observation import NewConfigs, Observation
from rlx.search.space import Space, Values


class RandomSampler:
    """Draws configs evenly from the space."""

    def propose(self, space: Space, history: Sequence[Observation], count: int, *, seed: int) -> list[Values]:
        """Return new random configs; fewer if the space has no more."""
        return NewConfigs(space, history, count).draw(seed=seed)
