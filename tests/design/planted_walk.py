"""A sound walk on a line to a goal, and the same walk with one planted design defect."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

LIMIT = 60


class Walk(gymnasium.Env[Any, Any]):
    """Walk to the goal at the right end. The observation is the place and the speed."""

    def __init__(self, defect: str = "") -> None:
        self.defect = defect
        self.observation_space = spaces.Box(-10.0, 10.0, (2 + (defect in ("leak", "dead input", "extra")),), np.float32)
        self.action_space: Any = spaces.Discrete(3)
        if defect == "continuous":
            self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        if defect == "wide action":
            self.action_space = spaces.Box(-500.0, 500.0, (1,), np.float32)
        if defect == "huge observation":
            self.observation_space = spaces.Box(-1e8, 1e8, (2,), np.float32)
        self.limit = 4000 if defect == "long" else LIMIT
        self.seen = np.zeros(2, np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if self.defect == "seed":
            seed = int(np.random.default_rng().integers(2**31))
        super().reset(seed=seed)
        self.place = float(self.np_random.uniform(-2, 0))
        self.speed = 0.0
        self.steps = 0
        self.paid = 0.0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        push = float(np.asarray(action).reshape(-1)[0])
        if self.defect == "wide action":
            push /= 500.0
        elif self.defect != "continuous":
            push -= 1.0
        if self.defect == "dead action":
            push = 1.0 if push > 0 else -1.0
        before = self.place
        self.speed = 0.8 * self.speed + 0.1 * push
        self.place = float(np.clip(self.place + self.speed, -3, 3))
        self.steps += 1
        is_there = self.place > 1
        has_failed = self.place <= -2.9
        terms = self._terms(before, is_there)
        self.paid = float(sum(terms.values()))
        terminated = is_there or has_failed
        truncated = not terminated and self.steps >= self.limit
        if self.defect == "truncates failure" and terminated:
            terminated, truncated = False, True
        if self.defect == "terminates at limit":
            terminated, truncated = terminated or truncated, False
        if self.defect == "endless":
            self.place = float(np.clip(self.place, -2.8, 0.9))
            terminated, truncated = False, False
        return self._observation(), self.paid, terminated, truncated, {"reward_terms": terms, "is_success": is_there}

    def _terms(self, before: float, is_there: bool) -> dict[str, float]:
        if self.defect == "sparse":
            return {"goal": 0.0, "time": 0.0}
        if self.defect == "alive":
            return {"alive": 0.5, "goal": 5.0 * is_there}
        terms = {"progress": 0.5 * (self.place - before), "time": -0.01, "goal": 1.0 * is_there}
        if self.defect == "dominance":
            terms["noise"] = 5.0
        if self.defect == "huge reward":
            terms = {name: 1e5 * value for name, value in terms.items()}
        if self.defect == "nan" and self.steps == 5:
            terms["progress"] = float("nan")
        return terms

    def _observation(self) -> Any:
        numbers = [self.place, self.speed]
        if self.defect == "leak":
            numbers.append(self.paid)
        if self.defect == "dead input":
            numbers.append(0.5)
        if self.defect == "extra":
            numbers.append(self.place**2)
        if self.defect == "huge observation":
            numbers = [1e6 * number for number in numbers]
        if self.defect == "outside":
            numbers[0] += 12.0
        if self.defect == "aliased":
            self.seen[:] = numbers
            return self.seen
        return np.array(numbers, np.float32)
