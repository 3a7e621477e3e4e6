"""Chooses the backend of an experiment: `auto` takes `fast` if it applies and has passed its learning gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlx.train.trainer import trainer_for

if TYPE_CHECKING:
    from rlx.config.schema import Experiment, Problem
    from rlx.envs.make import EnvFacts

AUTO = "auto"
FAST = "fast"
SB3 = "sb3"
COMMAND = "command"
FROM_CONFIG = "as the config says"


@dataclass(frozen=True)
class BackendChoice:
    """An experiment with its backend, the reason for it, and the problems that it has."""

    experiment: Experiment
    reason: str
    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        return f"backend {self.experiment.backend}: {self.reason}"


def makes_env(experiment: Experiment) -> bool:
    """Return whether rlx makes the environment itself; a command has its own."""
    return experiment.backend != COMMAND


def as_configured(experiment: Experiment) -> BackendChoice:
    """Return the choice of a config that names its backend, without checking it."""
    return BackendChoice(experiment, FROM_CONFIG, ())


def choose(experiment: Experiment, facts: EnvFacts) -> BackendChoice:
    """Choose the backend of an experiment and check it; a config that names a backend keeps it."""
    if experiment.backend != AUTO:
        return BackendChoice(experiment, FROM_CONFIG, tuple(trainer_for(experiment).check(experiment, facts)))
    fast = experiment.model_copy(update={"backend": FAST})
    sb3 = experiment.model_copy(update={"backend": SB3})
    fast_problems = trainer_for(fast).check(fast, facts)
    errors = [problem for problem in fast_problems if problem.is_error]
    missing = _missing_package()
    if errors:
        problems = trainer_for(sb3).check(sb3, facts)
        if missing:  # neither backend can train it: show the problems of both
            problems += errors
        return BackendChoice(sb3, errors[0].message, tuple(problems))
    name, reason = _by_gate(experiment, facts, missing=missing)
    if name == FAST:
        return BackendChoice(fast, reason, tuple(fast_problems))
    return BackendChoice(sb3, reason, tuple(trainer_for(sb3).check(sb3, facts)))


def _by_gate(experiment: Experiment, facts: EnvFacts, *, missing: str | None) -> tuple[str, str]:
    """Return the backend and the reason for an experiment that `fast` could train."""
    from rlx.train.backends.fast import learning_gate

    kind = learning_gate.kind(experiment, facts.action_space)
    passed = learning_gate.PASSED.get(kind, ())
    if passed:
        return FAST, f"PPO with an MLP on {kind} actions; gate passed on {', '.join(passed)}"
    untested = f"its learning gate has not been passed on {kind} actions"
    if missing:
        return FAST, f"{untested}, but `{missing}` is not installed (pip install 'rlx[sb3]')"
    return SB3, f"fast could train this, but {untested} (use it anyway with -s backend=fast)"


def _missing_package() -> str | None:
    from rlx.train.backends.sb3.requirements import missing_package

    return missing_package()
