"""Findings on randomness: seeds that are ignored, state that survives an episode or is shared between instances."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from rlx.diagnose.finding import Evidence, Severity
from rlx.diagnose.rule import Rule, Sighting
from rlx.envs.inspect.record import AGAIN, BESIDE, GLOBALS, LATER, TOUCHED, VECTOR, WORLDS, Inspection

KEEP_STATE_IN_SELF = "keep state in self, not in the class, the module or a default argument"
_CONDITIONS: dict[str, tuple[str, Severity, str, str]] = {
    AGAIN: (
        "seed_ignored", "high", "the same seed and actions gave another {what} in a new instance",
        "call super().reset(seed=seed), pass the seed on through wrappers, draw only from self.np_random",
    ),
    GLOBALS: (
        "global_generators", "high", "the same seed and actions gave another {what} under another state of Python's or "
        "NumPy's global random generator", "draw from self.np_random instead of random or np.random",
    ),
    LATER: (
        "state_leaks", "medium", "the same seed and actions gave another {what} after other episodes were played",
        "set every attribute again in reset; keep statistics over episodes outside the environment",
    ),
    TOUCHED: (
        "obs_shared", "medium", "writing into the observation changed the environment: another {what}",
        "return a copy of the state, not the state",
    ),
    BESIDE: (
        "shared_state", "high", "the same seed and actions gave another {what} while a second instance was stepped",
        KEEP_STATE_IN_SELF,
    ),
    WORLDS: (
        "worlds_interfere", "high", "another action in the first world gave another {what} in the others",
        "index arrays by world, and draw random numbers for all worlds whatever their actions are",
    ),
    VECTOR: (
        "vector_differs", "high", "in a vector of two the same seed and actions gave another {what} than alone",
        KEEP_STATE_IN_SELF,
    ),
}  # fmt: skip
"""Condition under which an episode was repeated → rule, severity, claim, try."""


def find_differences(condition: str, record: Inspection) -> Iterator[Sighting]:
    """Find episodes that should have been the same. A permuted observation has its own rule."""
    different = {twin.how for twin in record.twins if twin.difference is not None}
    if condition in (BESIDE, VECTOR) and different & {AGAIN, GLOBALS}:
        return  # a consequence of the randomness that those rules report
    if condition == VECTOR and not record.is_stackable:
        return  # Gymnasium returns a tuple of such observations, not an array
    for twin in record.twins:
        difference = twin.difference
        if twin.how != condition or difference is None or difference.is_permutation:
            continue
        claim = _CONDITIONS[condition][2].format(what=difference.what)
        severity: Severity | None = None
        if difference.is_rounding:
            claim += ", by rounding only"
            severity = "low"
        values = f"{difference.one} and {difference.other}"
        steps = (difference.step, difference.step)
        evidence = Evidence(f"{difference.what}, {twin.how}", values, steps=steps, seeds=(twin.seed,))
        yield Sighting((evidence,), f"{claim} (seed {twin.seed}, step {difference.step}: {values})", severity)


def _has_one_course(record: Inspection) -> bool:
    return record.seeds is not None and (record.seeds.courses <= 1 or _is_swallowed(record))


def _is_swallowed(record: Inspection) -> bool:
    """Say whether a wrapper swallows the seed that the inner environment would use."""
    seeds = record.seeds
    return seeds is not None and seeds.starts == 1 and (seeds.inner_starts or 0) > 1


def find_ignored_seeds(record: Inspection) -> Iterator[Sighting]:
    """Find seeds without an effect although random numbers are drawn."""
    seeds = record.seeds
    if seeds is None or not _has_one_course(record) or not (_is_swallowed(record) or seeds.arrived is not None):
        return
    why = f"that of seed {seeds.arrived}"
    if _is_swallowed(record):
        why = "although the environment inside the wrappers uses them"
    evidence = Evidence("different episodes", 1, limit=seeds.tried)
    yield Sighting((evidence,), f"{seeds.tried} seeds gave one and the same start, {why}")


def find_determinism(record: Inspection) -> Iterator[Sighting]:
    """Find an environment in which seeds make no difference because nothing is random."""
    seeds = record.seeds
    if seeds is None or not _has_one_course(record) or _is_swallowed(record) or seeds.arrived is not None:
        return
    claim = f"{seeds.tried} seeds gave one and the same episode under the same actions: it is deterministic"
    yield Sighting((Evidence("different episodes", 1, limit=seeds.tried),), claim)


RULES: tuple[Rule[Inspection], ...] = (
    *(Rule(id, severity, partial(find_differences, how), (tip,))
      for how, (id, severity, _, tip) in _CONDITIONS.items()),
    Rule("seed_ignored", "high", find_ignored_seeds, ("pass the seed of reset on: super().reset(seed=seed)",)),
    Rule("deterministic", "low", find_determinism, ("nothing, if that is meant: episodes differ by actions only",)),
)  # fmt: skip
