"""What is kept of a trained policy's gain under other conditions, seed by seed, with intervals over seeds; pure.

The share is of the gain over the random policy, (score − random) / (nominal − random), so it is 1 where nothing changes
and 0 where nothing is left of training, whatever the unit and the zero of the returns. Seeds stay paired: a policy is
compared with itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlx.compare.stats import Floats, Interval, plain

LEVEL = 0.95
_RESAMPLES = 5_000


@dataclass(frozen=True)
class Kept:
    """The mean score over seeds and the share of the nominal gain; one seed has no intervals.

    `share` is None where the nominal policies are no better than the random one, or that was not measured.
    """

    n: int
    mean: float
    interval: Interval | None
    share: float | None
    share_interval: Interval | None

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {
            "n": self.n, "mean": self.mean, "interval": _ends(self.interval), "kept": self.share,
            "kept_interval": _ends(self.share_interval),
        }  # fmt: skip


def _ends(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [plain(interval.low), plain(interval.high)]


def kept(nominal: Mapping[int, float], scores: Mapping[int, float], *, random: float | None) -> Kept:
    """Compare every seed's score with its nominal one; whole seeds are redrawn for the intervals (percentile, 95 %)."""
    before = np.array([nominal[seed] for seed in scores], dtype=np.float64)
    after = np.array(list(scores.values()), dtype=np.float64)
    has_gain = random is not None and float(before.mean()) > random
    share = _share(before.mean(), after.mean(), random) if has_gain else None
    if after.size < 2:
        return Kept(after.size, float(after.mean()), None, None if share is None else float(share), None)
    weights = _redrawn(after.size)
    shares = _share(weights @ before, weights @ after, random) if has_gain else None
    return Kept(
        after.size,
        float(after.mean()),
        _interval(weights @ after),
        None if share is None else float(share),
        None if shares is None else _interval(shares[np.isfinite(shares)]),
    )


def _share(before: Any, after: Any, random: float | None) -> Any:
    """Return the share that is kept; NaN where a redraw of the seeds has no gain to keep a share of."""
    gain = np.asarray(before) - (random or 0.0)
    left = np.asarray(after) - (random or 0.0)
    return np.where(gain > 0, left / np.where(gain > 0, gain, 1.0), np.nan)


def _redrawn(seeds: int) -> Floats:
    drawn = np.random.default_rng(0).multinomial(seeds, np.full(seeds, 1 / seeds), size=_RESAMPLES)
    return drawn / seeds


def _interval(values: Floats) -> Interval:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high), LEVEL)
