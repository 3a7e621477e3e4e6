"""Which backend trains an experiment, and why: `auto` takes `fast` where it applies and has passed its gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlx.train.trainer import trainer_for

if TYPE_CHECKING:
    from rlx.config.schema import Experiment, Problem
    from rlx.envs.make import EnvFacts

AUTO, FAST, SB3, COMMAND = "auto", "fast", "sb3", "command"
TOLD = "as the config says"


@dataclass(frozen=True)
class Choice:
    """An experiment that names its backend, why that one, and what stands against it or is worth knowing."""

    experiment: Experiment
    reason: str
    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        return f"backend {self.experiment.backend}: {self.reason}"


def makes_env(experiment: Experiment) -> bool:
    """Say whether rlx makes the environment itself; a command has its own."""
    return experiment.backend != COMMAND


def as_told(experiment: Experiment) -> Choice:
    """Return the choice of a config that names its backend, without asking anything."""
    return Choice(experiment, TOLD, ())


def choose(experiment: Experiment, facts: EnvFacts) -> Choice:
    """Name the backend of an experiment and ask it what stands against training; a config that names one keeps it."""
    if experiment.backend != AUTO:
        return Choice(experiment, TOLD, tuple(trainer_for(experiment).check(experiment, facts)))
    fast, sb3 = (experiment.model_copy(update={"backend": name}) for name in (FAST, SB3))
    found = trainer_for(fast).check(fast, facts)
    against = [problem for problem in found if problem.is_error]
    missing = _missing_package()
    if not against:
        name, reason = _by_gate(experiment, facts, missing=missing)
        if name == FAST:
            return Choice(fast, reason, tuple(found))
        return Choice(sb3, reason, tuple(trainer_for(sb3).check(sb3, facts)))
    told = against if missing else []  # neither will do: say what stands against both
    return Choice(sb3, against[0].message, (*trainer_for(sb3).check(sb3, facts), *told))


def _by_gate(experiment: Experiment, facts: EnvFacts, *, missing: str | None) -> tuple[str, str]:
    """Return the backend and the reason where `fast` could train an experiment."""
    from rlx.train.backends import fast_gate

    kind = fast_gate.kind(experiment, facts.action_space)
    passed = fast_gate.PASSED.get(kind, ())
    if passed:
        return FAST, f"PPO with an MLP on {kind} actions; gate passed on {', '.join(passed)}"
    untested = f"its learning gate has not been passed on {kind} actions"
    if missing:
        return FAST, f"{untested}, but `{missing}` is not installed (pip install 'rlx[sb3]')"
    return SB3, f"fast could train this, but {untested} (-s backend=fast takes it all the same)"


def _missing_package() -> str | None:
    from rlx.train.backends.sb3_check import missing_package

    return missing_package()
