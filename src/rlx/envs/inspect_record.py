"""What an inspected environment showed: a frozen record that is judged without the environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ending = Literal["terminated", "truncated", "both", "cut"]
"""How an episode ended; `cut` is where the inspection stopped it."""


@dataclass(frozen=True)
class Oddity:
    """Something that must not be, where it was seen first, and in how many of how many chances."""

    kind: str
    where: str
    shown: str
    seed: int
    step: int
    policy: str
    count: int
    of: int


@dataclass(frozen=True)
class Column:
    """One number of an observation or action; a label has `labels` values without an order, a number has none."""

    name: str
    labels: int = 0


@dataclass(frozen=True, eq=False)
class Episode:
    """One episode of one policy; `age` is how many steps its instance had behind it."""

    policy: str
    seed: int
    observations: Floats
    actions: Floats
    rewards: Floats
    ending: Ending
    age: int

    def __len__(self) -> int:
        return len(self.rewards)


@dataclass(frozen=True)
class Difference:
    """The first step in which two episodes that should be one differ."""

    step: int
    what: str
    one: str
    other: str
    is_permutation: bool = False
    is_rounding: bool = False


AGAIN, GLOBALS, LATER, TOUCHED, BESIDE, VECTOR, WORLDS = (
    "again in a new instance", "under other global random generators", "again after other episodes",
    "with every observation overwritten by its receiver", "beside a second instance", "in a vector of two",
    "with another action in a neighbouring world",
)  # fmt: skip
"""The conditions under which an episode is played a second time."""


@dataclass(frozen=True)
class Twin:
    """Two episodes with the same seed and actions, one of them played under another condition."""

    how: str
    seed: int
    steps: int
    difference: Difference | None


@dataclass(frozen=True)
class Knob:
    """One choice an action makes, and what its values did in the same states.

    `alike` are pairs of values that were never told apart, with the number of states in which both were tried;
    `still` counts, for every value, the states that it left as they were.
    """

    name: str
    values: tuple[float, ...]
    is_continuous: bool
    states: int
    alike: tuple[tuple[float, float, int], ...]
    still: tuple[int, ...]
    raised: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class ClockTrial:
    """One transition played again with only a counter of the environment moved on."""

    clock: str
    seed: int
    step: int
    moved_by: float
    reward: float
    reward_moved: float
    is_same_outcome: bool


@dataclass(frozen=True)
class Seeds:
    """How many of so many seeds started and went on differently.

    `arrived` is the seed that the environment's own generator got where it was not the one given; `inner_starts` are
    the different starts of the environment inside its wrappers.
    """

    tried: int
    starts: int
    courses: int
    arrived: int | None
    inner_starts: int | None


@dataclass(frozen=True)
class Bounds:
    """The bounds of the numbers in an action."""

    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Cost:
    """What the environment costs, in seconds, and what the inspection took."""

    make: float
    reset: float
    step: float
    steps: int
    total: float


@dataclass(frozen=True)
class Inspection:
    """Everything that was seen, and what could not be tried."""

    observation: str
    action: str
    horizon: int | None
    threshold: float | None
    is_image: bool
    columns: tuple[Column, ...]
    action_columns: tuple[Column, ...]
    bounds: Bounds | None
    oddities: tuple[Oddity, ...]
    warnings: tuple[str, ...]
    printed: tuple[str, ...]
    twins: tuple[Twin, ...]
    seeds: Seeds | None
    knobs: tuple[Knob, ...]
    clocks: tuple[ClockTrial, ...]
    episodes: tuple[Episode, ...]
    cost: Cost
    checked: tuple[str, ...]
    unchecked: tuple[tuple[str, str], ...]
    """What was not tried, or only in part, and why."""

    def played(self, policy: str) -> list[Episode]:
        """Return the episodes of a kind of policy."""
        return [episode for episode in self.episodes if episode.policy.startswith(policy)]


def brief(value: Any, *, width: int = 60) -> str:
    """Spell a value in one short line."""
    text = np.array2string(value, precision=5, threshold=12) if isinstance(value, np.ndarray) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 1]}…"
