"""The seam between rlx and a training algorithm: what a backend must do, and how one is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rlx import plugins

if TYPE_CHECKING:
    from rlx.config.schema import Experiment, Problem
    from rlx.envs.make import EnvFacts
    from rlx.evaluate.policy import Policy
    from rlx.runs.checkpoint import Checkpoint
    from rlx.train.session import Session


class Trainer(Protocol):
    """A training backend. Conformance: subclass `rlx.testing.TrainerContract`."""

    name: str

    def check(self, experiment: Experiment, facts: EnvFacts) -> list[Problem]:
        """Say what stands against training this experiment; cheap, without heavy imports."""
        ...

    def train(self, session: Session) -> None:
        """Train from `session.checkpoint` (or from nothing) until the session says stop."""
        ...

    def load(self, checkpoint: Checkpoint) -> Policy:
        """Rebuild a policy from a verified checkpoint; executes nothing that is stored in it."""
        ...


def backend_name(experiment: Experiment) -> str:
    """Return the backend that trains this experiment (`auto` takes the only one there is)."""
    return "sb3" if experiment.backend == "auto" else experiment.backend


def trainer_for(experiment: Experiment) -> Trainer:
    """Import and return the backend that trains this experiment."""
    trainer: Trainer = plugins.load(plugins.BACKENDS, backend_name(experiment), kind="backend")()
    return trainer
