"""Findings on spaces that no algorithm can be trained on."""

from __future__ import annotations

from collections.abc import Iterator

from rlx.config.load import parse
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Rule, Sighting
from rlx.envs.inspect.record import Inspection
from rlx.train.choose_backend import SB3
from rlx.train.trainer import trainer_for

OF_ENVIRONMENT = ("env.id", "env.wrappers")
"""The keys of problems that only another environment or a wrapper solves."""


def find_untrainable(record: Inspection) -> Iterator[Sighting]:
    """Find spaces that PPO, which takes more kinds than every other algorithm, cannot act in or read."""
    experiment = parse({
        "env": {"id": "this environment"}, "algo": {"name": "ppo", "total_timesteps": 1},
        "policy": {"type": record.policy_type}, "backend": SB3,
    })  # fmt: skip
    for problem in trainer_for(experiment).check(experiment, record.facts):
        if problem.is_error and problem.key in OF_ENVIRONMENT:
            tries = (problem.hint,) if problem.hint else ()
            claim = f"it cannot be trained: {problem.message}"
            yield Sighting((Evidence("spaces", f"{record.observation}, {record.action}"),), claim, tries=tries)


RULES = (Rule("cannot_train", "high", find_untrainable, kind="broken"),)
