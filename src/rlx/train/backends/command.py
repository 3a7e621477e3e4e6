"""The command backend: a repository's own training program as a seed's training.

The program runs in the project (a study's run: in its worktree), its figures are read into the seed's metrics while it
runs, and what it leaves behind is kept as an opaque checkpoint. The work is in the `command_*` files beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlx.errors import UsageError

if TYPE_CHECKING:
    from rlx.config.schema import Experiment, Problem
    from rlx.envs.make import EnvFacts
    from rlx.evaluate.policy import Policy
    from rlx.runs.checkpoint import Checkpoint
    from rlx.train.session import Session


class CommandTrainer:
    """Trains with the arguments that a config's `command` section has."""

    name = "command"

    def check(self, experiment: Experiment, facts: EnvFacts) -> list[Problem]:
        """Say nothing: what can be known before the program runs is in the config, which was checked."""
        return []

    def train(self, session: Session) -> None:
        """Run the program until it ends, a stop is asked for, or its time is up."""
        from rlx.train.backends.command_job import CommandJob

        CommandJob(session).run()

    def load(self, checkpoint: Checkpoint) -> Policy:
        """Refuse: only the program itself knows what its checkpoints mean."""
        raise UsageError("rlx cannot open a program's own checkpoint", hint="measure it with the program's evaluation")
