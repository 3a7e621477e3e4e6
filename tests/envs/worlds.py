"""Environments with something special about their state, and the way a state takes through a checkpoint."""

from __future__ import annotations

import enum
import itertools
import random
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import orjson
from gymnasium import spaces

from rlx.envs.snapshot import State
from rlx.runs.checkpoints.state_tree import pack, unpack


def through_json(state: State) -> State:
    """Take a state through JSON text and a table of arrays, as a checkpoint does."""
    document, arrays = pack(state)
    copied: State = unpack(orjson.loads(orjson.dumps(document)), {name: array.copy() for name, array in arrays.items()})
    return copied


class Walk(gymnasium.Env[Any, Any]):
    """A point that moves by its action and by chance; ends after 20 steps. The others build on it."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = spaces.Discrete(3)
        self.position = np.zeros(2)
        self.elapsed = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.position = self.np_random.normal(size=2)
        self.elapsed = 0
        return self.position.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.elapsed += 1
        self.position = self.position + 0.1 * (int(action) - 1) + 0.01 * self.chance()
        return self.position.copy(), float(self.position[0]), self.elapsed >= 20, False, {"elapsed": self.elapsed}

    def chance(self) -> float:
        return float(self.np_random.normal())


class Mood(enum.Enum):
    CALM = 1
    WILD = 2


class Pair(NamedTuple):
    left: float
    right: list[float]


@dataclass
class Ball:
    speed: float
    trail: deque[float] = field(default_factory=lambda: deque(maxlen=3))


class Slotted:
    __slots__ = ("count", "parent")

    def __init__(self, parent: object) -> None:
        self.count = 0
        self.parent = parent


class Basket(list):  # type: ignore[type-arg]
    label = "basket"


class Nested(Walk):
    """Holds objects of every plain kind, some made only in `reset`, in numbers that change."""

    def __init__(self) -> None:
        super().__init__()
        self.mood: Mood | None = None
        self.private = random.Random(3)
        self.legacy = np.random.RandomState(4)
        self.slotted = Slotted(self)
        self.counts: defaultdict[Any, int] = defaultdict(int)
        self.ordered: OrderedDict[Any, Any] = OrderedDict()
        self.basket = Basket()
        self.pair = Pair(0.0, [])
        self.action = self.calm

    def calm(self) -> float:
        return 0.5

    def wild(self) -> float:
        return 2.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        result = super().reset(seed=seed)
        self.balls = [Ball(1.0)]
        self.alias = self.balls[0]
        self.mood = Mood.CALM
        self.visited = {(0, 0)}
        self.child = self.np_random.spawn(1)[0]
        return result

    def chance(self) -> float:
        if self.elapsed % 3 == 0:
            self.balls.append(Ball(self.private.random()))
            self.mood = Mood.WILD if self.mood is Mood.CALM else Mood.CALM
            self.action = self.wild if self.mood is Mood.WILD else self.calm
        self.alias.speed += 0.25 * self.child.random()
        self.slotted.count += 1
        self.counts[(self.elapsed % 4, "x")] += 1
        self.ordered[self.elapsed] = np.float32(self.alias.speed)
        self.basket.append(self.legacy.rand())
        self.pair = Pair(self.balls[0].speed, [*self.pair.right, 1.0][-3:])
        self.visited.add((self.elapsed, len(self.balls)))
        for ball in self.balls:
            ball.trail.append(ball.speed)
        total = sum(sum(ball.trail) for ball in self.balls) + sum(self.counts.values()) + len(self.visited)
        return total * self.action() + self.pair.left + self.basket[-1] + float(sum(self.ordered.values()))


class Viewing(Walk):
    """Keeps a view of its own state, so that writing one changes the other."""

    def __init__(self) -> None:
        super().__init__()
        self.grid = np.zeros((2, 3), order="F")
        self.row = self.grid[1]

    def chance(self) -> float:
        self.grid += 0.5
        self.row[0] += 1.0
        return float(self.grid.sum())


class Generating(Walk):
    """Draws from a generator function."""

    def __init__(self) -> None:
        super().__init__()
        self.noise: Iterator[float] = (float(index % 5) for index in itertools.count())

    def chance(self) -> float:
        return next(self.noise)


class Closing(Walk):
    """Counts in a closure."""

    def __init__(self) -> None:
        super().__init__()
        count = 0

        def counted() -> float:
            nonlocal count
            count += 1
            return float(count % 7)

        self.counted = counted

    def chance(self) -> float:
        return self.counted()


STEPS_EVER = [0]


class Global(Walk):
    """Counts in a module variable."""

    def chance(self) -> float:
        STEPS_EVER[0] += 1
        return float(STEPS_EVER[0] % 11)


class ClassWide(Walk):
    """Counts in a class attribute, which shows only much later."""

    total = 0

    def chance(self) -> float:
        type(self).total += 1
        return 0.0 if type(self).total < 1_000_000 else 1.0


class Iterating(Walk):
    """Holds an iterator of compiled code."""

    def __init__(self) -> None:
        super().__init__()
        self.ticks = itertools.count()

    def chance(self) -> float:
        return float(next(self.ticks) % 5)


class Filing(Walk):
    """Holds an open file."""

    def __init__(self) -> None:
        super().__init__()
        self.log = open("/dev/null")  # noqa: SIM115

    def close(self) -> None:
        self.log.close()


class Careless(Walk):
    """Uses the global random generators, which the trainer keeps."""

    def chance(self) -> float:
        return random.random() + float(np.random.rand())


class Clocked(Walk):
    """Tells the time in its infos."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        import time

        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, {**info, "at": time.perf_counter()}


class Restless(Walk):
    """Never does the same twice."""

    def chance(self) -> float:
        return random.SystemRandom().random()


class Faulty(Walk):
    """Raises in the middle."""

    def chance(self) -> float:
        if self.elapsed == 10:
            raise ZeroDivisionError("no such\nmove")
        return 0.0
