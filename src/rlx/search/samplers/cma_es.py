"""CMA-ES (extra `search`): a normal distribution that moves towards the better half of each generation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlx.errors import MissingExtra, UsageError
from rlx.search.observation import TRIES, NewConfigs, Observation, ranks
from rlx.search.space import Space, Values

SPREAD = 0.3


class CmaEsSampler:
    """Replays the generations of the history, and draws from the distribution that they lead to."""

    def propose(self, space: Space, history: Sequence[Observation], count: int, *, seed: int) -> list[Values]:
        """Return new configs of the present generation."""
        try:
            import cmaes
        except ImportError:
            raise MissingExtra("cmaes", extra="search", why="the sampler `cmaes`") from None
        if len(space.parameters) < 2:
            raise UsageError("CMA-ES needs at least two parameters", hint="--sampler tpe")
        dimensions = len(space.parameters)
        bounds = np.tile([0.0, 1.0], (dimensions, 1))
        optimizer = cmaes.CMA(mean=np.full(dimensions, 0.5), sigma=SPREAD, bounds=bounds, seed=seed + len(history))
        size = optimizer.population_size
        points = [space.point(observation.values) for observation in history]
        losses = 1 - ranks(history)
        seen = [(np.array(point), loss) for point, loss in zip(points, losses, strict=True) if point is not None]
        for first in range(0, len(seen) - size + 1, size):
            optimizer.tell(seen[first : first + size])
        new = NewConfigs(space, history, count)
        for _ in range(TRIES):
            if new.missing <= 0:
                break
            new.add(space.at(optimizer.ask()))
        return new.draw(seed=seed)
