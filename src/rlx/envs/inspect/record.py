"""The record of an inspection, from which diagnosis draws its findings without the environment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlx.envs.make import EnvFacts
from rlx.envs.spaces import is_image

Floats = NDArray[np.float64]
Ending = Literal["terminated", "truncated", "both", "cut"]
"""How an episode ended; `cut` means that the inspection stopped it."""


@dataclass(frozen=True)
class Oddity:
    """Something that must not happen: its first occurrence, and in how many of how many calls it happened."""

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
    """One number of an observation or action; `labels` is the number of values of a label, or 0 for a number."""

    name: str
    labels: int = 0


@dataclass(frozen=True, eq=False)
class Episode:
    """One episode of one policy; `age` is how many steps its instance had taken before."""

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
    """The first step in which two episodes that should be equal differ."""

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
    """One component of an action, and the effects of its values in the same states.

    `alike` are pairs of values whose effects never differed, with the number of states in which both were tried.
    `still` counts, for every value, the states that it left unchanged.
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
    """One transition played again with only a counter of the environment advanced."""

    clock: str
    seed: int
    step: int
    moved_by: float
    reward: float
    reward_moved: float
    is_same_outcome: bool


@dataclass(frozen=True)
class Seeds:
    """How many of the tried seeds started and continued differently.

    `arrived` is the seed of the environment's own generator if it is not the one passed to `reset`. `inner_starts` is
    the number of different starts of the environment inside its wrappers.
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
    """The seconds that the environment's calls take, the steps played, and the seconds of the inspection."""

    make: float = 0.0
    reset: float = 0.0
    step: float = 0.0
    steps: int = 0
    total: float = 0.0


@dataclass
class Inspection:
    """Everything that an inspection saw, and the parts that it could not try. It is filled part by part."""

    facts: EnvFacts
    columns: tuple[Column, ...]
    action_columns: tuple[Column, ...]
    bounds: Bounds | None
    oddities: tuple[Oddity, ...] = ()
    warnings: list[str] = field(default_factory=list)
    printed: tuple[str, ...] = ()
    twins: list[Twin] = field(default_factory=list)
    seeds: Seeds | None = None
    knobs: list[Knob] = field(default_factory=list)
    clocks: list[ClockTrial] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)
    checked: list[str] = field(default_factory=list)
    unchecked: list[tuple[str, str]] = field(default_factory=list)
    """Parts that were not tried, or not completely, and why."""

    @property
    def observation(self) -> str:
        return str(self.facts.observation_space)

    @property
    def action(self) -> str:
        return str(self.facts.action_space)

    @property
    def horizon(self) -> int | None:
        return self.facts.horizon

    @property
    def threshold(self) -> float | None:
        return self.facts.reward_threshold

    @property
    def is_image(self) -> bool:
        return is_image(self.facts.observation_space)

    @property
    def is_stackable(self) -> bool:
        """Whether a vector of environments gives its observations as arrays, and not as tuples."""
        return not isinstance(self.facts.observation_space, (spaces.Text, spaces.Sequence, spaces.Graph, spaces.OneOf))

    @property
    def policy_type(self) -> str:
        """The type of policy that reads these observations: mlp, multi or cnn."""
        if isinstance(self.facts.observation_space, spaces.Dict):
            return "multi"
        return "cnn" if self.is_image else "mlp"

    def played(self, policy: str) -> list[Episode]:
        """Return the episodes of a kind of policy."""
        return [episode for episode in self.episodes if episode.policy.startswith(policy)]


def brief(value: Any, *, width: int = 60) -> str:
    """Return a value as one short line."""
    text = repr(value)
    if isinstance(value, np.ndarray):
        text = np.array2string(value, precision=5, threshold=12)
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 1]}…"
