"""What played episodes show about a reward: not finite, sparse, out of scale, terms that miss, failures paid more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlx.diagnose.finding import Evidence, Finding
from rlx.diagnose.preflight import judge
from rlx.figures import figure

LARGE, SMALL = 10.0, 0.01
"""Mean size of a paid step outside which a reward should be scaled: near 1 is what learning rates are made for."""
SPIKE = 1000.0
"""Largest step, in typical ones (the median of those that pay)."""
ADDS_UP = 0.01

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Played:
    """One episode as review looks at it: what every step paid, in all and by term, and whether it succeeded."""

    rewards: Array
    terms: Mapping[str, Array]
    success: bool | None = None


def review_steps(episodes: Sequence[Played], *, who: str) -> list[Finding]:
    """Return what episodes that `who` (the random policy) played show."""
    rewards = np.concatenate([one.rewards for one in episodes])
    bad = int((~np.isfinite(rewards)).sum())
    if bad:
        evidence = (Evidence("steps without a finite reward", float(bad), limit=0.0),)
        claim = f"the reward is NaN or infinite in {bad:,} of {len(rewards):,} steps of {who}"
        return [Finding("reward_not_finite", "high", claim, evidence, ("guard divisions, logs and exponentials",))]
    return [
        *_ranking(episodes, who),
        *_sparse(episodes, who),
        *_scale(rewards, who),
        *_spikes(episodes),
        *_terms(episodes, who),
    ]


def _ranking(episodes: Sequence[Played], who: str) -> Iterator[Finding]:
    known = [one for one in episodes if one.success is not None]
    paid = [float(one.rewards.sum()) for one in known]
    judged = judge(paid, paid, [bool(one.success) for one in known])
    if judged is not None:
        yield from judged.findings()


def _sparse(episodes: Sequence[Played], who: str) -> Iterator[Finding]:
    returns = np.array([one.rewards.sum() for one in episodes])
    if len(returns) > 1 and np.ptp(returns) <= 1e-9 * max(1.0, float(np.abs(returns).max())):
        steps = sum(len(one.rewards) for one in episodes)
        same = f"return {figure(float(returns[0]))}: nothing to learn from yet"
        claim = f"all {len(returns)} episodes of {who} ({steps:,} steps) {same}"
        tries = ("add γΦ(s′) − Φ(s) with Φ the nearness to the goal", "start some episodes near the goal")
        yield Finding("reward_sparse", "low", claim, (Evidence("spread of the returns", 0.0),), tries)


def _scale(rewards: Array, who: str) -> Iterator[Finding]:
    sizes = np.abs(rewards[rewards != 0])
    if not len(sizes):
        return
    mean = float(sizes.mean())
    if not SMALL <= mean <= LARGE:
        limit = LARGE if mean > LARGE else SMALL
        claim = f"a step that pays, pays {who} {figure(mean)} on average: learning rates are made for about 1"
        evidence = (Evidence("mean size of a paid step", mean, limit=limit),)
        changes = ({"env.normalize.reward": True},)
        yield Finding("reward_scale", "low", claim, evidence, (f"multiply it by {1 / mean:.1g}",), changes)


def _spikes(episodes: Sequence[Played]) -> Iterator[Finding]:
    """Find a step that outweighs all others; an episode's last one may: it pays for how it ended."""
    inner = np.abs(np.concatenate([one.rewards[:-1] for one in episodes]))
    paid = inner[inner > 0]
    largest, typical = (float(paid.max()), float(np.median(paid))) if len(paid) else (0.0, 0.0)
    if largest > SPIKE * typical:
        claim = f"its largest step ({figure(largest)}) is {figure(largest / typical)} times the typical one"
        evidence = (Evidence("largest step in typical ones", largest / typical, limit=SPIKE),)
        yield Finding("reward_unbounded", "medium", claim, evidence, ("bound it: np.clip or np.tanh",))


def _terms(episodes: Sequence[Played], who: str) -> Iterator[Finding]:
    names = dict.fromkeys(name for one in episodes for name in one.terms)
    if not names:
        return
    for name in names:
        if not any(one.terms[name].any() for one in episodes if name in one.terms):
            claim = f"term `{name}` was zero in every step of {who}"
            tries = (f"see that `{name}` can be reached, or drop it",)
            yield Finding("term_zero", "low", claim, (Evidence(f"largest size of {name}", 0.0),), tries)
    rewards = np.concatenate([one.rewards for one in episodes])
    total = np.concatenate([np.sum([*one.terms.values(), np.zeros(len(one.rewards))], axis=0) for one in episodes])
    size = float(np.abs(rewards).mean())
    missing = float(np.abs(rewards - total).mean()) / size if size else 0.0
    if missing > ADDS_UP:
        claim = f"the terms do not add up to the reward: {missing:.0%} of it is in none of them"
        tries = ("report every part, with its weight: the sum of info['reward_terms'] is the reward",)
        yield Finding("terms_incomplete", "low", claim, (Evidence("share in no term", missing, limit=ADDS_UP),), tries)
