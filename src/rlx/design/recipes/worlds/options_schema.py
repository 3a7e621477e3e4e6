"""Options: skills with a start set, a policy and an end condition; a manager plans over them (semi-MDP).

`check_options` finds options that cannot start, cannot end or leave states uncovered. Planning with sound options needs
fewer sweeps than planning with single steps, and reaches the same values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import Floats, TabularMdp, best_values, grid

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class SkillOption:
    """A skill: states in which it may start, its policy [state, action], and the chance to end in each state."""

    name: str
    starts: Flags
    policy: Floats
    ends: Floats


def check_options(mdp: TabularMdp, options: list[SkillOption]) -> list[str]:
    """Return the defects of a set of options."""
    defects = []
    covered = np.zeros(mdp.states, dtype=bool)
    for option in options:
        covered |= option.starts
        if not option.starts.any():
            defects.append(f"{option.name}: no state can start it")
        if not np.allclose(option.policy.sum(axis=1), 1):
            defects.append(f"{option.name}: its policy is not a distribution")
        if not _always_ends(mdp, option):
            defects.append(f"{option.name}: it may never end")
    if not (covered | mdp.ends).all():
        defects.append(f"{int((~(covered | mdp.ends)).sum())} states have no option")
    return defects


def _always_ends(mdp: TabularMdp, option: SkillOption) -> bool:
    """Say whether an end can be reached from every start of an option."""
    reaches = (option.ends > 0) | mdp.ends
    moves = np.einsum("sa,san->sn", option.policy, mdp.transitions) > 0
    for _ in range(mdp.states):
        reaches = reaches | (moves & reaches[None, :]).any(axis=1)
    return bool(reaches[option.starts].all())


def option_model(mdp: TabularMdp, option: SkillOption) -> tuple[Floats, Floats]:
    """Return the discounted reward of running an option, and the discounted chances of its end states."""
    moves = np.einsum("sa,san->sn", option.policy, mdp.transitions)
    reward = (option.policy * mdp.rewards).sum(axis=1)
    goes_on = mdp.gamma * moves * (1 - option.ends)[None, :] * ~mdp.ends[None, :]
    stops = mdp.gamma * moves * np.where(mdp.ends, 1.0, option.ends)[None, :]
    inverse = np.linalg.inv(np.eye(mdp.states) - goes_on)
    return inverse @ reward, inverse @ stops


def plan(models: list[tuple[Floats, Floats]], mdp: TabularMdp, *, tolerance: float = 1e-6) -> tuple[Floats, int]:
    """Return state values and the number of sweeps until they no longer change."""
    lowest = float(mdp.rewards.min()) / (1 - mdp.gamma)
    values = np.where(mdp.ends, 0.0, lowest)  # from below, so that values spread outwards from the goal
    for sweep in range(1, 10_000):
        updated = np.max([reward + ends @ values for reward, ends in models], axis=0) * ~mdp.ends
        if np.abs(updated - values).max() < tolerance:
            return updated, sweep
        values = updated
    return values, 10_000


def straight_options(mdp: TabularMdp, width: int) -> list[SkillOption]:
    """Return one option per direction that goes on to the wall, and one that takes a single step each."""
    options = []
    cells = np.arange(mdp.states)
    at_wall = (cells % width == width - 1, cells % width == 0, cells // width == width - 1, cells // width == 0)
    for action, is_wall in enumerate(at_wall):
        policy = np.zeros((mdp.states, mdp.actions))
        policy[:, action] = 1.0
        everywhere = np.ones(mdp.states, dtype=bool)
        options.append(SkillOption(f"go {action}", everywhere, policy, is_wall.astype(float)))
        options.append(SkillOption(f"step {action}", everywhere, policy, np.ones(mdp.states)))
    return options


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Plan with steps and with options, and check a broken set of options."""
    width = 8 + int(4 * scale)
    mdp = grid(width, slip=0.0)
    options = straight_options(mdp, width)
    steps = [option for option in options if option.name.startswith("step")]
    values, sweeps = plan([option_model(mdp, option) for option in options], mdp)
    step_sweeps = plan([option_model(mdp, option) for option in steps], mdp)[1]
    error = float(np.abs(values - best_values(mdp).max(axis=1)).max())
    endless = SkillOption("endless", np.ones(mdp.states, dtype=bool), options[1].policy, np.zeros(mdp.states))
    nowhere = SkillOption("nowhere", np.zeros(mdp.states, dtype=bool), options[0].policy, np.ones(mdp.states))
    return [
        at_most("error of the planned values", error, 1e-4),
        at_most("sweeps with options / with single steps", sweeps / step_sweeps, 0.6),
        at_most("defects of sound options", len(check_options(mdp, options)), 0.0),
        at_least("defects found in two broken options", len(check_options(mdp, [endless, nowhere])), 2.0),
    ]
