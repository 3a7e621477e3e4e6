"""Ten worlds with reward terms, costs and a success flag. Each is a family of its own.

Every world takes the same faults as arguments. `deaf` ignores actions, `blind` shows constants, and `noisy` adds large
noise to observations. `nan` gives NaN in rare states, and `sign` pays the negative reward. `bribe` adds a bonus that
ends when the task is done, so that finishing does not pay.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

BRIBE = 0.6


class World(gymnasium.Env[Any, Any]):
    """The shared frame: a subclass has `begin`, `move` and `view`."""

    sizes = (4, 2)  # of observation and action; a negative action size is a number of choices
    limit = 60

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        seen, acts = self.sizes
        self.observation_space = spaces.Box(-np.inf, np.inf, (seen,), np.float32)
        self.action_space: spaces.Space[Any] = spaces.Discrete(max(1, -acts))
        if acts > 0:
            self.action_space = spaces.Box(-1.0, 1.0, (acts,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        self.begin(self.np_random)
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if self.fault == "deaf":
            action = int(self.np_random.integers(-self.sizes[1])) if self.sizes[1] < 0 else np.zeros(self.sizes[1])
        terms, is_success, is_over, is_near = self.move(action)
        if self.fault == "bribe":
            terms["bonus"] = BRIBE * is_near
        if self.fault == "sign":
            terms = {name: -paid for name, paid in terms.items()}
        late = self.steps >= self.limit and not is_over
        info = {"reward_terms": terms, "is_success": bool(is_success)}
        return self._observation(), float(sum(terms.values())), bool(is_over), late, info

    def _observation(self) -> Any:
        seen = np.array(self.view(), dtype=np.float32)
        if self.fault == "blind":
            seen[:] = 1.0
        if self.fault == "noisy":
            seen += self.np_random.normal(0, 3.0, seen.shape).astype(np.float32)
        if self.fault == "nan" and self.np_random.random() < 1e-4:
            seen[0] = np.nan
        return seen

    def begin(self, rng: np.random.Generator) -> None:
        raise NotImplementedError

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        """Return the reward terms, success, whether the episode is over, and whether a bribe would be paid here."""
        raise NotImplementedError

    def view(self) -> list[float]:
        raise NotImplementedError


class Docking(World):
    """A point mass between two obstacles: a distance cost, an effort cost, a bonus for docking slowly."""

    sizes = (6, 2)

    def begin(self, rng: np.random.Generator) -> None:
        self.x, self.y = rng.uniform(-1, 1, 2)
        self.u = self.v = 0.0
        self.gx, self.gy = rng.uniform(-0.5, 0.5, 2)

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        ax, ay = (min(1.0, max(-1.0, float(a))) for a in action)
        self.u = 0.9 * self.u + 0.05 * ax
        self.v = 0.9 * self.v + 0.05 * ay
        self.x += self.u
        self.y += self.v
        gap = math.hypot(self.x - self.gx, self.y - self.gy)
        hit = min(math.hypot(self.x - 0.8, self.y), math.hypot(self.x + 0.8, self.y)) < 0.15
        docked = gap < 0.15 and math.hypot(self.u, self.v) < 0.1
        terms = {
            "distance": -0.1 * gap,
            "effort": -0.01 * (ax * ax + ay * ay),
            "crash": -0.5 * hit,
            "dock": 5.0 * docked,
        }
        return terms, docked, docked, 0.15 <= gap < 0.5

    def view(self) -> list[float]:
        return [self.x - self.gx, self.y - self.gy, 5 * self.u, 5 * self.v, self.x, self.y]


class Reaching(World):
    """A planar arm with two joints reaches for a point."""

    sizes = (6, 2)
    limit = 40

    def begin(self, rng: np.random.Generator) -> None:
        self.a, self.b = rng.uniform(-1.5, 1.5, 2)
        radius, angle = rng.uniform(0.6, 1.6), rng.uniform(-math.pi, math.pi)
        self.gx, self.gy = radius * math.cos(angle), radius * math.sin(angle)

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        da, db = (min(1.0, max(-1.0, float(a))) for a in action)
        self.a += 0.25 * da
        self.b += 0.25 * db
        gap = self._gap()
        done = gap < 0.2
        terms = {"distance": -0.1 * gap, "effort": -0.005 * (da * da + db * db), "reach": 3.0 * done}
        return terms, done, done, 0.2 <= gap < 0.6

    def _hand(self) -> tuple[float, float]:
        return math.cos(self.a) + math.cos(self.a + self.b), math.sin(self.a) + math.sin(self.a + self.b)

    def _gap(self) -> float:
        x, y = self._hand()
        return math.hypot(x - self.gx, y - self.gy)

    def view(self) -> list[float]:
        x, y = self._hand()
        return [math.cos(self.a), math.sin(self.a), math.cos(self.b), math.sin(self.b), self.gx - x, self.gy - y]


class Navigation(World):
    """A car that always rolls steers around a pillar to a goal ahead."""

    sizes = (5, 1)
    limit = 50

    def begin(self, rng: np.random.Generator) -> None:
        self.x, self.y, self.h = -1.0, float(rng.uniform(-0.5, 0.5)), float(rng.uniform(-1, 1))
        self.gy = float(rng.uniform(-0.6, 0.6))

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        turn = min(1.0, max(-1.0, float(np.ravel(action)[0])))
        before = self._gap()
        self.h += 0.3 * turn
        self.x += 0.07 * math.cos(self.h)
        self.y += 0.07 * math.sin(self.h)
        gap = self._gap()
        crashed = math.hypot(self.x, self.y) < 0.25
        done = gap < 0.2
        terms = {"progress": before - gap, "turn": -0.01 * turn * turn, "crash": -1.0 * crashed, "goal": 3.0 * done}
        return terms, done, done or crashed, 0.2 <= gap < 0.6

    def _gap(self) -> float:
        return math.hypot(self.x - 1.0, self.y - self.gy)

    def view(self) -> list[float]:
        return [self.x, self.y, math.cos(self.h), math.sin(self.h), self.gy]


class SparseLine(World):
    """A line with a goal at one end, which is shown; only the goal pays."""

    sizes = (3, -3)
    limit = 24

    def begin(self, rng: np.random.Generator) -> None:
        self.place = 0
        self.side = int(rng.choice([-1, 1]))

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        self.place += int(action) - 1
        done = self.place == 4 * self.side
        lost = self.place == -4 * self.side
        return {"goal": 1.0 * done, "time": -0.01}, done, done or lost, abs(self.place) == 1

    def view(self) -> list[float]:
        return [self.place / 4, float(self.side), self.steps / self.limit]


class KeyDoor(World):
    """A small grid: fetch the key, then leave by the door."""

    sizes = (7, -4)
    limit = 40
    size = 5

    def begin(self, rng: np.random.Generator) -> None:
        cells = rng.choice(self.size**2, size=3, replace=False)
        self.me, self.key, self.door = (list(divmod(int(cell), self.size)) for cell in cells)
        self.has_key = False

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        axis, way = divmod(int(action), 2)
        self.me[axis] = min(self.size - 1, max(0, self.me[axis] + 2 * way - 1))
        found = not self.has_key and self.me == self.key
        self.has_key = self.has_key or found
        done = self.has_key and self.me == self.door
        terms = {"key": 0.5 * found, "door": 1.0 * done, "step": -0.01}
        return terms, done, done, self.me[0] == 0

    def view(self) -> list[float]:
        scale = self.size - 1
        goal = self.door if self.has_key else self.key
        return [self.me[0] / scale, self.me[1] / scale, (goal[0] - self.me[0]) / scale, (goal[1] - self.me[1]) / scale,
                float(self.has_key), self.door[0] / scale, self.door[1] / scale]  # fmt: skip


class Runner(World):
    """Locomotion-like: push in the rhythm of a phase to run fast, without falling."""

    sizes = (4, 2)
    limit = 60

    def begin(self, rng: np.random.Generator) -> None:
        self.phase = float(rng.uniform(0, 2 * math.pi))
        self.speed = 0.0
        self.lean = float(rng.uniform(-0.1, 0.1))
        self.way = 0.0

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        push, tilt = (min(1.0, max(-1.0, float(a))) for a in action)
        self.speed = 0.9 * self.speed + 0.1 * push * math.sin(self.phase)
        self.lean += 0.1 * self.lean + 0.1 * tilt + 0.02 * self.speed
        self.phase += 0.5
        self.way += self.speed
        fell = abs(self.lean) > 0.8
        done = self.way > 6.0
        terms = {"speed": self.speed, "alive": 0.05, "energy": -0.01 * (push * push + tilt * tilt), "fall": -2.0 * fell}
        return terms, done, done or fell, self.speed < 0.05

    def view(self) -> list[float]:
        return [math.sin(self.phase), math.cos(self.phase), self.speed, self.lean]


class Tracking(World):
    """Follow a target that swings; success is to be near it in the second half."""

    sizes = (4, 1)
    limit = 50

    def begin(self, rng: np.random.Generator) -> None:
        self.phase = float(rng.uniform(0, 2 * math.pi))
        self.x = float(rng.uniform(-1, 1))
        self.v = 0.0
        self.near = 0

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        push = min(1.0, max(-1.0, float(np.ravel(action)[0])))
        self.v = 0.8 * self.v + 0.1 * push
        self.x += self.v
        self.phase += 0.15
        gap = abs(self.x - math.sin(self.phase))
        self.near += gap < 0.2 and self.steps > self.limit // 2
        is_last = self.steps >= self.limit
        return {"gap": -0.1 * gap, "effort": -0.01 * push * push}, is_last and self.near >= 18, is_last, 0.3 < gap < 0.9

    def view(self) -> list[float]:
        return [self.x, self.v * 5, math.sin(self.phase), math.cos(self.phase)]


class Landing(World):
    """Come down softly: fuel costs, touching down fast fails."""

    sizes = (3, -2)
    limit = 50

    def begin(self, rng: np.random.Generator) -> None:
        self.h = float(rng.uniform(0.8, 1.4))
        self.v = float(rng.uniform(-0.05, 0.0))

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        self.v += -0.008 + 0.016 * int(action)
        before = self.h
        self.h += self.v
        down = self.h <= 0
        soft = down and self.v > -0.05
        gone = self.h > 2.0
        terms = {
            "descent": 0.5 * (before - self.h),
            "fuel": -0.01 * int(action),
            "landing": 2.0 * soft - 1.0 * (down and not soft),
        }
        return terms, soft, down or gone, self.h > 0.3

    def view(self) -> list[float]:
        return [self.h, self.v * 10, self.steps / self.limit]


class Sorting(World):
    """Put the shown number on the right one of four piles, four times."""

    sizes = (5, -4)
    limit = 8

    def begin(self, rng: np.random.Generator) -> None:
        self.right = 0
        self._draw(rng)

    def _draw(self, rng: np.random.Generator) -> None:
        self.pile = int(rng.integers(4))

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        is_right = int(action) == self.pile
        self.right += is_right
        self._draw(self.np_random)
        is_last = self.steps >= self.limit
        return (
            {"right": 0.2 * is_right, "wrong": -0.1 * (not is_right)},
            is_last and self.right >= 7,
            is_last,
            int(action) == 0,
        )

    def view(self) -> list[float]:
        shown = [0.0] * 4
        shown[self.pile] = 1.0
        return [*shown, self.steps / self.limit]


class Tank(World):
    """Hold a water level by a valve; a cost on the error and on moving the valve."""

    sizes = (3, 1)
    limit = 50

    def begin(self, rng: np.random.Generator) -> None:
        self.level = float(rng.uniform(0, 2))
        self.goal = float(rng.uniform(0.5, 1.5))
        self.valve = 0.0
        self.held = 0

    def move(self, action: Any) -> tuple[dict[str, float], bool, bool, bool]:
        turn = min(1.0, max(-1.0, float(np.ravel(action)[0])))
        self.valve = min(1.0, max(-1.0, self.valve + 0.3 * turn))
        self.level += 0.1 * self.valve
        error = abs(self.level - self.goal)
        self.held = self.held + 1 if error < 0.1 else 0
        done = self.held >= 8
        terms = {"error": -0.1 * min(error, 3.0), "valve": -0.01 * turn * turn, "held": 1.0 * done}
        return terms, done, done, 0.2 < error < 0.6

    def view(self) -> list[float]:
        return [self.level - self.goal, self.valve, self.held / 8]
