"""The interface of a training backend, and the functions that find and call the one that a config names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rlx import plugins
from rlx.errors import UsageError

if TYPE_CHECKING:
    from rlx.config.schema import Experiment, Problem
    from rlx.envs.make import EnvFacts
    from rlx.evaluate.policy import Policy
    from rlx.runs.checkpoints.checkpoint import Checkpoint
    from rlx.train.session import Session


class Trainer(Protocol):
    """A training backend. Conformance: subclass `rlx.testing.TrainerContract`."""

    name: str

    def check(self, experiment: Experiment, facts: EnvFacts) -> list[Problem]:
        """Return every reason why the backend cannot train an experiment; cheap, without heavy imports."""
        ...

    def train(self, session: Session) -> None:
        """Train from `session.checkpoint`, or from the start, until the session says stop."""
        ...

    def load(self, checkpoint: Checkpoint) -> Policy:
        """Rebuild a policy from a verified checkpoint, without executing anything that is stored in it."""
        ...


@runtime_checkable
class GroupTrainer(Trainer, Protocol):
    """A backend that can also train several seeds in one process, each as if it were alone."""

    def train_together(self, sessions: Sequence[Session]) -> dict[int, Exception]:
        """Train sessions that start from the same step; return the errors of the seeds that failed."""
        ...


def train(experiment: Experiment, sessions: Sequence[Session]) -> dict[int, Exception]:
    """Train one session, or several together; return the errors of seeds that failed while others went on.

    A seed that was killed between its last checkpoint and its report only gets that report.
    """
    for session in sessions:
        if session.checkpoint:
            refuse_other_backend(experiment, session.checkpoint)
    trainer = trainer_for(experiment)
    unreported = [session for session in sessions if session.lacks_report]
    for session in unreported:
        assert session.checkpoint is not None  # it is complete
        session.report(trainer.load(session.checkpoint))
    if unreported:
        return {}
    if len(sessions) > 1:
        assert isinstance(trainer, GroupTrainer), f"{trainer.name} trains one seed per process"
        return trainer.train_together(sessions)
    trainer.train(sessions[0])
    return {}


def trainer_for(experiment: Experiment) -> Trainer:
    """Import and return the backend that an experiment names."""
    trainer: Trainer = plugins.load(plugins.BACKENDS, experiment.backend, kind="backend")()
    return trainer


def refuse_other_backend(experiment: Experiment, checkpoint: Checkpoint) -> None:
    """Raise if another backend wrote the checkpoint."""
    if checkpoint.backend != experiment.backend:
        raise UsageError(
            f"a checkpoint of backend {checkpoint.backend} cannot be trained further with {experiment.backend}",
            hint=f"-s backend={checkpoint.backend}, or start a new training",
        )
