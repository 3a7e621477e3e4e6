"""Findings on whole episodes: how they end, how they are rewarded, and what their observations show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlx.diagnose.env_checks.observation_order import find_moved_numbers
from rlx.diagnose.env_checks.reward_sign import find_sign_flip
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Rule, Sighting
from rlx.envs.inspect.record import ClockTrial, Episode, Inspection
from rlx.number_format import figure

LEAST_ENDS = 3
ENDLESS_STEPS = 1500
LATEST_STEP = 1000
"""Without a known time limit, rlx assumes that no episode lasts longer."""


def _ended(record: Inspection, *endings: str) -> list[Episode]:
    return [episode for episode in record.episodes if episode.ending in endings]


def _longest(episodes: list[Episode] | tuple[Episode, ...]) -> int:
    return max((len(episode) for episode in episodes), default=0)


def find_terminations_as_truncation(record: Inspection) -> Iterator[Sighting]:
    """Find truncations at no fixed step. A state that ends an episode is a termination."""
    truncated = _ended(record, "truncated")
    limit = record.horizon or _longest(truncated)
    early = [episode for episode in truncated if len(episode) < limit]
    lengths = sorted({len(episode) for episode in early})
    is_second_limit = len(early) > 1 and len(lengths) == 1
    if len(lengths) < (1 if record.horizon else 2) or is_second_limit:
        return
    terminated = len(_ended(record, "terminated"))
    known = ""
    if record.horizon:
        known = f" (the time limit is {record.horizon})"
    claim = (
        f"{len(early)} of {len(truncated)} truncated episodes ended after {lengths[0]} to {lengths[-1]} steps, "
        f"at no fixed limit{known}; {terminated} terminated"
    )
    evidence = tuple(
        Evidence(f"truncated, {episode.policy} policy", len(episode), limit=record.horizon, seeds=(episode.seed,))
        for episode in early[:5]
    )
    yield Sighting(evidence, claim, "medium" if terminated else "high")


def find_limits_as_termination(record: Inspection) -> Iterator[Sighting]:
    """Find terminations that pile up at one length: a time limit that is reported as a termination."""
    longest = _longest(record.episodes)
    at_limit = [episode for episode in _ended(record, "terminated", "both") if len(episode) == longest]
    is_known = record.horizon == longest
    least = 2 if is_known else LEAST_ENDS
    if longest < 5 or len(at_limit) < least or _ended(record, "truncated"):
        return
    if not is_known and (record.horizon is not None or _shows_time(at_limit)):
        return
    claim = (
        f"{len(at_limit)} episodes of different policies were terminated after exactly {longest} steps, none was "
        "longer, none was truncated"
    )
    if is_known:
        claim += ", and that is the time limit"
    evidence = tuple(
        Evidence(f"terminated, {episode.policy} policy", len(episode), seeds=(episode.seed,))
        for episode in at_limit[:5]
    )
    yield Sighting(evidence, claim, "high" if is_known else "medium")


def _shows_time(episodes: list[Episode]) -> bool:
    """Say whether a number of the observation grows or shrinks evenly through every episode."""
    steady = np.ones(episodes[0].observations.shape[1], dtype=bool)
    for episode in episodes:
        changes = np.diff(episode.observations, axis=0)
        steady &= (np.abs(changes - changes[0]) < 1e-6).all(axis=0) & (np.abs(changes[0]) > 0)
    return bool(steady.any())


def find_endless_episodes(record: Inspection) -> Iterator[Sighting]:
    """Find an environment without a time limit in which no episode ended."""
    longest = _longest(record.episodes)
    has_end = len(_ended(record, "cut")) < len(record.episodes)
    if record.horizon is None and not has_end and longest >= ENDLESS_STEPS:
        claim = f"no episode ended: the longest was stopped after {longest:,} steps, without a time limit"
        yield Sighting((Evidence("steps of the longest episode", longest),), claim)


def _clock_changes(record: Inspection) -> list[ClockTrial]:
    """Return the steps that were rewarded differently when only a clock was moved."""
    latest = record.horizon or LATEST_STEP
    same = [trial for trial in record.clocks if trial.is_same_outcome and trial.reward != trial.reward_moved]
    return [trial for trial in same if trial.step + trial.moved_by <= latest]


def _clock_claim(trial: ClockTrial) -> str:
    return (
        f"the same step was rewarded with {figure(trial.reward)}, and with {figure(trial.reward_moved)} when only "
        f"{trial.clock} was {figure(trial.moved_by)} steps further"
    )


def _clock_evidence(trial: ClockTrial) -> Evidence:
    what = f"reward with {trial.clock} {figure(trial.moved_by)} steps further"
    return Evidence(what, trial.reward_moved, limit=trial.reward, steps=(trial.step, trial.step), seeds=(trial.seed,))


def find_sign_flips(record: Inspection) -> Iterator[Sighting]:
    """Find rewards that change their sign late in an episode."""
    turned = [trial for trial in _clock_changes(record) if trial.reward * trial.reward_moved < 0]
    if turned:
        claim = f"{_clock_claim(turned[0])} (seed {turned[0].seed}, step {turned[0].step})"
        yield Sighting(tuple(map(_clock_evidence, turned[:5])), claim)
        return
    flip = find_sign_flip(record)
    if flip is not None:
        claim = (
            f"from step {flip.step} on, rewards have the opposite sign of earlier ones: a fit explains "
            f"{max(flip.explained, 0):.0%} of them unchanged, and {flip.explained_negated:.0%} if negated from there"
        )
        evidence = Evidence("explained when negated", flip.explained_negated, limit=flip.explained)
        yield Sighting((evidence,), claim)


def find_time_dependence(record: Inspection) -> Iterator[Sighting]:
    """Find rewards that depend on the time, if their sign does not change."""
    changes = _clock_changes(record)
    if changes and not list(find_sign_flips(record)):
        claim = f"{_clock_claim(changes[0])}: the reward depends on the time"
        yield Sighting((_clock_evidence(changes[0]),), claim)


def find_zero_rewards(record: Inspection) -> Iterator[Sighting]:
    """Find an environment that never paid a reward."""
    if record.episodes and not any(episode.rewards.any() for episode in record.episodes):
        steps = sum(len(episode) for episode in record.episodes)
        claim = f"all {steps:,} rewards of {len(record.episodes)} episodes were 0: the reward is very sparse or missing"
        yield Sighting((Evidence("different rewards", 1, limit=float(steps)),), claim)


def find_wrong_sign(record: Inspection) -> Iterator[Sighting]:
    """Find a random policy that counts as solved, or rewards that can never count as solved."""
    played = [episode for episode in record.played("random") if episode.ending != "cut"]
    if record.threshold is None or len(played) < LEAST_ENDS:
        return
    mean = float(np.mean([episode.rewards.sum() for episode in played]))
    rewards = np.concatenate([episode.rewards for episode in record.episodes])
    best = float(rewards.max())
    claim = ""
    if mean > record.threshold:
        claim = f"a random policy's return, {figure(mean)}, is above what counts as solved, {figure(record.threshold)}"
    elif best == float(rewards.min()) and best < 0 < record.threshold:
        claim = f"every reward was {figure(best)}, and a return of {figure(record.threshold)} counts as solved"
    if claim:
        yield Sighting((Evidence("random policy's return", mean, limit=record.threshold),), claim)


def find_shuffled_observations(record: Inspection) -> Iterator[Sighting]:
    """Find observations whose numbers change places between episodes."""
    for twin in record.twins:
        difference = twin.difference
        if difference is not None and difference.is_permutation:
            values = f"{difference.one} and {difference.other}"
            steps = (difference.step, difference.step)
            evidence = Evidence(difference.what, values, steps=steps, seeds=(twin.seed,))
            yield Sighting((evidence,), f"the same seed gave the same numbers in another order {twin.how}: {values}")
            return
    moved = find_moved_numbers(record)
    if moved is not None:
        claim = (
            f"the numbers of the observation change places between episodes: {moved.share:.0%} of those that move, "
            f"over {moved.pairs} pairs of episodes with the same actions; {moved.example}"
        )
        yield Sighting((Evidence("share of numbers that moved", moved.share),), claim)


def find_constant_observations(record: Inspection) -> Iterator[Sighting]:
    """Find numbers of the observation that never changed."""
    if record.is_image or not record.episodes:
        return
    observations = np.concatenate([episode.observations for episode in record.episodes])
    count = observations.shape[1]
    still = np.flatnonzero((observations == observations[0]).all(axis=0))
    if not len(still):
        return
    names = ", ".join([record.columns[index].name for index in still[:5]] + ["…"] * (len(still) > 5))
    claim = f"{len(still)} of {count} numbers never changed in {len(observations):,} observations: {names}"
    is_blind = len(still) == count and any(len(episode) > 1 for episode in record.episodes)
    evidence = Evidence("numbers that never changed", len(still), limit=float(count))
    yield Sighting((evidence,), claim, "medium" if is_blind else "low")


LOOK_AT_STEPS = ("look where step uses the number of steps",)
RULES: tuple[Rule[Inspection], ...] = (
    Rule(
        "termination_as_truncation",
        "high",
        find_terminations_as_truncation,
        ("return terminated=True if the state ends the episode; truncated is for time limits",),
    ),
    Rule(
        "time_limit_as_termination",
        "medium",
        find_limits_as_termination,
        ("return truncated=True, terminated=False at a time limit", "or put the time left into the observation"),
    ),
    Rule("never_ends", "medium", find_endless_episodes, ("wrapper time_limit: {max_steps: 500}",)),
    Rule("reward_sign_flips", "high", find_sign_flips, LOOK_AT_STEPS),
    Rule("reward_depends_on_time", "low", find_time_dependence, ("wrapper time_aware: the observation then shows it",)),
    Rule("reward_zero", "low", find_zero_rewards, ("play longer with --seconds 60", "reward progress")),
    Rule(
        "reward_sign",
        "medium",
        find_wrong_sign,
        ("check the reward's sign", "or the reward threshold that it is registered with"),
    ),
    Rule(
        "obs_shuffled",
        "high",
        find_shuffled_observations,
        ("build the observation in one fixed order", "do not iterate over a set, or a dict filled in another order"),
    ),
    Rule("obs_constant", "low", find_constant_observations, ("leave out useless numbers, or fix what should change",)),
)


def returns(record: Inspection) -> dict[str, dict[str, float]]:
    """Return the mean return and length of every kind of policy that was played to the end, and the best return."""
    groups: dict[str, list[Episode]] = {}
    for episode in record.episodes:
        is_whole = episode.ending != "cut" or record.horizon is None
        if is_whole and episode.policy not in ("trial", "script", "curious"):
            groups.setdefault(episode.policy, []).append(episode)
    figures = {}
    for name, episodes in groups.items():
        sums = [float(episode.rewards.sum()) for episode in episodes]
        figures[name] = {
            "episodes": len(sums),
            "return": float(np.mean(sums)),
            "best": max(sums),
            "length": float(np.mean([len(episode) for episode in episodes])),
        }
    return figures
