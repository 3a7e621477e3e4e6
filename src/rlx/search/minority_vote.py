"""A second proposer with a minority vote: at most 30 % of a batch, every vote checked, the sampler owns the search.

A language model alone loses to a classical optimiser; as a minority voter it helps a little, and a bad one does little
harm. Votes that are not in the space, or were tried before, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rlx.search.observation import NewConfigs, Observation, Sampler
from rlx.search.space import Space, Values

LARGEST_SHARE = 0.3
Vote = Callable[[Space, Sequence[Observation], int], Sequence[Any]]
"""Returns up to so many configs; whatever it returns is checked."""


class MinorityVote:
    """A sampler that takes up to 30 % of each batch from a voter, and the rest from another sampler."""

    def __init__(self, sampler: Sampler, vote: Vote) -> None:
        self._sampler = sampler
        self._vote = vote
        self.voted: set[tuple[object, ...]] = set()

    def propose(self, space: Space, history: Sequence[Observation], count: int, *, seed: int) -> list[Values]:
        """Return the valid votes first, then the sampler's configs."""
        voted = NewConfigs(space, history, int(count * LARGEST_SHARE))
        if voted.missing and history:
            for values in self._vote(space, history, voted.missing):
                if isinstance(values, dict) and set(values) <= set(space.keys) and space.point(values) is not None:
                    voted.add(values)
        self.voted.update(space.identity(values) for values in voted.configs)
        known = [*history, *(Observation(values) for values in voted.configs)]
        rest = self._sampler.propose(space, known, count - len(voted.configs), seed=seed)
        return [*voted.configs, *rest]
