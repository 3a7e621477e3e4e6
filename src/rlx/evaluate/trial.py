"""Trained policies measured as they are and under changed conditions, on the same episodes each time.

The episodes are those that choose (`selection`): what is found here may decide what is trained next, so the episodes
that report stay unused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlx.config.load import parse
from rlx.config.schema import Experiment
from rlx.errors import Interrupted, RlxError, UsageError
from rlx.evaluate.measure import fitting, refuse_opaque
from rlx.evaluate.policy import Policy
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.rollout import Evaluator, Progress
from rlx.runs import checkpoint as checkpoints
from rlx.runs.reference import Reference
from rlx.runs.run import Run

if TYPE_CHECKING:
    from rlx.config.schema import Env

EPISODES = 10
Disturbance = Callable[[Policy, int], Policy]
"""Puts something between a policy and its environment; the number is the training seed."""


@dataclass(frozen=True)
class Outcome:
    """What every training seed scored under one condition; `refused` says why nothing could be measured.

    `random` is the random policy's score there, where it was asked for.
    """

    scores: Mapping[int, float] = field(default_factory=dict)
    random: float | None = None
    refused: str | None = None


class Trial:
    """The policies of a run, and the evaluator of the world as it is configured; `planned` counts the evaluations."""

    def __init__(
        self, reference: Reference, *, root: Path, episodes: int = EPISODES, progress: Progress | None = None
    ) -> None:
        self.run = _run_of(reference)
        self.experiment: Experiment = parse(self.run.config, source=f"{self.run.name}/config_snapshot.yaml")
        self.protocol = Protocol.of(self.experiment, root=root, purpose="selection", episodes=episodes)
        paths, absent = reference.present(default="latest")
        self.notes = [missing.message for missing in absent]
        self.planned = 0
        self._progress, self._before = progress, 0
        self._evaluator = Evaluator(self.protocol, progress=self._tell)
        read = {seed: checkpoints.read(path, with_replay=False) for seed, path in paths.items() if seed is not None}
        self.checkpoints = {seed: (one.path.name, one.step, one.identity) for seed, one in read.items()}
        self.policies = {seed: self._fitted(checkpoint) for seed, checkpoint in read.items()}

    def _fitted(self, checkpoint: checkpoints.Checkpoint) -> Policy:
        policy, note = fitting(self._evaluator, checkpoint)
        if note and note not in self.notes:
            self.notes.append(note)
        return policy

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator of the world as it is configured."""
        return self._evaluator

    def play(self, *, env: Env | None = None, disturb: Disturbance | None = None, with_random: bool = False) -> Outcome:
        """Measure every seed, in a changed environment or behind a disturbance; what cannot be played is told."""
        if env is None:
            return self._outcome(self._evaluator, disturb, with_random)
        try:
            with Evaluator(replace(self.protocol, env=env), progress=self._tell) as evaluator:
                for policy in self.policies.values():
                    evaluator.refuse_misfit(policy)
                return self._outcome(evaluator, disturb, with_random)
        except Interrupted:
            raise
        except RlxError as error:
            return Outcome(refused=error.message)

    def _outcome(self, evaluator: Evaluator, disturb: Disturbance | None, with_random: bool) -> Outcome:
        scores = {
            seed: evaluator.evaluate(disturb(policy, seed) if disturb else policy, seed=seed).score
            for seed, policy in self.policies.items()
        }
        if not all(map(math.isfinite, scores.values())):
            return Outcome(refused="the return is not finite: the simulation diverged")
        return Outcome(scores, evaluator.evaluate_random().score if with_random else None)

    def _tell(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(self._before + done, max(self.planned, 1) * total)
        self._before += total if done == total else 0

    def close(self) -> None:
        """Close the environments."""
        self._evaluator.close()

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _run_of(reference: Reference) -> Run:
    """Return the run whose policies are tried; one that only its own program loads is refused, as is none."""
    if reference.run is None:
        raise UsageError("a checkpoint outside any run has no seeds to compare", hint="name its run")
    refuse_opaque(reference.run)
    return reference.run
