"""One side of a comparison as plain values: its trainings in the order they began, and what became of each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from rlx.compare.stats import Floats
from rlx.figures import deviation
from rlx.runs.status import COMPLETED, FAILED, RUNNING

Fate = Literal["scored", "crashed", "pending"]

INFRASTRUCTURE = frozenset({
    "OSError", "PermissionError", "FileNotFoundError", "BlockingIOError", "BrokenPipeError", "ConnectionError",
    "ConnectionResetError", "TimeoutError", "MemoryError", "OutOfMemoryError", "MissingExtra",
})  # fmt: skip
"""Errors of the machine, not of the learner: such a seed is resumed. It never drops out, so nothing is gained by it."""


@dataclass(frozen=True)
class Training:
    """One training seed as evidence. `score` is None without an evaluation under the protocol of the comparison.

    `started` orders the trainings; `weights` is the SHA-256 of the final policy; `codes` and `versions` have one entry
    an attempt; `error` and `reason` say how a failed one ended.
    """

    seed: int
    state: str
    score: float | None = None
    step: int = 0
    episodes: int = 0
    started: float = math.inf
    weights: str | None = None
    codes: tuple[str, ...] = ()
    versions: tuple[Mapping[str, str], ...] = ()
    error: str = ""
    reason: str = ""

    @property
    def fate(self) -> Fate:
        """Whether it counts with its score, as a failure, or not yet."""
        if self.state == FAILED:
            return "pending" if self.error in INFRASTRUCTURE else "crashed"
        if self.state != COMPLETED or self.score is None:
            return "pending"
        return "scored" if math.isfinite(self.score) else "crashed"

    def mend(self, run: str, *, evaluate: str) -> str:
        """Return the command that finishes a pending training."""
        if self.state == COMPLETED:
            return evaluate
        return f"rlx wait {run}" if self.state == RUNNING else f"rlx resume {run}"


@dataclass(frozen=True)
class Side:
    """One run's trainings under the protocol of the comparison; `metric` is what that goes by.

    `floor` is the random policy's score where it was measured; `phase` is what a study says its seeds are for;
    `evaluate` is the command that scores what has no score yet; a script's run has none, only its script goes on.
    """

    name: str
    trainings: tuple[Training, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    planned_steps: int = 0
    floor: float | None = None
    phase: str | None = None
    evaluate: str = ""
    is_script: bool = False
    metric: str = "return"

    @cached_property
    def ordered(self) -> tuple[Training, ...]:
        return tuple(sorted(self.trainings, key=lambda training: (training.started, training.seed)))

    def having(self, fate: Fate) -> list[Training]:
        """Return the trainings with this fate, in order."""
        return [training for training in self.ordered if training.fate == fate]

    @cached_property
    def ready(self) -> tuple[Training, ...]:
        """The trainings up to the first that is pending: a look takes the first seeds, so it waits for each of them."""
        first = next((index for index, one in enumerate(self.ordered) if one.fate == "pending"), len(self.ordered))
        return self.ordered[:first]

    def as_baseline(self) -> dict[int, float]:
        """Return the scores that count for a baseline: crashed seeds are left out and have to be replaced."""
        return {one.seed: float(one.score or 0.0) for one in self.ready if one.fate == "scored"}

    def as_candidate(self) -> dict[int, float]:
        """Return the scores that count for a candidate: a crashed seed is NaN and will score the worst seen."""
        return {one.seed: float(one.score or 0.0) if one.fate == "scored" else math.nan for one in self.ready}

    @cached_property
    def scores(self) -> Floats:
        """Every finite score, in order: (seeds,)."""
        return np.array([one.score for one in self.having("scored")], dtype=np.float64)

    @property
    def steps(self) -> list[int]:
        return sorted({one.step for one in self.having("scored")})

    @property
    def codes(self) -> list[str]:
        return list(dict.fromkeys(code for one in self.ordered for code in one.codes))

    @property
    def versions(self) -> list[Mapping[str, str]]:
        found: list[Mapping[str, str]] = []
        for versions in (versions for one in self.ordered for versions in one.versions):
            if versions not in found:
                found.append(versions)
        return found

    def document(self) -> dict[str, Any]:
        """Return the side as JSON-able data."""
        scores = self.scores
        figures = {
            "mean": float(scores.mean()), "sd": deviation(scores) if scores.size > 1 else None,
            "median": float(np.median(scores)), "min": float(scores.min()), "max": float(scores.max()),
        } if scores.size else dict.fromkeys(("mean", "sd", "median", "min", "max"))  # fmt: skip
        return {
            "run": self.name,
            "metric": self.metric,
            "n": scores.size,
            **figures,
            "steps": self.steps,
            "seeds": {
                str(seed): score for seed, score in sorted((one.seed, one.score) for one in self.having("scored"))
            },
            "crashed": [one.seed for one in self.having("crashed")],
            "pending": {str(one.seed): one.state for one in self.having("pending")},
        }
