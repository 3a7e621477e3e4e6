"""One arm of a comparison: the training seeds of one run, in the order they started, and how each of them ended."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from rlx import files
from rlx.compare.code_version import CodeVersions
from rlx.compare.question import Evidence
from rlx.compare.stats import Floats, describe
from rlx.compare.stored_scores import StoredScore
from rlx.config.diff import diff
from rlx.evaluate.protocol import REPORT_EPISODES
from rlx.runs.checkpoints import checkpoint
from rlx.runs.run import Run, Seed
from rlx.runs.status import COMPLETED, FAILED, PREPARED, RUNNING

Fate = Literal["scored", "crashed", "pending"]

INFRASTRUCTURE = frozenset({
    "OSError", "PermissionError", "FileNotFoundError", "BlockingIOError", "BrokenPipeError", "ConnectionError",
    "ConnectionResetError", "TimeoutError", "MemoryError", "OutOfMemoryError", "MissingExtra",
    "WriteFailed",
})  # fmt: skip
"""Errors of the machine, not of the learner. Such a seed is resumed and never dropped, so it cannot help a run."""


@dataclass(frozen=True)
class Training:
    """One training seed as evidence. `score` is None if it has no evaluation under the protocol of the comparison.

    `started` orders the trainings, and `weights` is the SHA-256 of the final policy. `codes` and `versions` have one
    entry per attempt. `error` and `reason` describe how a failed training ended.
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
        """Whether the seed counts with its score, counts as a failure, or does not count yet."""
        if self.state == FAILED and self.error not in INFRASTRUCTURE:
            return "crashed"
        if self.state != COMPLETED or self.score is None:
            return "pending"
        if math.isfinite(self.score):
            return "scored"
        return "crashed"

    def finish_command(self, run: str, *, evaluate: str) -> str:
        """Return the command that finishes a pending training."""
        if self.state == COMPLETED:
            return evaluate
        if self.state == RUNNING:
            return f"rlx wait {run}"
        return f"rlx resume {run}"


@dataclass(frozen=True)
class Arm:
    """The trainings of one run under the protocol of the comparison.

    `floor` is the random policy's score, if it was measured. `phase` is the study phase that the seeds belong to.
    `evaluate` is the command that scores unscored seeds; it is empty for a script, because only the script can do that.
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
    evidence: Evidence = "measured"

    @cached_property
    def ordered(self) -> tuple[Training, ...]:
        return tuple(sorted(self.trainings, key=lambda training: (training.started, training.seed)))

    def having(self, fate: Fate) -> list[Training]:
        """Return the trainings with this fate, in order."""
        return [training for training in self.ordered if training.fate == fate]

    def as_candidate(self) -> dict[int, float]:
        """Return the scores that count for a candidate, in which a crashed seed is NaN.

        A look takes the first seeds, so the scores end before the first pending seed.
        """
        scores: dict[int, float] = {}
        for training in self.ordered:
            if training.fate == "pending":
                break
            scores[training.seed] = math.nan
            if training.fate == "scored":
                scores[training.seed] = float(training.score or 0.0)
        return scores

    def as_baseline(self) -> dict[int, float]:
        """Return the scores that count for a baseline. Crashed seeds are left out and must be replaced."""
        return {seed: score for seed, score in self.as_candidate().items() if math.isfinite(score)}

    @cached_property
    def scores(self) -> Floats:
        """Every finite score, in order: (seeds,)."""
        return np.array([training.score for training in self.having("scored")], dtype=np.float64)

    @property
    def steps(self) -> list[int]:
        return sorted({training.step for training in self.having("scored")})

    @property
    def codes(self) -> list[str]:
        return list(dict.fromkeys(code for training in self.ordered for code in training.codes))

    @property
    def versions(self) -> list[Mapping[str, str]]:
        distinct: list[Mapping[str, str]] = []
        for training in self.ordered:
            for versions in training.versions:
                if versions not in distinct:
                    distinct.append(versions)
        return distinct

    def document(self) -> dict[str, Any]:
        """Return the arm as JSON-able data."""
        scored = {training.seed: training.score for training in self.having("scored")}
        median = None
        if self.scores.size:
            median = float(np.median(self.scores))
        return {
            "run": self.name,
            "metric": self.metric,
            "evidence": self.evidence,
            **describe(self.scores),
            "median": median,
            "steps": self.steps,
            "seeds": {str(seed): scored[seed] for seed in sorted(scored)},
            "crashed": [training.seed for training in self.having("crashed")],
            "pending": {str(training.seed): training.state for training in self.having("pending")},
        }  # fmt: skip


def arm_of(run: Run, scores: Mapping[int, StoredScore], *, like: Run, codes: CodeVersions) -> Arm:
    """Read a run's trainings as values. `like` is the run whose protocol the scores were made under."""
    first = next(iter(scores.values()), None)
    randoms = [score.random for score in scores.values() if score.random is not None]
    lineage = run.metadata.get("lineage") or {}
    is_reported = first is not None and first.evidence == "reported"
    evaluate = ""
    if not run.is_opaque and not is_reported:
        evaluate = evaluate_command(run, first.protocol if first else {}, like=like)
    return Arm(
        name=run.name,
        trainings=tuple(_training(run, seed, scores.get(seed.number), codes) for seed in run.seeds),
        config=run.config,
        planned_steps=run.planned_steps,
        floor=min(randoms, default=None),
        phase=run.metadata.get("phase") or lineage.get("phase"),
        evaluate=evaluate,
        is_script=run.is_script,
        metric=first.metric if first else "return",
        evidence=first.evidence if first else "measured",
    )


def _training(run: Run, seed: Seed, score: StoredScore | None, codes: CodeVersions) -> Training:
    attempts = seed.attempts
    training = Training(
        seed=seed.number,
        # A supervisor starts prepared seeds by itself, so they count as running.
        state=RUNNING if seed.status.state == PREPARED and run.is_supervised else seed.status.state,
        started=float(attempts[0]["time"]) if attempts else math.inf,
        weights=_weights(seed),
        codes=tuple(codes.name(attempt) for attempt in attempts),
        versions=tuple(attempt.get("versions") or {} for attempt in attempts),
        error=str(seed.events[-1].get("kind", "")) if seed.events else "",
        reason=seed.status.reason,
    )
    if score is None:
        return training
    return replace(training, score=score.score, step=score.step, episodes=score.episodes)


def _weights(seed: Seed) -> str | None:
    """Return the SHA-256 of a seed's final policy, read from the manifest alone."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return str(_manifest(seed)["files"][checkpoint.POLICY]["sha256"])
    return None


def spaces_of(run: Run) -> Any:
    """Return the observation and action spaces that a run's policies were trained in; None if they are not known."""
    for seed in run.seeds:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return _manifest(seed)["spaces"]
    return None


def _manifest(seed: Seed) -> Any:
    return files.read_json(seed.checkpoints / "latest" / checkpoint.MANIFEST)


def evaluate_command(run: Run, protocol: Mapping[str, Any], *, like: Run) -> str:
    """Return the command that evaluates a run under this protocol."""
    command = f"rlx eval {run.name}"
    source = run
    if run is not like and diff(_evaluation_settings(run.config), _evaluation_settings(like.config)):
        command += f" --like {like.name}"
        source = like
    usual_episodes = (source.config.get("eval") or {}).get("report_episodes") or REPORT_EPISODES
    episodes = protocol.get("episodes", usual_episodes)
    if episodes == usual_episodes:
        return command
    return f"{command} --episodes {episodes}"


def _evaluation_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a config that defines the protocol of a report evaluation."""
    keys = {
        "env": ("id", "kwargs", "wrappers"),
        "eval": ("deterministic", "metric", "env", "scenarios", "report_episodes"),
    }
    return {name: {key: (config.get(name) or {}).get(key) for key in section} for name, section in keys.items()}
