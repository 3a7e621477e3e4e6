"""Findings on single calls: errors, results in the wrong form, values out of bounds, overwritten arrays, prints."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from rlx.diagnose.finding import Evidence, Severity
from rlx.diagnose.rule import Rule, Sighting
from rlx.envs.inspect.record import Inspection, Oddity
from rlx.number_format import figure

SLOW_SECONDS = 0.01

_KINDS: dict[str, tuple[str, Severity, str, str]] = {
    "raised": ("env_raises", "high", "{where} raised {shown}", "fix the line that it names"),
    "hangs": ("env_hangs", "high", "{where} had not returned after {shown}", "look for a loop that does not end"),
    "reset arguments": (
        "env_raises", "high", "{where} does not take seed and options: {shown}",
        "define `def reset(self, *, seed=None, options=None)`, and begin it with `super().reset(seed=seed)`",
    ),
    "reset tuple": ("api", "high", "reset returned {shown}, not (observation, info)", "return observation, info"),
    "step tuple": (
        "api", "high", "step returned {shown}, not (observation, reward, terminated, truncated, info)",
        "return observation, reward, terminated, truncated, info",
    ),
    "observation shape": (
        "obs_shape", "high", "{where} has {shown}", "give observation_space and the observation the same shape",
    ),
    "observation type": (
        "obs_type", "medium", "{where} is {shown}, not a NumPy array", "return np.asarray(…, dtype=space.dtype)",
    ),
    "dtype": ("obs_dtype", "low", "{where} is {shown}", "cast it: observation.astype(space.dtype)"),
    "outside": (
        "obs_outside_space", "high", "{where} was {shown}",
        "widen the bounds of observation_space, or clip or rescale the observation",
    ),
    "not finite": ("not_finite", "high", "{where} was {shown}", "find the division, root or overflow that causes it"),
    "aliased": (
        "obs_aliased", "high", "an observation changed after it was returned, at the next {where}: {shown}",
        "return a copy: the environment writes to the returned buffer again",
    ),
    "action changed": (
        "action_modified", "medium", "step changed the action that it received: {shown}", "copy the action first",
    ),
    "reward type": ("reward_type", "medium", "the reward is {shown}, not a number", "return float(reward)"),
    "flag type": ("api", "medium", "{where} is {shown}, not a bool", "return bool(…)"),
    "mask shape": ("masks", "high", "action_masks returned {shown}", "return one truth value per action"),
    "mask empty": ("masks", "high", "action_masks: {shown}", "end the episode if no action is allowed"),
}  # fmt: skip
"""Kind of oddity → rule, severity, claim, try."""


def find_oddities(kind: str, record: Inspection) -> Iterator[Sighting]:
    """Find oddities of one kind. Several places are one sighting, which names the most frequent one."""
    oddities = [oddity for oddity in record.oddities if oddity.kind == kind]
    if not oddities:
        return
    worst = max(oddities, key=lambda oddity: oddity.count)
    claim = _KINDS[kind][2].format(where=worst.where, shown=worst.shown)
    if kind == "outside" and len(oddities) > 1:
        claim += f", and so were {len(oddities) - 1} others"
    often = "once"
    if worst.count > 1:
        often = f"{worst.count:,} of {worst.of:,} calls"
    claim += f" (seed {worst.seed}, step {worst.step}, {worst.policy} policy; {often})"
    yield Sighting(tuple(map(_evidence, oddities)), claim)


def _evidence(oddity: Oddity) -> Evidence:
    what = f"{oddity.where}, {oddity.count} times"
    return Evidence(what, oddity.shown, steps=(oddity.step, oddity.step), seeds=(oddity.seed,))


def find_warnings(record: Inspection) -> Iterator[Sighting]:
    """Find what Gymnasium's own checks warn about."""
    for line in record.warnings:
        yield Sighting((Evidence("Gymnasium's passive checker", line),), line)


def find_prints(record: Inspection) -> Iterator[Sighting]:
    """Find an environment that prints."""
    if record.printed:
        lines = f"{len(record.printed):,} lines in {record.cost.steps:,} steps"
        evidence = Evidence("printed lines", len(record.printed))
        yield Sighting((evidence,), f"it prints: {lines}, first {record.printed[0][:60]!r}")


def find_slow_steps(record: Inspection) -> Iterator[Sighting]:
    """Find steps so slow that training will wait for them."""
    step = record.cost.step
    if step > SLOW_SECONDS:
        hours = figure(step * 1e6 / 3600)
        claim = f"a step takes {figure(step * 1e3)} ms: a million steps take {hours} hours"
        yield Sighting((Evidence("seconds per step", step, limit=SLOW_SECONDS),), claim)


RULES: tuple[Rule[Inspection], ...] = (
    *(Rule(id, severity, partial(find_oddities, kind), (tries,)) for kind, (id, severity, _, tries) in _KINDS.items()),
    Rule("gymnasium", "low", find_warnings, source="Gymnasium's passive checker"),
    Rule("prints", "low", find_prints, ("print nothing in step",)),
    Rule("slow_env", "low", find_slow_steps, ("env.num_envs with env.vectorization: async",)),
)
