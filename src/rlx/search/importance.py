"""How much each parameter matters in a finished search: the share of the ranks that it explains on its own.

The estimate is the one that the default sampler learns from (`samplers/kernel_model.py`). It misses effects that only
show together with another parameter, and with fewer than a dozen trials it is mostly noise.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlx.search.observation import Observation, ranks
from rlx.search.space import Choice, Space

LEAST_TRIALS = 5


def importance(space: Space, history: Sequence[Observation]) -> dict[str, float]:
    """Return key → share of the variance of the ranks in [0, 1]; empty with too few trials."""
    import numpy as np

    from rlx.search.samplers.kernel_model import explained

    known = [seen for seen in history if seen.score is not None or seen.has_failed]
    if len(known) < LEAST_TRIALS:
        return {}
    features = np.array([space.features(seen.values) for seen in known])
    shares = explained(features, ranks(known))
    found: dict[str, float] = {}
    column = 0
    for parameter in space.parameters:
        width = 1
        if isinstance(parameter.domain, Choice) and not parameter.domain.is_ordered:
            width = len(parameter.domain.values)
        found[parameter.key] = round(float(max(shares[column : column + width])), 4)
        column += width
    return found
