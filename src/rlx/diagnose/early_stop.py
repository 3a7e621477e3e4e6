"""Judging a run that still trains: the `stop` rules of a config, and alarms for `rlx watch`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rlx.config.schema import Budget, Plateau, Problem, Stop
from rlx.diagnose.curve_shape import Floats, classify_curve
from rlx.diagnose.diagnose import diagnose
from rlx.diagnose.finding import Finding
from rlx.diagnose.rules import NAMES, load
from rlx.diagnose.run_case import RUNNING, RunCase, SeedCase
from rlx.errors import did_you_mean
from rlx.number_format import figure
from rlx.runs.metrics import Series
from rlx.runs.summary import SeedCost

ALARM_FROM = 0.2  # of the planned steps: earlier, a seed has shown too little
SUDDEN_FROM = 0.05  # of the planned steps
LASTING_FROM = 0.7  # only a sudden failure ends a seed earlier
LASTING = (0.1, 0.2, 0.3)  # so many planned steps ago, the rule must have found the failure too
NO_GAIN = ("flat", "declining", "collapsed")
FIRST_VALUES = 3


def alarms(case: RunCase) -> tuple[Finding, ...]:
    """Return the findings on the seeds that have shown enough: they ended, or are past the first part of the run."""
    judged = []
    for seed in case.seeds:
        has_data = bool(seed.series or seed.reason)
        if has_data and (seed.state != RUNNING or case.progress(seed) >= ALARM_FROM):
            judged.append(seed)
    if not judged:
        return ()
    return diagnose(replace(case, seeds=tuple(judged))).findings


def stop_problems(stop: Stop) -> Iterator[Problem]:
    """Yield a problem for each name in `stop.findings` that is not a rule."""
    for name in stop.findings:
        if name not in NAMES:
            near = did_you_mean(name, NAMES)
            hint = f"the rules are: {', '.join(NAMES)}"
            if near:
                hint = f"did you mean `{near}`?"
            yield Problem("stop.findings", f"`stop.findings`: no rule is called `{name}`", hint)


def reason_to_stop(stop: Stop, case: RunCase, cost: SeedCost) -> str | None:
    """Return why the only seed of a case must stop, by the first rule that applies, or None if it goes on."""
    (seed,) = case.seeds
    reason = None
    if stop.budget:
        reason = over_budget(stop.budget, cost)
    if reason is None and stop.plateau and (stop.plateau.below is not None or not _scores_better(seed)):
        reason = no_gain(stop.plateau, seed.logged_curve)
    if reason is not None:
        return reason
    for name in stop.findings:
        for finding in lasting_findings(name, case):
            return f"{finding.rule}: {finding.claim}"
    return None


def lasting_findings(name: str, case: RunCase) -> tuple[Finding, ...]:
    """Return what a rule finds in a running seed, if that is enough to stop it.

    A sudden failure stops it at once if its signs count alone. Any other failure may pass: returns can be flat, fall or
    swing in the middle of a run. So the rule must find it late, and for a good part of the run.
    """
    rule = load(name)
    (seed,) = case.seeds
    if seed.state != RUNNING or rule.kind == "broken":
        return rule.find(case)
    progress = case.progress(seed)
    if rule.is_sudden and progress >= SUDDEN_FROM:
        findings = rule.find(replace(case, are_returns_judged=False))
        if findings:
            return findings
    if progress < LASTING_FROM or not case.planned_steps or _scores_better(seed):
        return ()
    earlier = (case.until(seed.step - share * case.planned_steps) for share in LASTING)
    if not all(rule.find(before) for before in earlier):
        return ()
    return rule.find(case)


def over_budget(budget: Budget, cost: SeedCost) -> str | None:
    """Say which budget is used up."""
    limits = (("seconds", cost.seconds, budget.seconds), ("CPU-seconds", cost.cpu_seconds, budget.cpu_seconds))
    for unit, spent, most in limits:
        if most is not None and spent is not None and spent >= most:
            return f"budget: {figure(spent)} of {figure(most)} {unit} are used"
    return None


def no_gain(plateau: Plateau, curve: Series) -> str | None:
    """Say that the return has not risen for the rule's steps, and is not good enough."""
    if not len(curve) or curve.steps[-1] - curve.steps[0] < plateau.steps:
        return None
    recent = curve.values[curve.steps >= curve.steps[-1] - plateau.steps]
    if classify_curve(curve.steps[-len(recent) :], recent).answer not in NO_GAIN:
        return None
    now = float(np.median(recent))
    if plateau.below is None and _may_be_learning(curve.values, recent):
        return None
    if plateau.below is not None and now >= plateau.below:
        return None
    return f"plateau: the return has not risen for {plateau.steps:,} steps, it is {figure(now)}"


def _scores_better(seed: SeedCase) -> bool:
    """Say whether its evaluations rose by more than they fluctuate. Training returns lag behind evaluations."""
    values = seed.evaluations.values[np.isfinite(seed.evaluations.values)]
    if len(values) < FIRST_VALUES:
        return False
    first = values[: max(1, len(values) // 3)]
    return float(np.median(values[-2:]) - np.median(first)) > float(np.median(np.abs(np.diff(values))))


def _may_be_learning(values: Floats, recent: Floats) -> bool:
    """Say whether a curve is above its first values, or rose lately, by more than it fluctuates."""
    first = values[: max(FIRST_VALUES, len(values) // 20)]
    third = max(1, len(recent) // 3)
    noise = max(float(first.std()), float(np.diff(recent).std()))
    gained = float(np.median(recent) - np.median(first))
    risen = float(np.median(recent[-third:]) - np.median(recent[:third]))
    return gained > noise or risen > noise / 2
