"""Potential-based shaping keeps the best policy: γΦ(s′) − Φ(s). A bonus for being near the goal does not.

Both rewards are solved exactly. The count of states with another best action is the proof.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import Floats, TabularMdp, best_values, exact_return, greedy, grid


def potential(width: int) -> Floats:
    """Return minus the distance to the last cell."""
    cells = np.arange(width * width)
    return (cells // width + cells % width - 2 * (width - 1)).astype(np.float64)


def shaped(mdp: TabularMdp, phi: Floats) -> TabularMdp:
    """Add the discounted difference of a potential; an ended state has potential 0."""
    phi = phi * ~mdp.ends
    bonus = mdp.gamma * mdp.transitions @ phi - phi[:, None]
    return replace(mdp, rewards=mdp.rewards + bonus * ~mdp.ends[:, None])


def bonus_for_nearness(mdp: TabularMdp, phi: Floats) -> TabularMdp:
    """Pay for the position in every step: waiting near the goal pays."""
    nearness = phi - phi.min()
    return replace(mdp, rewards=mdp.rewards + nearness[:, None] * ~mdp.ends[:, None])


def changed_states(mdp: TabularMdp, other: TabularMdp) -> int:
    """Count states in which the other reward's best action is not among the best ones."""
    values = best_values(mdp)
    chosen = best_values(other).argmax(axis=1)
    loss = values.max(axis=1) - values[np.arange(mdp.states), chosen]
    return int((loss > 1e-6).sum())


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Compare the best policies under the task's reward, under shaping, and under a bonus."""
    width = 5 + int(2 * scale)
    mdp = grid(width, slip=0.1)
    phi = potential(width)
    naive = bonus_for_nearness(mdp, phi)
    reached = exact_return(mdp, greedy(best_values(naive)))
    best = exact_return(mdp, greedy(best_values(mdp)))
    return [
        at_most("states with another best action under shaping", changed_states(mdp, shaped(mdp, phi)), 0.0),
        at_least("states with another best action under the bonus", changed_states(mdp, naive), 1.0),
        at_least("return that the bonus costs", best - reached, 50.0),
    ]
