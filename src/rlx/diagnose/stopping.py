"""Whether a rule of a config's `stop` section ends a seed, judged from what it has shown so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rlx.config.schema import Budget, Plateau, Problem, Stop
from rlx.diagnose.case import RUNNING, Case, SeedCase
from rlx.diagnose.curve import Floats, shape
from rlx.diagnose.finding import Finding
from rlx.diagnose.rules import NAMES, load
from rlx.errors import did_you_mean
from rlx.figures import figure
from rlx.runs.metrics import Series
from rlx.runs.summary import Cost

SUDDEN_FROM = 0.05  # of the planned steps
LASTING_FROM, LASTING = 0.7, (0.1, 0.2, 0.3)
"""Nothing but a sudden failure ends a seed earlier, nor what was not found so many planned steps ago as well."""
NO_GAIN = ("flat", "declining", "collapsed")
FIRST_VALUES = 3


def stop_problems(stop: Stop) -> Iterator[Problem]:
    """Yield findings that no rule makes."""
    for name in stop.findings:
        if name not in NAMES:
            near = did_you_mean(name, NAMES)
            hint = f"did you mean `{near}`?" if near else f"the rules are: {', '.join(NAMES)}"
            yield Problem("stop.findings", f"`stop.findings`: no rule is called `{name}`", hint)


def reason_to_stop(stop: Stop, case: Case, cost: Cost) -> str | None:
    """Return why the one seed of a case is to end, by the first rule that says so; None where it goes on."""
    (seed,) = case.seeds
    reasons = [
        over_budget(stop.budget, cost) if stop.budget else None,
        _plateau(stop.plateau, seed) if stop.plateau else None,
    ]
    found = [standing(name, case) for name in stop.findings]
    reasons += [f"{finding.rule}: {finding.claim}" for finding in found if finding]
    return next((reason for reason in reasons if reason), None)


def standing(name: str, case: Case) -> Finding | None:
    """Return what a rule finds in a running seed, where that is enough to end it.

    A sudden failure ends it at once, where its signs count by themselves. Anything else may pass (returns that are
    flat, fall or swing in the middle of a run): it must be found late, and for a good part of the run.
    """
    rule, (seed,) = load(name), case.seeds
    if seed.state != RUNNING or rule.kind == "broken":
        return rule.find(case)
    done = case.done(seed)
    if rule.is_sudden and done >= SUDDEN_FROM and (found := rule.find(replace(case, are_returns_judged=False))):
        return found
    if done < LASTING_FROM or not case.planned_steps or _scores_better(seed):
        return None
    before = [case.until(seed.step - share * case.planned_steps) for share in LASTING]
    return rule.find(case) if all(rule.find(one) for one in before) else None


def over_budget(budget: Budget, cost: Cost) -> str | None:
    """Say which budget is used up."""
    pairs = (("seconds", cost.seconds, budget.seconds), ("CPU-seconds", cost.cpu_seconds, budget.cpu_seconds))
    for unit, spent, most in pairs:
        if most is not None and spent is not None and spent >= most:
            return f"budget: {figure(spent)} of {figure(most)} {unit} are used"
    return None


def _plateau(plateau: Plateau, seed: SeedCase) -> str | None:
    is_learning = plateau.below is None and _scores_better(seed)
    return None if is_learning else no_gain(plateau, seed.curve)


def no_gain(plateau: Plateau, curve: Series) -> str | None:
    """Say that the return has not risen for the rule's steps, and is not good enough to be left alone."""
    steps, values = curve.steps, curve.values
    if not len(steps) or steps[-1] - steps[0] < plateau.steps:
        return None
    recent = values[steps >= steps[-1] - plateau.steps]
    if shape(steps[-len(recent) :], recent).answer not in NO_GAIN:
        return None
    now = float(np.median(recent))
    is_good = _may_be_learning(values, recent) if plateau.below is None else now >= plateau.below
    return None if is_good else f"plateau: the return has not risen for {plateau.steps:,} steps, it is {figure(now)}"


def _scores_better(seed: SeedCase) -> bool:
    """Say whether its evaluations are above the first ones, as far as they waver: training returns lag behind them."""
    values = seed.evaluations.values[np.isfinite(seed.evaluations.values)]
    if len(values) < FIRST_VALUES:
        return False
    first = values[: max(1, len(values) // 3)]
    return float(np.median(values[-2:]) - np.median(first)) > float(np.median(np.abs(np.diff(values))))


def _may_be_learning(values: Floats, recent: Floats) -> bool:
    """Say whether a curve is above its first values, or has lately risen, as far as it wavers: too much to end it."""
    first, third = values[: max(FIRST_VALUES, len(values) // 20)], max(1, len(recent) // 3)
    wavers = max(float(first.std()), float(np.diff(recent).std()))
    gained = float(np.median(recent) - np.median(first))
    risen = float(np.median(recent[-third:]) - np.median(recent[:third]))
    return gained > wavers or risen > wavers / 2
