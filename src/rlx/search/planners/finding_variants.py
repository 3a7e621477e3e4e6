"""Variants of a run's config from its findings: each change of a finding is one variant, the likeliest cure first.

The rules and their limits are those of `rlx diagnose`; there is no second set. Findings come in the order of the
report, causes before symptoms. The first change of every finding comes before the second of any. A variant that another
one repeats, or that moves a key against a variant before it, is left out with the reason. If there is room, the first
variants on different keys are also tried together: a small factorial design shows whether they add up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from rlx.diagnose.finding import Finding
from rlx.search.space import Choice, Parameter, Space, Values, plain_identity

Change = Mapping[str, Any]
Refusal = Callable[[Change], str]
"""Says why a change cannot be tried; empty if it can."""
FACTORIAL_KEYS = 3


@dataclass(frozen=True)
class Variant:
    """One change worth a training: the finding behind it, why it should help, and the rule that says so."""

    changes: Change
    signal: str
    reason: str
    rule: str
    expected: str = ""
    source: str = "rules"

    @property
    def identity(self) -> object:
        return plain_identity(dict(self.changes))

    def document(self) -> dict[str, Any]:
        """Return the variant as JSON-able data."""
        return {**vars(self), "changes": dict(self.changes)}


Cause = Literal["another variant", "refused", "no room"]


@dataclass(frozen=True)
class LeftOut:
    """A variant that is not tried, and why; code reads `cause`, people read `reason`."""

    variant: Variant
    cause: Cause
    reason: str

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {"changes": dict(self.variant.changes), "rule": self.variant.rule, "reason": self.reason}


@dataclass(frozen=True)
class VariantPlan:
    """The variants in their order, and those that were left out with the reason."""

    variants: tuple[Variant, ...]
    left_out: tuple[LeftOut, ...] = ()


def from_findings(findings: Sequence[Finding], *, describe: Callable[[str], str]) -> list[Variant]:
    """Return one variant per change of a finding; `describe` gives what a rule is based on."""
    variants = []
    rounds = max((len(finding.changes) for finding in findings), default=0)
    for index in range(rounds):
        for finding in findings:
            for change in finding.changes[index : index + 1]:
                expected = f"the finding `{finding.rule}` goes away and the score rises"
                variants.append(Variant(change, finding.claim, describe(finding.rule), finding.rule, expected))
    return variants


def cross_checked(
    variants: Sequence[Variant], settings: Mapping[str, Any], *, refusal: Refusal, most: int
) -> VariantPlan:
    """Return the first `most` variants without repeats and contradictions; `settings` is the present config."""
    kept: list[Variant] = []
    left_out: list[LeftOut] = []
    for variant in variants:
        if objection := _objection(variant, kept, settings):
            left_out.append(LeftOut(variant, "another variant", objection))
        elif refused := refusal(variant.changes):
            left_out.append(LeftOut(variant, "refused", refused))
        elif len(kept) >= most:
            left_out.append(LeftOut(variant, "no room", f"there is room for {most} variants"))
        else:
            kept.append(variant)
    return VariantPlan(tuple(kept), tuple(left_out))


def _objection(variant: Variant, kept: Sequence[Variant], settings: Mapping[str, Any]) -> str:
    for other in kept:
        if other.identity == variant.identity:
            return f"`{other.rule}` proposes the same"
        for key, value in variant.changes.items():
            if key in other.changes and _is_opposite(settings.get(key), other.changes[key], value):
                return f"`{other.rule}` comes first and moves `{key}` the other way"
    return ""


def _is_opposite(base: Any, one: Any, other: Any) -> bool:
    """Say whether two numbers lie on different sides of the present value."""
    numbers = [value for value in (base, one, other) if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return len(numbers) == 3 and (numbers[1] - numbers[0]) * (numbers[2] - numbers[0]) < 0


def with_combinations(plan: VariantPlan, *, most: int) -> VariantPlan:
    """Add combinations of the first variants on different keys while there is room for more variants."""
    singles = _on_different_keys(plan.variants)
    found = list(plan.variants)
    for size in range(2, len(singles) + 1):
        for chosen in combinations(singles, size):
            if len(found) >= most:
                return VariantPlan(tuple(found), plan.left_out)
            changes = {key: value for variant in chosen for key, value in variant.changes.items()}
            rules = " + ".join(dict.fromkeys(variant.rule for variant in chosen))
            signal = "the same as for its parts"
            reason = "tried together: shows whether the changes add up"
            found.append(Variant(changes, signal, reason, rules, "at least the better of its parts", "factorial"))
    return VariantPlan(tuple(found), plan.left_out)


def _on_different_keys(variants: Sequence[Variant]) -> list[Variant]:
    chosen: list[Variant] = []
    keys: set[str] = set()
    for variant in variants:
        if not keys & set(variant.changes) and len(chosen) < FACTORIAL_KEYS:
            chosen.append(variant)
            keys |= set(variant.changes)
    return chosen


def space_of_variants(variants: Sequence[Variant], settings: Mapping[str, Any]) -> tuple[Space, list[Values]]:
    """Return the space that the variants span, and each variant as a config in it, with the present config first."""
    values: dict[str, list[Any]] = {}
    for variant in variants:
        for key, value in variant.changes.items():
            known = values.setdefault(key, [settings.get(key)])
            if Choice(tuple(known)).unit(value) is None:
                known.append(value)
    space = Space(tuple(Parameter(key, Choice(tuple(known))) for key, known in values.items()))
    base = {key: settings.get(key) for key in values}
    return space, [base, *({**base, **variant.changes} for variant in variants)]
