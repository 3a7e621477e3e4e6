"""The command backend: runs a repository's own training program to train a seed.

The program runs in the project, or in the worktree of a study's run. Its metrics are read while it runs. The checkpoint
that it writes is kept as a file that rlx does not open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlx.errors import UsageError

if TYPE_CHECKING:
    from rlx.config.schema import Experiment, Problem
    from rlx.envs.make import EnvFacts
    from rlx.evaluate.policy import Policy
    from rlx.runs.checkpoints.checkpoint import Checkpoint
    from rlx.train.session import Session


class CommandTrainer:
    """Trains with the program of a config's `command` section."""

    name = "command"

    def check(self, experiment: Experiment, facts: EnvFacts) -> list[Problem]:
        """Return nothing: the config was checked, and the rest shows only when the program runs."""
        return []

    def train(self, session: Session) -> None:
        """Run the program until it ends, a stop is requested, or its time is up."""
        from rlx.train.backends.command.training_process import CommandJob

        CommandJob(session).run()

    def load(self, checkpoint: Checkpoint) -> Policy:
        """Raise an error: only the program itself can read its checkpoints."""
        raise UsageError("rlx cannot open a program's own checkpoint", hint="measure it with the program's evaluation")
