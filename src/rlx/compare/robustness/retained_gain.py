"""The share of a trained policy's gain that it keeps under other conditions, seed by seed, with intervals. Pure.

The share is of the gain over the random policy: (score − random) / (nominal − random). It is 1 if nothing changes and 0
if nothing is left of training, whatever the unit and the zero of the returns. Each policy is compared with itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlx.compare.stats import Floats, Interval
from rlx.number_format import plain

LEVEL = 0.95
_RESAMPLES = 5_000


@dataclass(frozen=True)
class RetainedGain:
    """The mean score over seeds and the share of the nominal gain. A single seed has no intervals.

    `share` is None if the nominal policies do not beat the random one, or if that was not measured.
    """

    n: int
    mean: float
    interval: Interval | None = None
    share: float | None = None
    share_interval: Interval | None = None

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {
            "n": self.n, "mean": self.mean, "interval": _ends(self.interval), "kept": self.share,
            "kept_interval": _ends(self.share_interval),
        }  # fmt: skip


def _ends(interval: Interval | None) -> list[float | None] | None:
    if interval is None:
        return None
    return [plain(interval.low), plain(interval.high)]


def retained_gain(nominal: Mapping[int, float], scores: Mapping[int, float], *, random: float | None) -> RetainedGain:
    """Compare every seed's score with its nominal one. Intervals redraw whole seeds (percentile, 95 %)."""
    before = np.array([nominal[seed] for seed in scores], dtype=np.float64)
    after = np.array(list(scores.values()), dtype=np.float64)
    count = after.size
    mean = float(after.mean())
    draws = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=_RESAMPLES) / count
    interval = None
    if count > 1:
        interval = _interval(draws @ after)
    if random is None or not before.mean() > random:
        return RetainedGain(count, mean, interval)
    share = float((mean - random) / (before.mean() - random))
    if count == 1:
        return RetainedGain(count, mean, None, share)
    gains = draws @ before - random
    has_gain = gains > 0  # a redraw without a nominal gain has no share
    shares = (draws @ after - random)[has_gain] / gains[has_gain]
    return RetainedGain(count, mean, interval, share, _interval(shares))


def _interval(values: Floats) -> Interval:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high), LEVEL)
