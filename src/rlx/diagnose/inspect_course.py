"""Findings on the course of episodes: how they end, what they are rewarded with, what an observation shows of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from rlx.diagnose.finding import Evidence, Finding, Severity
from rlx.diagnose.inspect_order import moved
from rlx.diagnose.inspect_reward import flip
from rlx.envs.inspect_record import ClockTrial, Episode, Inspection
from rlx.figures import figure

LEAST_ENDS = 3
ENDLESS_STEPS = 1500
LATEST_STEP = 1000
"""Where no time limit is known, later than this no episode is thought to be."""


def _ended(record: Inspection, ending: str) -> list[Episode]:
    return [episode for episode in record.episodes if episode.ending == ending]


def truncation(record: Inspection) -> Iterator[Finding]:
    """Find truncations that come at no fixed step: what ends an episode by its state is a termination."""
    cut = _ended(record, "truncated")
    limit = record.horizon or max((len(episode) for episode in cut), default=0)
    early = [episode for episode in cut if len(episode) < limit]
    lengths = sorted({len(episode) for episode in early})
    if len(lengths) < (1 if record.horizon else 2) or _is_own_limit(early):
        return
    terminated = len(_ended(record, "terminated"))
    known = f" (the time limit is {record.horizon})" if record.horizon else ""
    claim = (
        f"{len(early)} of {len(cut)} truncated episodes ended after {lengths[0]} to {lengths[-1]} steps, "
        f"at no fixed limit{known}; {terminated} terminated"
    )
    evidence = tuple(
        Evidence(f"truncated, {one.policy} policy", len(one), limit=record.horizon, seeds=(one.seed,))
        for one in early[:5]
    )
    tries = ("return terminated=True where the state ends the episode; truncated is for time limits",)
    yield Finding("termination_as_truncation", "medium" if terminated else "high", claim, evidence, tries)


def _is_own_limit(early: list[Episode]) -> bool:
    """Say whether several truncations at one length, and no other, are a second time limit."""
    return len(early) > 1 and len({len(episode) for episode in early}) == 1


def time_limit(record: Inspection) -> Iterator[Finding]:
    """Find terminations that pile up at one length: a time limit that is reported as the end of the world."""
    ends = [*_ended(record, "terminated"), *_ended(record, "both")]
    longest = max((len(episode) for episode in record.episodes), default=0)
    at_limit = [episode for episode in ends if len(episode) == longest]
    is_known = record.horizon == longest
    is_odd = longest >= 5 and len(at_limit) >= (2 if is_known else LEAST_ENDS) and not _ended(record, "truncated")
    if not is_odd or (not is_known and (record.horizon is not None or _shows_time(at_limit))):
        return
    claim = (
        f"{len(at_limit)} episodes of different policies were terminated after exactly {longest} steps, none was "
        f"longer, none was truncated{', and that is the time limit' if is_known else ''}"
    )
    evidence = tuple(Evidence(f"terminated, {one.policy} policy", len(one), seeds=(one.seed,)) for one in at_limit[:5])
    tries = ("return truncated=True, terminated=False at a time limit", "or put the time left into the observation")
    yield Finding("time_limit_as_termination", "high" if is_known else "medium", claim, evidence, tries)


def _shows_time(episodes: list[Episode]) -> bool:
    """Say whether a number of the observation grows or shrinks evenly through every episode."""
    steady = np.ones(episodes[0].observations.shape[1], dtype=bool)
    for episode in episodes:
        changes = np.diff(episode.observations, axis=0)
        steady &= (np.abs(changes - changes[0]) < 1e-6).all(axis=0) & (np.abs(changes[0]) > 0)
    return bool(steady.any())


def endless(record: Inspection) -> Iterator[Finding]:
    longest = max((len(episode) for episode in record.episodes), default=0)
    has_end = any(episode.ending != "cut" for episode in record.episodes)
    if record.horizon is None and not has_end and longest >= ENDLESS_STEPS:
        claim = f"no episode ended: the longest was stopped after {longest:,} steps, and there is no time limit"
        evidence = Evidence("steps of the longest episode", longest)
        yield Finding("never_ends", "medium", claim, (evidence,), ("wrapper time_limit: {max_steps: 500}",))


def reward_over_time(record: Inspection) -> Iterator[Finding]:
    """Find rewards that depend on how late it is, beside what the observation shows."""
    latest = record.horizon or LATEST_STEP
    changed = [
        trial
        for trial in record.clocks
        if trial.is_same_outcome
        and abs(trial.reward - trial.reward_moved) > 0
        and trial.step + trial.moved_by <= latest
    ]
    turned = [trial for trial in changed if trial.reward * trial.reward_moved < 0]
    found = flip(record)
    if turned:
        one = turned[0]
        claim = (
            f"the same step was rewarded with {figure(one.reward)}, and with {figure(one.reward_moved)} when only "
            f"{one.clock} was {figure(one.moved_by)} steps further (seed {one.seed}, step {one.step})"
        )
        evidence = tuple(map(_moved_reward, turned[:5]))
        yield Finding("reward_sign_flips", "high", claim, evidence, ("look where step uses the number of steps",))
    elif found is not None:
        claim = (
            f"from step {found.step} on rewards are those of earlier steps with the other sign: a fit explains "
            f"{max(found.explained, 0):.0%} of them as they are, {found.explained_negated:.0%} when negated from there"
        )
        evidence = (Evidence("explained when negated", found.explained_negated, limit=found.explained),)
        yield Finding("reward_sign_flips", "high", claim, evidence, ("look where step uses the number of steps",))
    elif changed:
        one = changed[0]
        claim = (
            f"the same step was rewarded with {figure(one.reward)}, and with {figure(one.reward_moved)} when only "
            f"{one.clock} was {figure(one.moved_by)} steps further: the reward depends on the time"
        )
        evidence = (_moved_reward(one),)
        yield Finding(
            "reward_depends_on_time", "low", claim, evidence, ("wrapper time_aware: the observation then shows it",)
        )


def _moved_reward(trial: ClockTrial) -> Evidence:
    what = f"reward with {trial.clock} {figure(trial.moved_by)} steps further"
    return Evidence(what, trial.reward_moved, limit=trial.reward, steps=(trial.step, trial.step), seeds=(trial.seed,))


def rewards(record: Inspection) -> Iterator[Finding]:
    """Say where all rewards are the same, and where a threshold does not fit them."""
    if not record.episodes:
        return
    every = np.concatenate([episode.rewards for episode in record.episodes])
    evidence = Evidence("different rewards", len(np.unique(every)), limit=float(len(every)))
    if not every.any():
        claim = (
            f"all {len(every):,} rewards of {len(record.episodes)} episodes were 0: it is very sparse, or never given"
        )
        yield Finding("reward_zero", "low", claim, (evidence,), ("play on with --seconds 60", "reward progress"))
    yield from _threshold(record)


def _threshold(record: Inspection) -> Iterator[Finding]:
    """Compare the threshold of being solved with what chance gets: above it, the sign is likely wrong."""
    played = [episode for episode in record.played("random") if episode.ending != "cut"]
    if record.threshold is None or len(played) < LEAST_ENDS:
        return
    mean = float(np.mean([episode.rewards.sum() for episode in played]))
    best, worst = (float(pick([pick(episode.rewards) for episode in record.episodes])) for pick in (max, min))
    evidence = (Evidence("random policy's return", mean, limit=record.threshold),)
    tries = ("look at the reward's sign", "or at the reward threshold it is registered with")
    if mean > record.threshold:
        claim = f"a random policy's return, {figure(mean)}, is above what counts as solved, {figure(record.threshold)}"
        yield Finding("reward_sign", "medium", claim, evidence, tries)
    elif best == worst and best < 0 < record.threshold:
        claim = f"every reward was {figure(best)}, and a return of {figure(record.threshold)} counts as solved"
        yield Finding("reward_sign", "medium", claim, evidence, tries)


def order(record: Inspection) -> Iterator[Finding]:
    """Find observations whose numbers change places between episodes."""
    permuted = [twin for twin in record.twins if twin.difference is not None and twin.difference.is_permutation]
    tries = (
        "lay out the observation in one fixed order",
        "do not iterate over a set, or a dict filled in another order",
    )
    if permuted:
        odd, twin = permuted[0].difference, permuted[0]
        assert odd is not None
        claim = f"the same seed gave the same numbers in another order {twin.how}: {odd.one} and {odd.other}"
        evidence = Evidence(odd.what, f"{odd.one} and {odd.other}", steps=(odd.step, odd.step), seeds=(twin.seed,))
        yield Finding("obs_shuffled", "high", claim, (evidence,), tries)
        return
    found = moved(record)
    if found is not None:
        claim = (
            f"the numbers of the observation change places between episodes: {found.share:.0%} of those that move, "
            f"over {found.pairs} pairs of episodes with the same actions; {found.example}"
        )
        yield Finding("obs_shuffled", "high", claim, (Evidence("share of numbers that moved", found.share),), tries)


def constant(record: Inspection) -> Iterator[Finding]:
    """Find numbers of the observation that never changed."""
    if record.is_image or not record.episodes:
        return
    every = np.concatenate([episode.observations for episode in record.episodes])
    still = [index for index in range(every.shape[1]) if (every[:, index] == every[0, index]).all()]
    if not still:
        return
    names = ", ".join(record.columns[index].name for index in still[:5]) + (", …" if len(still) > 5 else "")
    evidence = Evidence("numbers that never changed", len(still), limit=float(every.shape[1]))
    claim = f"{len(still)} of {every.shape[1]} numbers never changed in {len(every):,} observations: {names}"
    is_blind = len(still) == every.shape[1] and any(len(episode) > 1 for episode in record.episodes)
    severity: Severity = "medium" if is_blind else "low"
    yield Finding(
        "obs_constant", severity, claim, (evidence,), ("leave out what says nothing, or mend what should move",)
    )


RULES = (truncation, time_limit, endless, reward_over_time, rewards, order, constant)


def returns(record: Inspection) -> dict[str, dict[str, float]]:
    """Return the mean return and length of every kind of policy that was played to the end, and the best linear one."""
    groups: dict[str, list[Episode]] = {}
    for episode in record.episodes:
        if episode.ending != "cut" or record.horizon is None:
            groups.setdefault(episode.policy, []).append(episode)
    kinds = Counter({name: len(group) for name, group in groups.items() if name not in ("trial", "script", "curious")})
    found = {}
    for name in kinds:
        sums = [float(episode.rewards.sum()) for episode in groups[name]]
        lengths = [len(episode) for episode in groups[name]]
        found[name] = {
            "episodes": len(sums),
            "return": float(np.mean(sums)),
            "best": max(sums),
            "length": float(np.mean(lengths)),
        }
    return found
