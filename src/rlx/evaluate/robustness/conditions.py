"""Measure trained policies as they are and under changed conditions, each time on the same episodes.

It uses the episodes for selection: the results may decide the next training, so the episodes for reports stay unused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlx.config.schema import Experiment
from rlx.errors import Interrupted, RlxError, UsageError
from rlx.evaluate.measure import rebuild_fitting, refuse_unloadable
from rlx.evaluate.policy import Policy
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.rollout import Evaluator, Progress
from rlx.evaluate.stored_code import stored_experiment
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.run import Run
from rlx.runs.run_reference import Reference

if TYPE_CHECKING:
    from rlx.config.schema import Env

EPISODES = 10
# Wraps a policy in a disturbance. The number is the training seed.
Disturbance = Callable[[Policy, int], Policy]


@dataclass(frozen=True)
class ConditionScores:
    """The score of every training seed under one condition. `refused` is the reason if nothing could be measured.

    `random` is the random policy's score under the condition, if it was requested.
    """

    scores: Mapping[int, float] = field(default_factory=dict)
    random: float | None = None
    refused: str | None = None


class RobustnessTrial:
    """The policies of a run, and the evaluator of the configured environment. `planned` counts the evaluations."""

    def __init__(
        self, reference: Reference, *, root: Path, episodes: int = EPISODES, progress: Progress | None = None
    ) -> None:
        self.run = _run_of(reference)
        self.experiment: Experiment = stored_experiment(self.run, root=root)
        self.protocol = Protocol.of(self.experiment, root=root, purpose="selection", episodes=episodes)
        paths, absent = reference.present(default="latest")
        self.notes = [missing.message for missing in absent]
        self.planned = 0
        self._progress = progress
        self._before = 0
        self.evaluator = Evaluator(self.protocol, progress=self._report)
        read = {seed: checkpoints.read(path, with_replay=False) for seed, path in paths.items() if seed is not None}
        self.checkpoints = {seed: (item.path.name, item.step, item.identity) for seed, item in read.items()}
        self.policies = {seed: self._fitted(checkpoint) for seed, checkpoint in read.items()}

    def _fitted(self, checkpoint: checkpoints.Checkpoint) -> Policy:
        policy, note = rebuild_fitting(self.evaluator, checkpoint)
        if note and note not in self.notes:
            self.notes.append(note)
        return policy

    def play(
        self, *, env: Env | None = None, disturb: Disturbance | None = None, with_random: bool = False
    ) -> ConditionScores:
        """Measure every seed in a changed environment or with a disturbance. A failure is part of the result."""
        if env is None:
            return self._outcome(self.evaluator, disturb, with_random)
        try:
            with Evaluator(replace(self.protocol, env=env), progress=self._report) as evaluator:
                for policy in self.policies.values():
                    evaluator.refuse_misfit(policy)
                return self._outcome(evaluator, disturb, with_random)
        except Interrupted:
            raise
        except RlxError as error:
            return ConditionScores(refused=error.message)

    def _outcome(self, evaluator: Evaluator, disturb: Disturbance | None, with_random: bool) -> ConditionScores:
        scores = {}
        for seed, policy in self.policies.items():
            if disturb:
                policy = disturb(policy, seed)
            scores[seed] = evaluator.evaluate(policy, seed=seed).score
        if not all(map(math.isfinite, scores.values())):
            return ConditionScores(refused="the return is not finite: the simulation diverged")
        if with_random:
            return ConditionScores(scores, evaluator.evaluate_random().score)
        return ConditionScores(scores)

    def _report(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(self._before + done, max(self.planned, 1) * total)
        if done == total:
            self._before += total

    def close(self) -> None:
        """Close the environments."""
        self.evaluator.close()

    def __enter__(self) -> RobustnessTrial:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _run_of(reference: Reference) -> Run:
    """Return the run whose policies are tested. Raise if there is none, or if only its own program can load them."""
    if reference.run is None:
        raise UsageError("a checkpoint outside any run has no seeds to compare", hint="name its run")
    refuse_unloadable(reference.run)
    return reference.run
