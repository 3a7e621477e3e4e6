"""Findings on single calls: what was raised, returned in the wrong form, out of bounds, overwritten or printed."""

from __future__ import annotations

from collections.abc import Iterator

from rlx.diagnose.finding import Evidence, Finding, Severity
from rlx.envs.inspect_record import Inspection, Oddity
from rlx.figures import figure

SLOW_SECONDS = 0.01

_KINDS: dict[str, tuple[str, Severity, str, str]] = {
    "raised": ("env_raises", "high", "{where} raised {shown}", "mend the line it names"),
    "hangs": ("env_hangs", "high", "{where} had not returned after {shown}", "look for a loop that does not end"),
    "reset tuple": ("api", "high", "reset returned {shown}, not (observation, info)", "return observation, info"),
    "step tuple": (
        "api", "high", "step returned {shown}, not (observation, reward, terminated, truncated, info)",
        "return observation, reward, terminated, truncated, info",
    ),
    "observation shape": (
        "obs_shape", "high", "{where} has {shown}", "make observation_space and what is returned the same shape",
    ),
    "observation type": (
        "obs_type", "medium", "{where} is {shown}, not a NumPy array", "return np.asarray(…, dtype=space.dtype)",
    ),
    "dtype": ("obs_dtype", "low", "{where} is {shown}", "cast it: observation.astype(space.dtype)"),
    "outside": (
        "obs_outside_space", "high", "{where} was {shown}",
        "widen the bounds of observation_space, or clip or rescale the observation",
    ),
    "not finite": ("not_finite", "high", "{where} was {shown}", "find the division, root or overflow that makes it"),
    "aliased": (
        "obs_aliased", "high", "an observation changed after it was returned, at the next {where}: {shown}",
        "return a copy: the buffer that is returned is written to again",
    ),
    "action changed": (
        "action_modified", "medium", "step changed the action it was given: {shown}", "copy the action first",
    ),
    "reward type": ("reward_type", "medium", "the reward is {shown}, not a number", "return float(reward)"),
    "flag type": ("api", "medium", "{where} is {shown}, not a bool", "return bool(…)"),
    "mask shape": ("masks", "high", "action_masks returned {shown}", "return one truth value an action"),
    "mask empty": ("masks", "high", "action_masks: {shown}", "end the episode where nothing is allowed"),
}  # fmt: skip


def calls(record: Inspection) -> Iterator[Finding]:
    """Judge every oddity by its kind; those of one kind in several places are one finding."""
    groups: dict[str, list[Oddity]] = {}
    for oddity in record.oddities:
        groups.setdefault(oddity.kind, []).append(oddity)
    for kind, group in groups.items():
        rule, severity, claim, attempt = _KINDS[kind]
        worst = max(group, key=lambda oddity: oddity.count)
        said = claim.format(where=worst.where, shown=worst.shown)
        others = f", and so were {len(group) - 1} others" if kind == "outside" and len(group) > 1 else ""
        place = f"seed {worst.seed}, step {worst.step}, {worst.policy} policy"
        often = f"{worst.count:,} of {worst.of:,} calls" if worst.count > 1 else "once"
        yield Finding(rule, severity, f"{said}{others} ({place}; {often})", tuple(map(_evidence, group)), (attempt,))


def _evidence(oddity: Oddity) -> Evidence:
    return Evidence(
        f"{oddity.where}, {oddity.count} times", oddity.shown, steps=(oddity.step, oddity.step), seeds=(oddity.seed,)
    )


def passive(record: Inspection) -> Iterator[Finding]:
    """Pass on what Gymnasium's own checks say."""
    for line in record.warnings:
        yield Finding("gymnasium", "low", line, (Evidence("Gymnasium's passive checker", line),))


def printing(record: Inspection) -> Iterator[Finding]:
    if record.printed:
        claim = (
            f"it prints: {len(record.printed):,} lines in {record.cost.steps:,} steps, first {record.printed[0][:60]!r}"
        )
        yield Finding(
            "prints", "low", claim, (Evidence("printed lines", len(record.printed)),), ("print nothing in step",)
        )


def cost(record: Inspection) -> Iterator[Finding]:
    """Say where stepping will be what training waits for."""
    step = record.cost.step
    if step > SLOW_SECONDS:
        hours = figure(step * 1e6 / 3600)
        claim = f"a step takes {figure(step * 1e3)} ms: a million steps take {hours} hours"
        evidence = Evidence("seconds a step", step, limit=SLOW_SECONDS)
        yield Finding("slow_env", "low", claim, (evidence,), ("env.num_envs with env.vectorization: async",))


RULES = (calls, passive, printing, cost)
