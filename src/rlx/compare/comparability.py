"""Why two arms cannot be compared: every reason that makes a verdict `invalid`, as pure checks on values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from rlx.compare.arms import Arm
from rlx.compare.code_version import NO_GIT
from rlx.compare.question import STANDARD, ComparisonQuestion
from rlx.config.diff import ConfigChange, diff

NOT_TRAINED = ("run_name", "seed", "seeds", "log", "stop", "resources", "checkpoint", "eval")
"""Config sections that name a run, its replicates or its outputs, and do not change what is learned."""
STEP_TOLERANCE = 0.05
"""Trainers round the budget up to whole rollouts. A larger difference in steps is a difference in budget."""
SEED_RANGES = {"search": range(0, 1000), "confirm": range(1000, 2**20)}
"""The training seeds that a study may use in each phase. Seeds used for searching never confirm a claim."""


@dataclass(frozen=True)
class Objection:
    """One reason against a comparison, and the command that fixes it if there is one.

    `is_budget` says that only the budgets differ, which may be the question itself.
    """

    reason: str
    command: str = ""
    is_budget: bool = False


def objections(
    base: Arm, new: Arm, *, is_replication: bool = False, question: ComparisonQuestion = STANDARD
) -> list[Objection]:
    """Return every reason why these two arms cannot be compared.

    A replication trains the same config again on other seeds, so it needs no difference between the arms.
    """
    checks: list[Callable[[Arm, Arm], Iterator[Objection]]] = [
        _nothing_scored, _uneven_steps if question.budgets_may_differ else _steps, _episode_counts, _versions,
        _no_effect,
    ]  # fmt: skip
    if not is_replication:
        checks.append(_unchanged)
    of_both = [objection for check in checks for objection in check(base, new)]
    return [*arm_objections(base, question=question), *arm_objections(new, question=question), *of_both]


def arm_objections(arm: Arm, *, question: ComparisonQuestion = STANDARD) -> list[Objection]:
    """Return every reason why a run's seeds are not replicates of each other."""
    checks: list[Callable[[Arm], Iterator[Objection]]] = [_unfinished, _mixed_versions, _counted_twice, _outside_range]
    if not question.is_reuse:
        checks.insert(1, _mixed_code)
    return [objection for check in checks for objection in check(arm)]


def trained_changes(base: Arm, new: Arm) -> list[ConfigChange]:
    """Return the config changes between two arms that affect training."""
    return [change for change in diff(base.config, new.config) if change.key.partition(".")[0] not in NOT_TRAINED]


def _unfinished(arm: Arm) -> Iterator[Objection]:
    for training in arm.having("scored"):
        if training.step < arm.planned_steps and arm.evidence == "measured":
            reached = f"{training.step:,} of {arm.planned_steps:,} steps"
            yield Objection(f"seed {training.seed} of {arm.name} was evaluated at {reached}", arm.evaluate)


def _mixed_code(arm: Arm) -> Iterator[Objection]:
    if len(arm.codes) > 1:
        reason = f"the attempts of {arm.name} ran different code: {', '.join(arm.codes)}"
        yield Objection(reason, _retrain_command(arm))


def _mixed_versions(arm: Arm) -> Iterator[Objection]:
    for before, after in pairwise(arm.versions):
        reason = f"the attempts of {arm.name} ran under different versions: {_spell_changes(diff(before, after))}"
        yield Objection(reason, _retrain_command(arm))


def _spell_changes(changes: Sequence[ConfigChange]) -> str:
    return ", ".join(f"{change.key} {change.before} → {change.after}" for change in changes)


def _counted_twice(arm: Arm) -> Iterator[Objection]:
    """Two seeds with bit-identical weights are one training: it was copied, or the seed has no effect."""
    for first, second in combinations([training for training in arm.ordered if training.weights], 2):
        if first.weights == second.weights:
            seeds = f"seeds {first.seed} and {second.seed} of {arm.name}"
            yield Objection(f"{seeds} are one training: their weights are bit-identical")
            return


def _outside_range(arm: Arm) -> Iterator[Objection]:
    allowed = SEED_RANGES.get(arm.phase or "")
    outside = [training.seed for training in arm.ordered if allowed is not None and training.seed not in allowed]
    if allowed is None or not outside:
        return
    phase = next((name for name, seeds in SEED_RANGES.items() if outside[0] in seeds), "no phase")
    command = ""
    if not arm.is_script:
        command = f"rlx train --more {arm.name} --seeds {allowed.start},"
    yield Objection(f"seed {outside[0]} of {arm.name} belongs to {phase}, not to {arm.phase}", command)


def _nothing_scored(base: Arm, new: Arm) -> Iterator[Objection]:
    for arm in (base, new):
        crashed = arm.having("crashed")
        if crashed and len(crashed) == len(arm.trainings):
            why = ""
            if crashed[0].reason:
                why = f": {crashed[0].reason}"
            yield Objection(f"no seed of {arm.name} has a finite score{why}", f"rlx info {arm.name} --traceback")


def _steps(base: Arm, new: Arm) -> Iterator[Objection]:
    planned = [base.planned_steps, new.planned_steps]
    command = f"rlx compare {base.name} {new.name} --budget-question"
    if all(planned) and _is_uneven(planned):
        reason = f"budgets differ: {base.name} {planned[0]:,} steps, {new.name} {planned[1]:,}"
        yield Objection(reason, command, is_budget=True)
        return
    if base.steps and new.steps and _is_uneven([*base.steps, *new.steps]):
        counts = f"{base.name} {spell_steps(base.steps)}, {new.name} {spell_steps(new.steps)}"
        yield Objection(f"step counts differ: {counts}", "" if all(planned) else command, is_budget=True)


def _uneven_steps(base: Arm, new: Arm) -> Iterator[Objection]:
    """Two runs may have different budgets if that is the question, but the seeds of one run may not."""
    for arm in (base, new):
        if arm.steps and _is_uneven(arm.steps):
            yield Objection(f"the seeds of {arm.name} were scored at different steps: {spell_steps(arm.steps)}")


def _is_uneven(steps: Sequence[int]) -> bool:
    return max(steps) > (1 + STEP_TOLERANCE) * max(1, min(steps))


def spell_steps(steps: Sequence[int]) -> str:
    """Return step counts for people: `12,288`, or a range."""
    if len(steps) == 1:
        return f"{steps[0]:,}"
    return f"{steps[0]:,}–{steps[-1]:,}"


def _episode_counts(base: Arm, new: Arm) -> Iterator[Objection]:
    """A score over 3 episodes does not compare with one over 10."""
    counts = {training.episodes for arm in (base, new) for training in arm.having("scored")} - {0}
    if len(counts) > 1:
        yield Objection(f"evaluations differ in size: {' and '.join(map(str, sorted(counts)))} episodes", new.evaluate)


def _versions(base: Arm, new: Arm) -> Iterator[Objection]:
    """Other package versions are a change too: they are fine alone, but they confuse another change."""
    changed = _version_changes(base, new)
    if changed and (trained_changes(base, new) or base.codes != new.codes):
        reason = f"versions differ in addition to the change itself: {_spell_changes(changed)}"
        yield Objection(reason, _retrain_command(base))


def _version_changes(base: Arm, new: Arm) -> list[ConfigChange]:
    if base.versions and new.versions:
        return diff(base.versions[-1], new.versions[-1])
    return []


def _retrain_command(arm: Arm) -> str:
    """Return the command that trains a run's config again. A script has none."""
    if arm.is_script:
        return ""
    return f"rlx train runs/{arm.name}/config_snapshot.yaml"


def _unchanged(base: Arm, new: Arm) -> Iterator[Objection]:
    if trained_changes(base, new) or base.codes != new.codes or _version_changes(base, new):
        return
    reason = f"only the seeds differ between {base.name} and {new.name}: there is no change to judge"
    if not base.codes or base.codes[0] == NO_GIT:
        reason += " (rlx could not hash the code, so it cannot see changes in it)"
    yield Objection(reason)


def _no_effect(base: Arm, new: Arm) -> Iterator[Objection]:
    """Bit-identical weights at the same seed mean that the change was not loaded, or does nothing."""
    weights = {training.seed: training.weights for training in new.ordered}
    same = [one.seed for one in base.ordered if one.weights and one.weights == weights.get(one.seed)]
    if same:
        yield Objection(f"the change had no effect: {spell_seeds(same)} ended with bit-identical weights on both sides")


def spell_seeds(seeds: Sequence[int]) -> str:
    """Return seeds for people: `seed 3`, or `seeds 3, 4`."""
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
