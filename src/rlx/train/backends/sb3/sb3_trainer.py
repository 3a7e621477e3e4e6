"""The Stable-Baselines3 backend: twelve algorithms and a project's own subclasses. Does not import torch itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlx.errors import MissingExtra

if TYPE_CHECKING:
    from pathlib import Path

    from rlx.config.schema import Experiment, Problem
    from rlx.envs.make import EnvFacts
    from rlx.evaluate.policy import Policy
    from rlx.runs.checkpoints.checkpoint import Checkpoint
    from rlx.train.session import Session


class Sb3Trainer:
    """Trains with SB3 and sb3-contrib in rlx's own loops, so that every update can be saved and resumed."""

    name = "sb3"

    def check(self, experiment: Experiment, facts: EnvFacts) -> list[Problem]:
        """Return every reason why this backend cannot train an experiment."""
        from rlx.train.backends.sb3 import requirements

        return requirements.problems(experiment, facts)

    def train(self, session: Session) -> None:
        """Train from the session's checkpoint, or from the start, until training is complete or has to stop."""
        _require_packages("training with sb3")
        from rlx.train.backends.sb3 import sb3_loop

        sb3_loop.train(session)

    def load(self, checkpoint: Checkpoint) -> Policy:
        """Rebuild the policy from config, spaces and weights; the only foreign code is the project's policy class."""
        _require_packages("a policy trained with sb3")
        from rlx.train.backends.sb3 import torch_policy

        return torch_policy.load(checkpoint)


def export(checkpoint: Checkpoint, target: Path) -> tuple[str, list[Path]]:
    """Write a policy of any backend in SB3's format; return the class that loads it and the files."""
    _require_packages("exporting to sb3")
    from rlx.train.backends.sb3 import export_zip

    return export_zip.export(checkpoint, target)


def _require_packages(why: str) -> None:
    from rlx.train.backends.sb3.requirements import missing_package

    missing = missing_package()
    if missing:
        raise MissingExtra(missing, extra="sb3", why=why)
