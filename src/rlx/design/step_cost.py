"""How long a step of an environment takes, measured so that a busy machine changes little.

Steps are timed in short chunks, and the median chunk is used. CPU time is used, because other programs hardly change
it. Wall time is used for an environment that waits in its steps, for its own process or for a clock. Linux counts such
waits (voluntary context switches) apart from the pauses that other programs cause.
"""

from __future__ import annotations

import contextlib
import resource
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx.config.schema import Env
from rlx.envs.make import quiet, quiet_simulator
from rlx.envs.vector import make_vector

COUNTS = (1, 2, 4, 8, 16, 32)
CHUNKS = 15
CHUNK_SECONDS = 0.004
MOST_SECONDS = 1.0
"""Measuring one number of environments ends after this long, if three chunks are done."""
WAITS_PER_STEP = 0.5
"""From so many waits per step on, an environment waits."""
LEARNER_SECONDS = 40e-6
"""CPU time per step of rlx's own PPO on a small network (`bench/train.md`). Environments cannot make it faster."""
MOST_SECONDS_PER_COUNT = 5.0
"""A number of environments is not tried if its first steps alone would take longer."""
FIRST_STEPS = 7
"""So many steps of each environment are the fewest that a measurement needs."""
WORTHWHILE = 0.1
"""More environments must save this share of the training time."""
FEWEST = 8
"""Few environments give correlated samples, so an on-policy rollout starts with eight."""


@dataclass(frozen=True)
class Throughput:
    """Environment steps per second by number of environments, and the number to start with."""

    steps_per_second: dict[int, float]
    num_envs: int

    def document(self) -> dict[str, Any]:
        """Return the measurement as JSON-able data."""
        rates = {str(count): round(rate) for count, rate in self.steps_per_second.items()}
        return {"steps_per_second": rates, "num_envs": self.num_envs}


def measure_throughput(env: Env, *, root: Path, counts: tuple[int, ...] = COUNTS) -> Throughput:
    """Measure several numbers of environments, and choose the smallest one near the shortest training time.

    It stops as soon as twice as many environments no longer save time, or if steps are too slow to go on. Fewer
    environments give more updates per step.
    """
    seconds: dict[int, float] = {}
    for count in counts:
        if seconds and FIRST_STEPS * count * max(seconds.values()) > MOST_SECONDS_PER_COUNT:
            break
        seconds[count] = step_seconds(env, root=root, count=count)
        if count > FEWEST and not _saves(seconds[count], seconds[count // 2]):
            break
    rates = {count: 1 / cost for count, cost in seconds.items()}
    return Throughput(rates, fewest_worthwhile(seconds))


def fewest_worthwhile(seconds: dict[int, float]) -> int:
    """Return the smallest number of environments whose training time per step is near the shortest."""
    shortest = min(seconds.values())
    near = [count for count, cost in seconds.items() if not _saves(shortest, cost)]
    return max(FEWEST, min(near))


def _saves(seconds: float, before: float) -> bool:
    return seconds + LEARNER_SECONDS < (1 - WORTHWHILE) * (before + LEARNER_SECONDS)


@dataclass(frozen=True)
class Chunk:
    """Some steps in a row: their wall time, CPU time and waits."""

    steps: int
    wall: float
    cpu: float
    waits: int


def step_seconds(env: Env, *, root: Path, count: int = 1) -> float:
    """Return the time of one step of one environment in a vector of `count`."""
    with quiet(), quiet_simulator(), contextlib.closing(make_vector(env, root=root, num_envs=count)) as vector:
        vector.reset(seed=0)
        vector.action_space.seed(0)
        _timed(vector, 1)  # the first step warms up
        first = cost_of_chunks([_timed(vector, 1) for _ in range(3)])
        size = max(1, round(CHUNK_SECONDS / max(first, 1e-6)))
        chunks: list[Chunk] = []
        began = time.perf_counter()
        while len(chunks) < CHUNKS and (len(chunks) < 3 or time.perf_counter() - began < MOST_SECONDS):
            chunks.append(_timed(vector, size))
    return max(cost_of_chunks(chunks) / count, 1e-9)


def cost_of_chunks(chunks: list[Chunk]) -> float:
    """Return the seconds per step of the median chunk."""
    waits = statistics.median(chunk.waits / chunk.steps for chunk in chunks)
    if waits >= WAITS_PER_STEP:
        return statistics.median(chunk.wall / chunk.steps for chunk in chunks)
    return statistics.median(chunk.cpu / chunk.steps for chunk in chunks)


def _timed(vector: Any, steps: int) -> Chunk:
    actions = [vector.action_space.sample() for _ in range(steps)]
    waits = _waits()
    wall = time.perf_counter()
    cpu = time.process_time()
    for action in actions:
        vector.step(action)
    return Chunk(steps, time.perf_counter() - wall, time.process_time() - cpu, _waits() - waits)


def _waits() -> int:
    """Return how often this thread has waited for something; on other systems than Linux, this process."""
    who = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
    return resource.getrusage(who).ru_nvcsw
