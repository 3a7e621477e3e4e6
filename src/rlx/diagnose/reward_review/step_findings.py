"""What played episodes show about a reward: not finite, sparse, out of scale, incomplete terms, failures paid more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rlx.diagnose.finding import Evidence, Finding
from rlx.diagnose.reward_review.ranking import GUARD_NUMBERS, RANKS_FAILURES, judge
from rlx.diagnose.rule import Rule, Sighting, run_rules
from rlx.number_format import figure

LARGE = 10.0
SMALL = 0.01
"""A reward should be scaled if the mean size of a paid step is outside: learning rates are made for about 1."""
SPIKE = 1000.0
"""Largest step / typical step (the median of those that pay)."""
ADDS_UP = 0.01
SHAPE_REWARD = ("add γΦ(s′) − Φ(s) with Φ the nearness to the goal", "start some episodes near the goal")

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class PlayedEpisode:
    """One episode: what every step paid, in all and by term, and whether it succeeded."""

    rewards: Array
    terms: Mapping[str, Array]
    success: bool | None = None


@dataclass(frozen=True)
class PlayedEpisodes:
    """Episodes that `who` (for example the random policy) played."""

    episodes: Sequence[PlayedEpisode]
    who: str

    @cached_property
    def rewards(self) -> Array:
        return np.concatenate([episode.rewards for episode in self.episodes])


def review_steps(episodes: Sequence[PlayedEpisode], *, who: str) -> tuple[Finding, ...]:
    """Return what episodes show. If some rewards are not finite, no other rule can look."""
    played = PlayedEpisodes(episodes, who)
    return NOT_FINITE.find(played) or run_rules(RULES, played).findings


def find_not_finite(played: PlayedEpisodes) -> Iterator[Sighting]:
    """Find rewards that are NaN or infinite."""
    bad = int((~np.isfinite(played.rewards)).sum())
    if bad:
        claim = f"the reward is NaN or infinite in {bad:,} of {len(played.rewards):,} steps of {played.who}"
        yield Sighting((Evidence("steps without a finite reward", float(bad), limit=0.0),), claim)


def find_wrong_ranking(played: PlayedEpisodes) -> Iterator[Sighting]:
    """Find failures that are paid as much as successes."""
    known = [episode for episode in played.episodes if episode.success is not None]
    paid = [float(episode.rewards.sum()) for episode in known]
    preflight = judge(paid, paid, [bool(episode.success) for episode in known])
    if preflight is not None:
        yield from RANKS_FAILURES.look(preflight)


def find_sparse_reward(played: PlayedEpisodes) -> Iterator[Sighting]:
    """Find episodes that all have the same return."""
    returns = np.array([episode.rewards.sum() for episode in played.episodes])
    if len(returns) > 1 and np.ptp(returns) <= 1e-9 * max(1.0, float(np.abs(returns).max())):
        episodes = f"all {len(returns)} episodes of {played.who} ({len(played.rewards):,} steps)"
        claim = f"{episodes} return {figure(float(returns[0]))}: there is nothing to learn from yet"
        yield Sighting((Evidence("spread of the returns", 0.0),), claim)


def find_scale(played: PlayedEpisodes) -> Iterator[Sighting]:
    """Find rewards that are far from order one."""
    sizes = np.abs(played.rewards[played.rewards != 0])
    if not len(sizes):
        return
    mean = float(sizes.mean())
    if not SMALL <= mean <= LARGE:
        limit = LARGE if mean > LARGE else SMALL
        claim = f"a paid step of {played.who} pays {figure(mean)} on average: learning rates are made for about 1"
        evidence = Evidence("mean size of a paid step", mean, limit=limit)
        tries = (f"multiply it by {1 / mean:.1g}",)
        yield Sighting((evidence,), claim, tries=tries, changes=({"env.normalize.reward": True},))


def find_spikes(played: PlayedEpisodes) -> Iterator[Sighting]:
    """Find a step that outweighs all others. An episode's last step may, because it pays for the outcome."""
    inner = np.abs(np.concatenate([episode.rewards[:-1] for episode in played.episodes]))
    paid = inner[inner > 0]
    if not len(paid):
        return
    largest = float(paid.max())
    ratio = largest / float(np.median(paid))
    if ratio > SPIKE:
        claim = f"its largest step ({figure(largest)}) is {figure(ratio)} times the typical one"
        yield Sighting((Evidence("largest step / typical step", ratio, limit=SPIKE),), claim)


def find_zero_terms(played: PlayedEpisodes) -> Iterator[Sighting]:
    """Find terms that were never paid."""
    for name in dict.fromkeys(name for episode in played.episodes for name in episode.terms):
        if not any(episode.terms[name].any() for episode in played.episodes if name in episode.terms):
            claim = f"term `{name}` was zero in every step of {played.who}"
            tries = (f"check that `{name}` can be reached, or drop it",)
            yield Sighting((Evidence(f"largest size of {name}", 0.0),), claim, tries=tries)


def find_incomplete_terms(played: PlayedEpisodes) -> Iterator[Sighting]:
    """Find terms that do not add up to the reward."""
    size = float(np.abs(played.rewards).mean())
    if not size or not any(episode.terms for episode in played.episodes):
        return
    totals = [np.sum([*episode.terms.values(), np.zeros(len(episode.rewards))], axis=0) for episode in played.episodes]
    missing = float(np.abs(played.rewards - np.concatenate(totals)).mean()) / size
    if missing > ADDS_UP:
        claim = f"the terms do not add up to the reward: {missing:.0%} of it is in none of them"
        yield Sighting((Evidence("share in no term", missing, limit=ADDS_UP),), claim)


NOT_FINITE: Rule[PlayedEpisodes] = Rule("reward_not_finite", "high", find_not_finite, GUARD_NUMBERS)
RULES: tuple[Rule[PlayedEpisodes], ...] = (
    Rule("reward_ranks_failures", "high", find_wrong_ranking, RANKS_FAILURES.tries),
    Rule("reward_sparse", "low", find_sparse_reward, SHAPE_REWARD),
    Rule("reward_scale", "low", find_scale),
    Rule("reward_unbounded", "medium", find_spikes, ("bound it: np.clip or np.tanh",)),
    Rule("term_zero", "low", find_zero_terms),
    Rule(
        "terms_incomplete",
        "low",
        find_incomplete_terms,
        ("report every part, with its weight: the sum of info['reward_terms'] is the reward",),
    ),
)
