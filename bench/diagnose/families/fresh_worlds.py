"""Six more worlds, written after every rule and every limit was fixed. No limit may be chosen on them.

They take the same faults as those in `worlds`, and are trained with PPO, DQN, SAC and TD3.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from families.worlds import World

ROCKS = ((0.0, 0.6), (0.0, -0.6), (0.7, 0.1))


def _clip(value: float, limit: float = 1.0) -> float:
    return min(limit, max(-limit, value))


class Harbor(World):
    """A point mass passes between rocks and docks on the other side, slowly. A rock ends the episode."""

    sizes = (6, 2)
    limit = 80

    def begin(self, rng: np.random.Generator) -> None:
        self.x, self.y = -1.2, float(rng.uniform(-0.8, 0.8))
        self.u = self.v = 0.0
        self.dock = float(rng.uniform(-0.6, 0.6))

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        ax, ay = (_clip(float(part)) for part in action)
        self.u = 0.9 * self.u + 0.02 * ax
        self.v = 0.9 * self.v + 0.02 * ay
        before = self._gap()
        self.x = _clip(self.x + self.u, 2.0)
        self.y = _clip(self.y + self.v, 2.0)
        gap = self._gap()
        has_hit = any(math.hypot(self.x - x, self.y - y) < 0.2 for x, y in ROCKS)
        docked = gap < 0.2 and math.hypot(self.u, self.v) < 0.15
        terms = {
            "approach": before - gap,
            "time": -0.005,
            "rock": -1.0 * has_hit,
            "dock": 2.0 * docked,
        }
        return terms, docked, docked or has_hit, 0.2 <= gap < 0.6

    def _gap(self) -> float:
        return math.hypot(self.x - 1.2, self.y - self.dock)

    def view(self) -> list[float]:
        return [self.x, self.y, 5 * self.u, 5 * self.v, 1.2 - self.x, self.dock - self.y]


class Cooling(World):
    """A server room: cool to the wanted temperature and hold it while the load changes; energy costs."""

    sizes = (4, 1)
    limit = 40

    def begin(self, rng: np.random.Generator) -> None:
        self.heat = float(rng.uniform(0.5, 1.5))
        self.load = float(rng.uniform(0.2, 0.5))
        self.power = 0.0
        self.held = 0

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        self.power += 0.4 * (0.5 * (1 + _clip(float(np.ravel(action)[0]))) - self.power)
        self.heat += 0.15 * (self.load - self.power)
        error = abs(self.heat)
        self.held = self.held + 1 if error < 0.12 else 0
        is_last = self.steps >= self.limit
        terms = {"error": -0.2 * min(error, 2.0), "energy": -0.02 * self.power, "comfort": 0.05 * (error < 0.12)}
        return terms, is_last and self.held >= 10, False, 0.3 < self.heat < 0.8

    def view(self) -> list[float]:
        return [self.heat, self.load, self.power, min(self.held, 10) / 10]


class Catch(World):
    """A ball falls, a paddle has to be below it: four balls an episode."""

    sizes = (4, -3)
    limit = 32

    def begin(self, rng: np.random.Generator) -> None:
        self.paddle = 3
        self.caught = 0
        self._drop(rng)

    def _drop(self, rng: np.random.Generator) -> None:
        self.ball = int(rng.integers(7))
        self.height = 7
        self.drift = int(rng.integers(-1, 2))

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        self.paddle = min(6, max(0, self.paddle + int(action) - 1))
        self.height -= 1
        if self.height == 4:
            self.ball = min(6, max(0, self.ball + self.drift))
        caught = missed = False
        if self.height == 0:
            caught = self.paddle == self.ball
            missed = not caught
            self.caught += caught
            self._drop(self.np_random)
        is_over = self.steps >= 28
        terms = {"catch": 1.0 * caught, "miss": -0.5 * missed, "motion": -0.01 * (int(action) != 1)}
        return terms, is_over and self.caught >= 4, is_over, self.paddle in (0, 6)

    def view(self) -> list[float]:
        return [self.paddle / 3 - 1, self.ball / 3 - 1, self.height / 7, float(self.drift)]


class Forage(World):
    """A five by five field with two berries and a thorn; every step costs."""

    sizes = (8, -4)
    limit = 30

    def begin(self, rng: np.random.Generator) -> None:
        places = rng.permutation(25)[:4]
        self.me, self.thorn, *berries = ([int(place) // 5, int(place) % 5] for place in places)
        self.berries = list(berries)

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        down, right = ((1, 0), (-1, 0), (0, 1), (0, -1))[int(action)]
        self.me = [min(4, max(0, self.me[0] + down)), min(4, max(0, self.me[1] + right))]
        eaten = self.me in self.berries
        if eaten:
            self.berries.remove(self.me)
        done = not self.berries
        terms = {"berry": 0.5 * eaten, "thorn": -0.3 * (self.me == self.thorn), "step": -0.02}
        return terms, done, done, self.me[0] == 0

    def view(self) -> list[float]:
        parts = [part / 2 - 1 for part in self.me]
        near = sorted(self.berries, key=lambda berry: abs(berry[0] - self.me[0]) + abs(berry[1] - self.me[1]))
        for berry in (*near, None, None)[:2]:
            if berry is None:
                parts += [0.0, 0.0]
            else:
                parts += [(berry[0] - self.me[0]) / 4, (berry[1] - self.me[1]) / 4]
        return [*parts, (self.thorn[0] - self.me[0]) / 4, (self.thorn[1] - self.me[1]) / 4]


class Parking(World):
    """A car drives into a spot: position, heading, low speed."""

    sizes = (5, 2)
    limit = 40

    def begin(self, rng: np.random.Generator) -> None:
        self.x, self.y = float(rng.uniform(-1.5, -0.8)), float(rng.uniform(-0.6, 0.6))
        self.h = float(rng.uniform(-0.5, 0.5))
        self.speed = 0.0

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        gas, wheel = (_clip(float(part)) for part in action)
        self.speed = _clip(self.speed + 0.03 * gas, 0.12)
        self.h += 2.0 * self.speed * wheel
        self.x += self.speed * math.cos(self.h)
        self.y += self.speed * math.sin(self.h)
        gap = math.hypot(self.x, self.y)
        parked = gap < 0.25 and abs(self.speed) < 0.08
        is_lost = gap > 3.0
        terms = {"distance": -0.05 * gap, "wheel": -0.005 * wheel * wheel, "park": 3.0 * parked, "lost": -1.0 * is_lost}
        return terms, parked, parked or is_lost, 0.25 <= gap < 0.7

    def view(self) -> list[float]:
        return [self.x, self.y, math.cos(self.h), math.sin(self.h), self.speed * 8]


class Pole(World):
    """Keep a pole upright and the cart near the middle; an angle cost, an effort cost, falling ends it."""

    sizes = (4, 1)
    limit = 60

    def begin(self, rng: np.random.Generator) -> None:
        self.angle, self.spin, self.x, self.u = (float(part) for part in rng.uniform(-0.1, 0.1, 4))

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        force = _clip(float(np.ravel(action)[0]))
        self.spin += 0.08 * math.sin(self.angle) - 0.06 * force * math.cos(self.angle)
        self.angle += self.spin
        self.u += 0.03 * force
        self.x += self.u
        has_fallen = abs(self.angle) > 0.6 or abs(self.x) > 2.0
        terms = {
            "alive": 0.1,
            "angle": -0.2 * abs(self.angle),
            "effort": -0.01 * force * force,
            "fall": -2.0 * has_fallen,
        }
        return terms, self.steps >= self.limit and not has_fallen, has_fallen, abs(self.angle) > 0.3

    def view(self) -> list[float]:
        return [3 * self.angle, 10 * self.spin, self.x, 10 * self.u]
