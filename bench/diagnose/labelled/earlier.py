"""The rules of earlier tools, with their absolute limits, as far as they are known: trend first, then metrics.

The trend uses windows of five points of the training returns. A run needs attention (high) if it failed or declines. It
is to be watched (medium) if it regressed late, is unstable late or flat, or is CartPole below 400. Notes on PPO's
metrics follow. Their words are mapped to the names of the rules here that mean the same.
"""

from __future__ import annotations

import numpy as np

from rlx.diagnose.run_case import RETURN, RunCase, SeedCase

WINDOW = 5


def findings(case: RunCase) -> list[str]:
    """Return the findings of the earlier rules, worst first."""
    seed = case.seeds[0]
    if seed.state != "completed":
        return ["nan"]
    trend = _trend(seed.values(RETURN))
    high = ["getting_worse"] if trend == "declining" else []
    medium = {"regressed": ["collapse_after_peak"], "unstable": ["instability"], "flat": ["no_learning"]}.get(trend, [])
    if case.setting("env.id") == "CartPole-v1" and seed.report and seed.report.mean < 400:
        medium = [*medium, "plateau"]
    return [*high, *medium, *_notes(seed)]


def _trend(values: np.ndarray) -> str:
    returns = values[np.isfinite(values)]
    if len(returns) < WINDOW:
        return "declining"  # no curve: high
    levels = np.convolve(returns, np.full(WINDOW, 1 / WINDOW), "valid")
    first, final, best = float(levels[0]), float(levels[-1]), float(levels.max())
    late = returns[-WINDOW:]
    drop, delta, spread = best - final, final - first, float(late.std())
    if drop >= 0.25 * abs(best) and drop >= 10:
        return "regressed"
    if delta >= 10 and final >= 0.9 * best:
        return "improving"
    if spread >= 0.25 * abs(float(late.mean())) and spread >= 10:
        return "unstable"
    return "improving" if delta >= 10 else "flat" if abs(delta) < 5 else "declining"


def _notes(seed: SeedCase) -> list[str]:
    """Return the findings on the last values of PPO's metrics."""
    last = {key: float(values[-1]) for key in LIMITS if (values := seed.values(key)).size}
    return [rule for key, value in last.items() for rule, is_bad in LIMITS[key] if is_bad(value)]


LIMITS = {
    "train/approx_kl": (
        ("update_too_large", lambda value: value > 0.05),
        ("policy_frozen", lambda value: value < 1e-5),
    ),
    "train/clip_fraction": (
        ("update_too_large", lambda value: value > 0.3),
        ("policy_frozen", lambda value: value < 1e-3),
    ),
    "train/explained_variance": (("critic_uninformative", lambda value: value < 0.0),),
}
