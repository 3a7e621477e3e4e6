"""Where to run environments: one loop, processes or machines, from the cost of a step and of a message.

One loop costs n·step per round. Processes cost ⌈n/cores⌉·step plus a message per environment. The calculator names the
cheaper one; a simulation of single rounds is the reference.
"""

from __future__ import annotations

import math

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most

MESSAGE_MICROSECONDS = 60.0
NETWORK_MICROSECONDS = 500.0


def loop_cost(step: float, envs: int) -> float:
    """Return the microseconds of one round in one process."""
    return envs * step


def process_cost(step: float, envs: int, cores: int) -> float:
    """Return the microseconds of one round with a process per environment; the parent handles every message."""
    return math.ceil(envs / cores) * step + envs * MESSAGE_MICROSECONDS


def machine_cost(step: float, envs: int, cores: int, machines: int) -> float:
    """Return the microseconds of one round on several machines."""
    share = math.ceil(envs / machines)
    return process_cost(step, share, cores) + machines * NETWORK_MICROSECONDS


def place(step: float, envs: int, cores: int, machines: int = 1) -> str:
    """Return `loop`, `processes` or `machines`."""
    costs = {"loop": loop_cost(step, envs), "processes": process_cost(step, envs, cores)}
    if machines > 1:
        costs["machines"] = machine_cost(step, envs, cores, machines)
    return min(costs, key=lambda name: costs[name])


def simulated_cost(step: float, envs: int, cores: int) -> float:
    """Play one round with processes: workers take jobs in turn, the parent reads each answer."""
    free = [0.0] * cores
    for _ in range(envs):
        core = free.index(min(free))
        free[core] += step
    return max(free) + envs * MESSAGE_MICROSECONDS


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Compare the formula with the simulation, and look at cheap and at costly steps."""
    worst = 0.0
    for step in (10.0, 100.0, 1000.0, 10_000.0):
        for envs in (1, 3, 8, 64):
            for cores in (1, 2, 16):
                formula = process_cost(step, envs, cores)
                worst = max(worst, abs(formula / simulated_cost(step, envs, cores) - 1))
    cheap = place(30.0, envs=8, cores=8, machines=4)
    costly = place(20_000.0, envs=8, cores=8)
    huge = place(20_000.0, envs=256, cores=8, machines=8)
    right = (cheap == "loop") + (costly == "processes") + (huge == "machines")
    return [
        at_most("largest relative error of the formula", worst, 1e-9),
        at_least("right placements of three cases", right, 3.0),
    ]
