"""The subject of a film, a replay or an explanation: a policy, and the protocol of its episodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlx.evaluate.measure import changed_files_note, protocol_for, rebuild_fitting
from rlx.evaluate.policy import Policy
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.rollout import Evaluator
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.run import Run
from rlx.runs.run_reference import Reference, resolve


@dataclass(frozen=True)
class PolicySubject:
    """The policy and the protocol of its episodes; `notes` say if code has changed since its training."""

    run: Run | None
    seed: int | None
    checkpoint: Path
    protocol: Protocol
    policy: Policy
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Run, seed and checkpoint."""
        if not self.run:
            return self.checkpoint.name
        return f"{self.run.name}, seed {self.seed}, {self.checkpoint.name}"


def find_subject(text: str, *, root: Path, seed: int | None = None, episodes: int | None = None) -> PolicySubject:
    """Return the subject that `RUN`, `RUN:checkpoint` or a path names; by default its best seed and checkpoint.

    The protocol is that of the run's reports; `episodes` changes their number.
    """
    reference = resolve(text, root)
    protocol = protocol_for(reference, root=root, episodes=episodes)
    number, checkpoint = next(iter(reference.checkpoints(default="best", seed=_seed(reference, seed)).items()))
    with Evaluator(protocol) as evaluator:
        policy, note = rebuild_fitting(evaluator, checkpoints.read(checkpoint, with_replay=False))
    changed = changed_files_note(reference.run, number, protocol) if reference.run else None
    notes = tuple(text for text in (changed, note) if text)
    return PolicySubject(reference.run, number, checkpoint, protocol, policy, notes)


def _seed(reference: Reference, seed: int | None) -> int | None:
    """Return the training seed; the default is the run's best, by its report."""
    if seed is not None:
        return seed
    return reference.best_seed()
