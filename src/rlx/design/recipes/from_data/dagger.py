"""DAgger: let the learner act, ask the expert for the right action in the states it visits, and train on all of them.

Cloning sees only the expert's states. After a slip it is lost. DAgger labels those states too, with as many queries.
"""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least
from rlx.design.recipes.small_worlds import Floats, TabularMdp, best_values, exact_return, greedy, grid, sample_episode


def fitted(labels: dict[int, int], mdp: TabularMdp) -> Floats:
    """Return the policy that a table of labels gives: unseen states keep a uniform choice."""
    policy = np.full((mdp.states, mdp.actions), 1 / mdp.actions)
    for state, action in labels.items():
        policy[state] = 0.0
        policy[state, action] = 1.0
    return policy


def label(labels: dict[int, int], states: list[int], expert: Floats, *, queries: int) -> int:
    """Ask the expert in these states, at most so many times, and return how many queries are left."""
    for state in states:
        if queries == 0:
            break
        labels[state] = int(expert[state].argmax())
        queries -= 1
    return queries


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Compare cloning and DAgger at an equal number of queries in a world that slips."""
    rng = np.random.default_rng(seed)
    calm = grid(8, slip=0.0)
    windy = grid(8, slip=0.4)
    expert = greedy(best_values(windy))
    budget = int(400 * scale) + 400
    cloned: dict[int, int] = {}
    queries = budget
    while queries:  # demonstrations are calm: the expert never slips
        states = [step.state for step in sample_episode(calm, expert, rng)]
        queries = label(cloned, states, expert, queries=queries)
    dagger: dict[int, int] = {}
    queries = budget
    while queries:
        states = [step.state for step in sample_episode(windy, fitted(dagger, windy), rng)]
        queries = label(dagger, states, expert, queries=queries)
    best = exact_return(windy, expert)
    clone_return = exact_return(windy, fitted(cloned, windy))
    dagger_return = exact_return(windy, fitted(dagger, windy))
    return [
        at_least("return of DAgger / return of the expert (1 is equal)", best / dagger_return, 0.9),
        at_least("gain of DAgger over cloning", dagger_return - clone_return, 5.0),
    ]
