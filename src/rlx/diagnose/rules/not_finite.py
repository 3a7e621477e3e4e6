"""NaN or infinity in a number that training depends on."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Sighting
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import Advice, RunRule, SuggestedChange, advised_commands, by_seed, seed_count, spell

DERIVED = ("train/explained_variance", "obs/std_ratio", "time/steps_per_second")
"""Ratios. A division by zero in them is not a failure."""


ENVIRONMENT = ("rollout/", "reward/", "obs/")
"""Metrics that the environment alone decides. If one of them comes first, no setting of the learner is the cause."""
ENVIRONMENT_WORDS = ("observation", "reward", "environment")
ENVIRONMENT_ADVICE = (
    Advice("find the call that returns it, before you change any setting of the learner", "check env {run}"),
    Advice("see the error and its step", "info {run} --traceback"),
)


def look(case: RunCase) -> Iterator[Sighting]:
    """Find numbers that are not finite, and say whether the environment made them."""
    for sighting in by_seed(look_at_seed, share=0.0)(case):
        if not all(comes_from_env(evidence) for evidence in sighting.evidence):
            yield sighting
            continue
        where = f"{spell(sighting.evidence)}{seed_count(sighting.evidence, case)}"
        claim = f"the environment gives a number that is not finite: {where}"
        tries = tuple(advice.fill(case) for advice in ENVIRONMENT_ADVICE)
        commands = advised_commands(ENVIRONMENT_ADVICE, case)
        yield replace(sighting, claim=claim, tries=tries, commands=commands, has_own_advice=True)


def comes_from_env(evidence: Evidence) -> bool:
    """Say whether the first number that was not finite is one that the environment gives."""
    if evidence.what == "error":
        return any(word in str(evidence.value).lower() for word in ENVIRONMENT_WORDS)
    return evidence.what.startswith(ENVIRONMENT)


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return the first metric that stopped being finite, or the error about it."""
    if seed.has_diverged:
        return Evidence("error", seed.reason, steps=(seed.step, seed.step))
    first: list[tuple[int, str, float]] = []
    for name, series in seed.series.items():
        bad = np.flatnonzero(~np.isfinite(series.values))
        if name not in DERIVED and bad.size:
            first.append((int(series.steps[bad[0]]), name, float(series.values[bad[0]])))
    if not first:
        return None
    step, name, value = min(first)
    return Evidence(name, str(value), steps=(step, step))


RULE = RunRule(
    id="not_finite",
    kind="broken",
    severity="high",
    summary="a number that training depends on is not finite",
    look=look,
    source="Nikanjam et al. 2021 (DRLinter); any value counts",
    cannot_see="which tensor came first if the trainer logs only means",
    advice=(
        "lower the learning rate",
        "bound or normalise rewards and observations",
        Advice("look for a division or a logarithm in the environment", "check env {run}"),
    ),
    changes=(SuggestedChange("algo.learning_rate", times=0.1), SuggestedChange("env.normalize.obs", to=True)),
    is_sudden=True,
)
