"""The Stable-Baselines3 backend: twelve algorithms and people's own subclasses, with exact resume where the env allows.

Nothing here imports torch; the work is in the `sb3_*` files beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlx.errors import MissingExtra

if TYPE_CHECKING:
    from pathlib import Path

    from rlx.config.schema import Experiment, Problem
    from rlx.envs.make import EnvFacts
    from rlx.evaluate.policy import Policy
    from rlx.runs.checkpoint import Checkpoint
    from rlx.train.session import Session


class Sb3Trainer:
    """Trains with SB3 and sb3-contrib through loops of our own, so that every boundary can be saved and resumed."""

    name = "sb3"

    def check(self, experiment: Experiment, facts: EnvFacts) -> list[Problem]:
        """Say what stands against training this experiment; no torch import."""
        from rlx.train.backends import sb3_check

        return sb3_check.problems(experiment, facts)

    def train(self, session: Session) -> None:
        """Train from the session's checkpoint, or from nothing, until it is complete or the session says stop."""
        _require_packages("training with sb3")
        from rlx.train.backends import sb3_loop

        sb3_loop.train(session)

    def load(self, checkpoint: Checkpoint) -> Policy:
        """Rebuild the policy from config, spaces and weights; the only code run is the project's own policy class."""
        _require_packages("a policy trained with sb3")
        from rlx.train.backends import sb3_policy

        return sb3_policy.load(checkpoint)


def export(checkpoint: Checkpoint, target: Path) -> tuple[str, list[Path]]:
    """Write a policy, whichever backend trained it, as SB3 does; return the class that loads it and the files."""
    _require_packages("exporting to sb3")
    from rlx.train.backends import sb3_export

    return sb3_export.export(checkpoint, target)


def _require_packages(why: str) -> None:
    from rlx.train.backends.sb3_check import missing_package

    missing = missing_package()
    if missing:
        raise MissingExtra(missing, extra="sb3", why=why)
