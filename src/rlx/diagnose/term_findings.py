"""What is wrong with a reward's terms, as findings: farmed, dominating, saturated, never paid, not finite; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rlx.diagnose.divergence import end_level, known_part
from rlx.diagnose.finding import Evidence, Finding
from rlx.diagnose.terms import (
    DOMINATION,
    SATURATED_POINTS,
    WORTH,
    Hack,
    SeedTerms,
    hack,
    is_solved,
    is_stuck,
    mean_shares,
    task_correlation,
)
from rlx.figures import figure, signed


def findings(seeds: Sequence[SeedTerms], metric: str) -> list[Finding]:
    """Return what is wrong with the reward's terms, the worst first."""
    farmed = [one.term for history in seeds if (one := hack(history, metric))]
    worst = [*not_finite(seeds), *hacking(seeds, metric), *domination(seeds, metric)]
    return [*worst, *saturation(seeds, metric, beside=farmed), *never_paid(seeds, metric)]


def hacking(seeds: Sequence[SeedTerms], metric: str) -> list[Finding]:
    """Return one finding for each term that is farmed, with the seeds that do so and from which step."""
    hacks = {history.seed: found for history in seeds if (found := hack(history, metric))}
    by_term: dict[str, dict[int, Hack]] = {}
    for seed, one in hacks.items():
        by_term.setdefault(one.term, {})[seed] = one
    return [_hacking(term, of, metric, total=len(seeds)) for term, of in by_term.items()]


def _hacking(term: str, hacks: Mapping[int, Hack], metric: str, *, total: int) -> Finding:
    one = min(hacks.values(), key=lambda hack: hack.divergence.step)
    first = one.divergence
    is_fall = any(hack.divergence.is_fall for hack in hacks.values())
    seeds, span = tuple(sorted(hacks)), (first.step, first.last_step)
    moved = "fell" if first.is_fall else "stayed flat"
    claim = (
        f"`{term}` is farmed from step {first.step:,} on: it pays {figure(one.paid[0])} → {figure(one.paid[1])} an "
        f"episode while {metric} {moved} ({figure(first.task[0])} → {figure(first.task[1])}); "
        f"seen on {len(hacks)} of {total} seeds"
    )
    evidence = (
        Evidence(f"{metric} at the end", first.task[1], limit=first.task[0], steps=span, seeds=seeds),
        Evidence(f"{term} per episode at the end", one.paid[1], limit=one.paid[0], steps=span, seeds=seeds),
    )
    tries = (
        f"make `{term}` a difference of potentials (γΦ(s′) − Φ(s)), pay it once, or cap it per episode",
        f"lower the weight of `{term}` until finishing pays more than farming it",
    )
    return Finding("reward_hacking", "high" if is_fall else "medium", claim, evidence, tries)


def domination(seeds: Sequence[SeedTerms], metric: str) -> list[Finding]:
    """Return a finding where one of several terms is most of the reward and does not go with the task metric."""
    found = []
    for term, share in mean_shares(seeds).items():
        known = [value for history in seeds if (value := task_correlation(history, term)) is not None]
        is_harmful = bool(known) and float(np.median(known)) <= 0.0
        if share <= DOMINATION or not is_harmful or all(is_solved(history, metric) for history in seeds):
            continue
        agreement = float(np.median(known))
        told = f"rank correlation {signed(round(agreement, 2))}"
        claim = f"`{term}` is {share:.0%} of |reward| and does not go with {metric} ({told})"
        evidence = (
            Evidence(f"share of {term}", share, limit=DOMINATION),
            Evidence(f"rank correlation of {term} with {metric}", agreement, limit=0.0),
        )
        tries = (f"scale `{term}` down until no term is more than two thirds of |reward|", f"drop `{term}`")
        found.append(Finding("term_domination", "medium", claim, evidence, tries))
    return found


def saturation(seeds: Sequence[SeedTerms], metric: str, *, beside: Sequence[str] = ()) -> list[Finding]:
    """Return a finding for each term that matters, stays at its bound and leaves the task metric where it is.

    Terms that were found guilty of more already stand in `beside`.
    """
    shares = mean_shares(seeds)
    found = []
    for term in dict.fromkeys(name for history in seeds for name in history.per_step if name not in beside):
        stuck = [history.seed for history in seeds if term in history.per_step and is_stuck(history, term, metric)]
        if 2 * len(stuck) <= len(seeds) or shares.get(term, 1.0) < WORTH:
            continue
        level = end_level(known_part(seeds[0].points(seeds[0].per_step[term])))
        last = f"the last {SATURATED_POINTS}0% of training"
        claim = f"`{term}` stays at {figure(level)} a step for {last}, and {metric} where it is"
        evidence = (Evidence(f"{term} per step", level, seeds=tuple(stuck)),)
        tries = (f"rescale `{term}` so that it still tells good from better, or drop it",)
        found.append(Finding("term_saturation", "low", claim, evidence, tries))
    return found


def never_paid(seeds: Sequence[SeedTerms], metric: str) -> list[Finding]:
    """Return a finding for each term that was nothing but zero on every seed, where the task is not learned."""
    if all(history.task is None or is_solved(history, metric) for history in seeds):
        return []
    found = []
    for term in dict.fromkeys(name for history in seeds for name in history.size):
        values = [series.values for history in seeds if (series := history.size.get(term)) is not None]
        if all(len(one) and not one.any() for one in values):
            evidence = (Evidence(f"largest size of {term}", 0.0),)
            tries = (f"make `{term}` reachable (an easier start, shaping towards it), or drop it",)
            claim = f"`{term}` was zero in every step of training"
            found.append(Finding("term_zero", "low", claim, evidence, tries))
    return found


def not_finite(seeds: Sequence[SeedTerms]) -> list[Finding]:
    """Return a finding for each term that was NaN or infinite, from its first step on."""
    found = []
    for term in dict.fromkeys(name for history in seeds for name in history.per_step):
        bad = {
            history.seed: int(series.steps[~np.isfinite(series.values)][0])
            for history in seeds
            if (series := history.per_step.get(term)) is not None and not np.isfinite(series.values).all()
        }
        if bad:
            first = min(bad.values())
            claim = f"`{term}` is NaN or infinite, first at step {first:,}"
            evidence = (Evidence(f"first step of {term} that is not finite", float(first), seeds=tuple(bad)),)
            tries = (f"look for a division by zero, a log or an overflow in `{term}`",)
            found.append(Finding("term_not_finite", "high", claim, evidence, tries))
    return found
