"""Why two sides cannot be compared: everything that makes a verdict `invalid`, as pure checks on values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from rlx.compare.side import Side, Training
from rlx.config.diff import Change, diff

NOT_TRAINED = ("run_name", "seed", "seeds", "log", "stop", "resources", "checkpoint", "eval")
"""Config sections that name a run, its replicates or what is kept of it, and change nothing of what is learned."""
STEP_TOLERANCE = 0.05
"""Trainers round the budget up to whole rollouts; a larger difference in steps is a difference in budget."""
SEED_RANGES = {"search": range(0, 1000), "confirm": range(1000, 2000)}
"""The training seeds a study may use in each phase: what was searched on never confirms. Those above are nobody's."""

NO_GIT = "no git"
"""The code of an attempt outside any repository, where its files could not be hashed either."""


@dataclass(frozen=True)
class Objection:
    """One reason against a comparison, and the command that mends it where there is one."""

    reason: str
    command: str = ""


def objections(base: Side, new: Side, *, is_replication: bool = False) -> list[Objection]:
    """Return every reason why these two sides cannot be compared; none where they can.

    A replication trains the same again on other seeds: there, nothing has to differ.
    """
    checks: tuple[Callable[[Side, Side], Iterator[Objection]], ...] = (
        _nothing_scored, _steps, _sizes, _versions, _no_effect,
        *(() if is_replication else (_unchanged,)),
    )  # fmt: skip
    of_both = [objection for check in checks for objection in check(base, new)]
    return [*side_objections(base), *side_objections(new), *of_both]


def side_objections(side: Side) -> list[Objection]:
    """Return every reason why a run's seeds are no replicates of each other."""
    checks = (_unfinished, _mixed_attempts, _counted_twice, _outside_range)
    return [objection for check in checks for objection in check(side)]


def trained_changes(base: Side, new: Side) -> list[Change]:
    """Return what differs between the configs in what is trained."""
    return [one for one in diff(base.config, new.config) if one.key.partition(".")[0] not in NOT_TRAINED]


def _unfinished(side: Side) -> Iterator[Objection]:
    for one in side.having("scored"):
        if one.step < side.planned_steps:
            reached = f"{one.step:,} of {side.planned_steps:,} steps"
            yield Objection(f"seed {one.seed} of {side.name} was evaluated at {reached}", side.evaluate)


def _mixed_attempts(side: Side) -> Iterator[Objection]:
    again = _again(side)
    if len(side.codes) > 1:
        yield Objection(f"the attempts of {side.name} ran different code: {', '.join(side.codes)}", again)
    for before, after in zip(side.versions, side.versions[1:], strict=False):
        changed = ", ".join(f"{one.key} {one.before} → {one.after}" for one in diff(before, after))
        yield Objection(f"the attempts of {side.name} ran under different versions: {changed}", again)


def _counted_twice(side: Side) -> Iterator[Objection]:
    """Two seeds with bit-identical weights are one training: copied, or the seed changes nothing."""
    for one, other in combinations([one for one in side.ordered if one.weights], 2):
        if one.weights == other.weights:
            yield Objection(
                f"seeds {one.seed} and {other.seed} of {side.name} are one training: their weights are bit-identical"
            )
            return


def _outside_range(side: Side) -> Iterator[Objection]:
    allowed = SEED_RANGES.get(side.phase or "")
    if allowed is None:
        return
    for one in side.ordered:
        if one.seed not in allowed:
            used = next((name for name, seeds in SEED_RANGES.items() if one.seed in seeds), "no phase")
            yield Objection(
                f"seed {one.seed} of {side.name} belongs to {used}, not to {side.phase}",
                "" if side.is_script else f"rlx train --more {side.name} --seeds {allowed.start},",
            )
            return


def _nothing_scored(base: Side, new: Side) -> Iterator[Objection]:
    for side in (base, new):
        crashed = side.having("crashed")
        if crashed and not side.having("scored") and not side.having("pending"):
            why = f": {crashed[0].reason}" if crashed[0].reason else ""
            yield Objection(f"no seed of {side.name} has a finite score{why}", f"rlx info {side.name} --traceback")


def _steps(base: Side, new: Side) -> Iterator[Objection]:
    planned = [base.planned_steps, new.planned_steps]
    if all(planned) and max(planned) > (1 + STEP_TOLERANCE) * min(planned):
        yield Objection(f"budgets differ: {base.name} {planned[0]:,} steps, {new.name} {planned[1]:,}")
        return
    ours, theirs = base.steps, new.steps
    if ours and theirs and max(ours[-1], theirs[-1]) > (1 + STEP_TOLERANCE) * max(1, min(ours[0], theirs[0])):
        yield Objection(f"step counts differ: {base.name} {spell_steps(ours)}, {new.name} {spell_steps(theirs)}")


def spell_steps(steps: Sequence[int]) -> str:
    """Return step counts as people read them: `12,288`, or a range."""
    return f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,}–{steps[-1]:,}"


def _sizes(base: Side, new: Side) -> Iterator[Objection]:
    """Evaluations of different size: a score over 3 episodes is not one over 10."""
    sizes = {one.episodes for side in (base, new) for one in side.having("scored") if one.episodes}
    if len(sizes) > 1:
        spelled = " and ".join(str(size) for size in sorted(sizes))
        yield Objection(f"evaluations differ in size: {spelled} episodes", new.evaluate)


def _versions(base: Side, new: Side) -> Iterator[Objection]:
    """Other versions are a change too: fine where they are the only one, a confusion beside another."""
    if not base.versions or not new.versions:
        return
    changed = diff(base.versions[-1], new.versions[-1])
    if changed and (trained_changes(base, new) or base.codes != new.codes):
        spelled = ", ".join(f"{one.key} {one.before} → {one.after}" for one in changed)
        yield Objection(f"versions differ beside the change itself: {spelled}", _again(base))


def _again(side: Side) -> str:
    """Return the command that trains a run's config anew; there is none for a script of one's own."""
    return "" if side.is_script else f"rlx train runs/{side.name}/config_snapshot.yaml"


def _unchanged(base: Side, new: Side) -> Iterator[Objection]:
    if trained_changes(base, new) or base.codes != new.codes:
        return
    if base.versions and new.versions and base.versions[-1] != new.versions[-1]:
        return
    unseen = "" if base.codes and base.codes[0] != NO_GIT else " (the code was not hashed: its changes are not seen)"
    yield Objection(f"only the seeds differ between {base.name} and {new.name}: there is no change to judge{unseen}")


def _no_effect(base: Side, new: Side) -> Iterator[Objection]:
    """Bit-identical weights at an equal seed: the change was not loaded, or does nothing."""
    same = [one.seed for one in base.ordered if one.weights and one.weights == _weights(new, one.seed)]
    if same:
        seeds = f"seed {same[0]}" if len(same) == 1 else f"seeds {', '.join(map(str, same))}"
        yield Objection(f"the change had no effect: {seeds} ended with bit-identical weights on both sides")


def _weights(side: Side, seed: int) -> str | None:
    found: Training | None = next((one for one in side.ordered if one.seed == seed), None)
    return found.weights if found else None
