"""An out-of-distribution suite with a control arm: shift one factor at a time and subtract the noise of no shift.

The sham arm changes nothing but the start seeds. A shift is brittle if it costs more than 20 % beyond the sham arm's
interval. Without the sham arm, noise would be called brittleness.
"""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import Floats, cartpole_returns

BRITTLE = 0.2
WEAK_POLICY = np.array([0.0, 0.0, 1.0, 0.0])
"""It follows the angle alone, so its returns vary from start to start."""


def act(observation: Floats) -> int:
    """Return the action of the policy under test."""
    return int(observation @ WEAK_POLICY > 0)


def relative_drop(control: Floats, shifted: Floats) -> tuple[float, float]:
    """Return the mean relative drop and its standard error."""
    base = control.mean()
    drop = 1 - shifted.mean() / base
    error = np.sqrt(shifted.var(ddof=1) / len(shifted) + control.var(ddof=1) / len(control)) / base
    return float(drop), float(error)


def is_brittle(control: Floats, shifted: Floats) -> bool:
    """Say whether a shift costs more than 20 %, beyond two standard errors."""
    drop, error = relative_drop(control, shifted)
    return drop - 2 * error > 0 and drop > BRITTLE


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Test one policy under sham shifts and under real ones."""
    episodes = int(30 * scale) + 20
    control = cartpole_returns(act, episodes=episodes, first_seed=1000 + seed)
    shams = [cartpole_returns(act, episodes=episodes, first_seed=5000 + 1000 * arm + seed) for arm in range(3)]
    heavy = cartpole_returns(act, episodes=episodes, first_seed=1000 + seed, masspole=1.0)
    mild = cartpole_returns(act, episodes=episodes, first_seed=1000 + seed, length=0.52)
    return [
        at_most("sham arms called brittle", sum(is_brittle(control, sham) for sham in shams), 0.0),
        at_least("drop under a ten times heavier pole", relative_drop(control, heavy)[0], 0.5),
        at_least("the heavy pole is called brittle", float(is_brittle(control, heavy)), 1.0),
        at_most("the slightly longer pole is called brittle", float(is_brittle(control, mild)), 0.0),
    ]
