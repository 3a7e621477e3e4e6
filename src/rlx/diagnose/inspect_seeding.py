"""Findings on chance: seeds that are ignored, state that outlives an episode or is shared between instances."""

from __future__ import annotations

from collections.abc import Iterator

from rlx.diagnose.finding import Evidence, Finding, Severity
from rlx.envs.inspect_record import AGAIN, BESIDE, GLOBALS, LATER, TOUCHED, VECTOR, WORLDS, Inspection, Twin

_RULES: dict[str, tuple[str, Severity, str, str]] = {
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
        "set every attribute anew in reset; statistics that shall outlive episodes belong outside the environment",
    ),
    TOUCHED: (
        "obs_shared", "medium", "writing into the observation changed the environment: another {what}",
        "return a copy of the state, not the state",
    ),
    BESIDE: (
        "shared_state", "high", "the same seed and actions gave another {what} while a second instance was stepped",
        "keep state in self, not in the class, the module or a default argument",
    ),
    WORLDS: (
        "worlds_interfere", "high", "another action in the first world gave another {what} in the others",
        "index arrays by world, and draw chance for all worlds whatever their actions are",
    ),
    VECTOR: (
        "vector_differs", "high", "in a vector of two the same seed and actions gave another {what} than alone",
        "keep state in self, not in the class, the module or a default argument",
    ),
}  # fmt: skip


def twins(record: Inspection) -> Iterator[Finding]:
    """Judge episodes that should have been the same; of a permuted observation the order is the finding."""
    odd = {twin.how for twin in record.twins if twin.difference is not None}
    is_random = bool(odd & {AGAIN, GLOBALS})
    for twin in record.twins:
        is_consequence = is_random and twin.how in (BESIDE, VECTOR)
        if twin.difference is not None and not twin.difference.is_permutation and not is_consequence:
            yield _differs(twin)


def _differs(twin: Twin) -> Finding:
    assert twin.difference is not None
    rule, severity, claim, attempt = _RULES[twin.how]
    odd = twin.difference
    said = claim.format(what=odd.what) + (", by rounding only" if odd.is_rounding else "")
    severity = "low" if odd.is_rounding else severity
    evidence = Evidence(
        f"{odd.what}, {twin.how}", f"{odd.one} and {odd.other}", steps=(odd.step, odd.step), seeds=(twin.seed,)
    )
    return Finding(
        rule,
        severity,
        f"{said} (seed {twin.seed}, step {odd.step}: {odd.one} and {odd.other})",
        (evidence,),
        (attempt,),
    )


def same_for_all(record: Inspection) -> Iterator[Finding]:
    """Judge seeds that make no difference: a defect where chance is drawn all the same, else a fact."""
    seeds = record.seeds
    if seeds is None:
        return
    is_swallowed = seeds.starts == 1 and (seeds.inner_starts or 0) > 1
    if seeds.courses > 1 and not is_swallowed:
        return
    evidence = Evidence("different episodes", 1, limit=seeds.tried)
    if is_swallowed or seeds.arrived is not None:
        why = (
            "while the environment inside the wrappers heeds them" if is_swallowed else f"that of seed {seeds.arrived}"
        )
        claim = f"{seeds.tried} seeds gave one and the same start, {why}"
        yield Finding(
            "seed_ignored", "high", claim, (evidence,), ("pass the seed of reset on: super().reset(seed=seed)",)
        )
    else:
        claim = f"{seeds.tried} seeds gave one and the same episode under the same actions: it is deterministic"
        yield Finding(
            "deterministic", "low", claim, (evidence,), ("nothing, if that is meant: episodes differ by actions only",)
        )


RULES = (twins, same_for_all)
