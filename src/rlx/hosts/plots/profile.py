"""Performance profiles: for every score, the share of seeds (or of their episodes) above it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rlx.compare import Band, mean_band, performance_profile, profile_band
from rlx.hosts.plots import style
from rlx.hosts.plots.scores import Scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

THRESHOLDS = 400


def thresholds(runs: Sequence[Scores], *, over: str) -> Values:
    """Return evenly spaced scores from below the lowest to above the highest."""
    values = np.concatenate([_values(scores, over=over) for scores in runs])
    margin = 0.03 * float(np.ptp(values)) or 1.0
    return np.linspace(values.min() - margin, values.max() + margin, THRESHOLDS)


def profile(scores: Scores, levels: Values, *, over: str) -> tuple[Values, Band | None]:
    """Return the share above each level and its 95 % band; a single seed has no band.

    The bootstrap resamples seeds with all their episodes, because episodes of one policy are not independent trainings.
    """
    has_band = len(scores.seeds) > 1
    if over == "seeds":
        return performance_profile(scores.values, levels), profile_band(scores.values, levels) if has_band else None
    shares = np.array([performance_profile(_finite(returns), levels) for returns in scores.episodes.values()])
    return shares.mean(axis=0), mean_band(shares) if has_band else None


def draw(runs: Sequence[Scores], *, metric: str, over: str, out: Path) -> None:
    """Write the picture."""
    figure, (axes,) = style.blank(height=style.height_for(len(runs)))
    levels = thresholds(runs, over=over)
    label = f"share of {over} above τ"
    for number, scores in enumerate(runs):
        shares, band = profile(scores, levels, over=over)
        line = style.style(number)
        marked = list(range(number * 13 % 50, THRESHOLDS, 50))
        mark = style.mark(number)
        axes.plot(levels, shares, linewidth=2.2, marker=mark, markevery=marked, label=scores.label, **line)
        if band is not None:
            axes.fill_between(levels, band.low, band.high, color=line["color"], alpha=0.18, linewidth=0)
            label = f"share of {over} above τ\nband: 95 % bootstrap over seeds"
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel(f"τ, {metric}")
    axes.set_ylabel(label)
    style.legend(figure, count=len(runs))
    style.save(figure, out)


def _values(scores: Scores, *, over: str) -> Values:
    if over == "seeds":
        return scores.values
    return np.concatenate([_finite(returns) for returns in scores.episodes.values()])


def _finite(returns: Sequence[float]) -> Values:
    values = np.array(returns, dtype=np.float64)
    return values[np.isfinite(values)]
