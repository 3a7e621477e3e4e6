"""Performance profiles: for every score, the share of seeds (or of their episodes) above it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rlx.compare import Band, mean_band, performance_profile, profile_band
from rlx.hosts.plots import page
from rlx.hosts.plots.scores import Scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

THRESHOLDS = 400


def thresholds(every: Sequence[Scores], *, over: str) -> Values:
    """Return evenly spaced scores from below the lowest to the highest there is."""
    values = np.concatenate([_values(one, over=over) for one in every])
    low, high = float(values.min()), float(values.max())
    margin = 0.03 * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, THRESHOLDS)


def profile(scores: Scores, levels: Values, *, over: str) -> tuple[Values, Band | None]:
    """Return the share above each level and its 95 % band; of one seed nothing can be redrawn, so it has none.

    The seeds are redrawn, each with all its episodes: episodes of one policy are no evidence on the next training.
    """
    if over == "seeds":
        shares = performance_profile(scores.values, levels)
        return shares, profile_band(scores.values, levels) if len(scores.seeds) > 1 else None
    each = np.array([performance_profile(_finite(returns), levels) for returns in scores.episodes.values()])
    return each.mean(axis=0), mean_band(each) if len(each) > 1 else None


def draw(every: Sequence[Scores], *, metric: str, over: str, out: Path) -> None:
    """Write the picture."""
    figure, (axes,) = page.blank(height=page.height_for(len(every)))
    levels = thresholds(every, over=over)
    bands = []
    for number, one in enumerate(every):
        shares, band = profile(one, levels, over=over)
        style, marked = page.style(number), range(number * 13 % 50, THRESHOLDS, 50)
        axes.plot(levels, shares, linewidth=2.2, marker=page.mark(number), markevery=list(marked),
                  label=one.label, **style)  # fmt: skip
        if band is not None:
            axes.fill_between(levels, band.low, band.high, color=style["color"], alpha=0.18, linewidth=0)
            bands.append(band)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel(f"τ, {metric}")
    axes.set_ylabel(f"share of {over} above τ" + ("\nband: 95 % bootstrap over seeds" if bands else ""))
    page.legend(figure, count=len(every))
    page.save(figure, out)


def _values(one: Scores, *, over: str) -> Values:
    return one.values if over == "seeds" else np.concatenate([_finite(returns) for returns in one.episodes.values()])


def _finite(returns: Sequence[float]) -> Values:
    values = np.array(returns, dtype=np.float64)
    return values[np.isfinite(values)]
