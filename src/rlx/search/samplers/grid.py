"""Grid search: every combination in order. A range gets five levels."""

from __future__ import annotations

from collections.abc import Sequence

from rlx.search.observation import NewConfigs, Observation
from rlx.search.space import Space, Values


class GridSampler:
    """Returns the combinations of the grid in order; the last parameter changes fastest."""

    def propose(self, space: Space, history: Sequence[Observation], count: int, *, seed: int) -> list[Values]:
        """Return the next combinations that were not tried; fewer at the end of the grid."""
        new = NewConfigs(space, history, count)
        for values in space.grid():
            new.add(values)
            if new.missing <= 0:
                break
        return new.configs
