"""What happened in a run, when, and how certain that is: the shape of every seed's curve and of the whole run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlx.compare.seed_noise import FAILING
from rlx.diagnose.curve_shape import (
    FEWEST_POINTS,
    SMALLEST_CHANGE,
    Answer,
    CurveShape,
    classify_curve,
    pool_curves,
    seeds_rise_at_end,
)
from rlx.diagnose.finding import Finding
from rlx.diagnose.run_case import RETURN, RunCase, SeedCase
from rlx.diagnose.seed_outcomes import seed_outcomes
from rlx.number_format import figure, plain

CURVE_POINTS = 60
SEVERAL_SEEDS = 4
FALLS: tuple[Answer, ...] = ("collapsed", "unstable", "declining")


@dataclass(frozen=True)
class Analysis:
    """The answer of a run's seeds together, and how many of them give it alone. `line` is the sentence.

    `stuck` are the seeds that gained almost nothing while others learned.
    """

    answer: Answer
    agree: int
    stuck: tuple[int, ...]
    line: str
    seeds: tuple[dict[str, Any], ...]
    missing: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the analysis as JSON-able data."""
        lists = {"seeds": list(self.seeds), "stuck": list(self.stuck), "missing": list(self.missing)}
        return {**vars(self), **lists}


def analyze(case: RunCase) -> Analysis:
    """Say what happened in a run, or why nothing can be said."""
    stuck = stuck_seeds(case)
    known = {seed: shape for seed, shape in case.shapes.items() if shape.answer != "unknown"}
    learners = {seed: shape for seed, shape in known.items() if seed not in stuck}
    together = _shape_together(case, tuple(learners))
    answer = _joint_answer(together, [shape.answer for shape in learners.values()])
    if answer in ("still rising", "levelled off") and len(learners) >= SEVERAL_SEEDS:
        answer = _end_of_rise(case, tuple(learners), together) or answer
    agreeing = [shape for shape in learners.values() if shape.answer == answer]
    line = _line(case, answer, agreeing, together)
    if 2 * len(stuck) > len(case.seeds):
        line = f"{_stuck_text(case, stuck)}; {line}"
    elif stuck:
        line += f"; {_stuck_text(case, stuck)}"
    return Analysis(answer, len(agreeing), stuck, line, tuple(_seed(seed, case) for seed in case.seeds), missing(case))


def stuck_seeds(case: RunCase) -> tuple[int, ...]:
    """Return the seeds that gained almost nothing while others learned.

    A seed that fell back is not stuck. Nor is one whose training returns gain as much as the others': its greedy policy
    scores less, which `seeds_disagree` reports.
    """
    outcomes = seed_outcomes(case)
    stuck = []
    for seed in outcomes.stuck:
        has_fallen = case.shapes[seed].answer in FALLS
        has_gained = outcomes.metric == "return" and case.has_same_reward and _gains_like_the_best(case, seed)
        if not has_fallen and not has_gained:
            stuck.append(seed)
    return tuple(sorted(stuck))


def _gains_like_the_best(case: RunCase, seed: int) -> bool:
    gains = {number: shape.end - shape.start for number, shape in case.shapes.items() if shape.answer != "unknown"}
    return case.shapes[seed].is_learning and gains[seed] >= FAILING * max(gains.values())


def _stuck_text(case: RunCase, stuck: Sequence[int]) -> str:
    names = ", ".join(map(str, stuck))
    outcomes = seed_outcomes(case)
    mean = sum(outcomes.scores[seed] for seed in stuck) / len(stuck)
    best = max(outcomes.scores.values())
    noun = "seed" if len(stuck) == 1 else "seeds"
    scores = f"{outcomes.metric} {figure(mean)}, best {figure(best)}"
    return f"{len(stuck)} of {len(case.seeds)} seeds stuck ({noun} {names}: {scores})"


def _shape_together(case: RunCase, seeds: Sequence[int]) -> CurveShape:
    """Classify the mean curve of seeds: noise that hides a trend of one seed averages out over several."""
    curves = [case.seed(seed).curve for seed in seeds]
    steps, values = pool_curves([(curve.steps, curve.values) for curve in curves])
    floors = [case.curve_floor(case.seed(seed)) for seed in seeds]
    known = [floor for floor in floors if floor is not None]
    floor = None
    if known and len(known) == len(floors):
        floor = float(np.median(known))
    best = case.reachable
    if floor is None or best is None or best <= floor:
        best = None
    return classify_curve(steps, values, floor=floor, best=best)


def _joint_answer(together: CurveShape, answers: Sequence[Answer]) -> Answer:
    """Return the answer for all seeds: that of their mean curve, unless half of them agree on a fall or on swings.

    Seeds that fall or swing at different times cancel out in the mean.
    """
    if not answers:
        return "unknown"
    counts = Counter(answers)
    for answer in FALLS:
        if 2 * counts[answer] >= len(answers):
            return answer
    most: Answer = max(counts, key=lambda candidate: counts[candidate])
    if together.answer == "unknown" or (together.answer == "flat" and 2 * counts[most] > len(answers)):
        return most
    if together.answer == "levelled off" and 2 * counts["still rising"] > len(answers):
        return "still rising"
    return together.answer


def _end_of_rise(case: RunCase, seeds: Sequence[int], together: CurveShape) -> Answer | None:
    """Say whether several seeds still rise, from the trends at the end of their curves; None if they cannot tell."""
    curves = [case.seed(seed).curve for seed in seeds]
    if together.climb <= 0:
        return None
    is_rising = seeds_rise_at_end([(curve.steps, curve.values) for curve in curves], together.climb)
    if is_rising is None:
        return None
    return "still rising" if is_rising else "levelled off"


def _line(case: RunCase, answer: Answer, agreeing: Sequence[CurveShape], together: CurveShape) -> str:
    if answer == "unknown":
        return "nothing can be said yet: fewer than five returns on every seed"
    shapes = agreeing or [together]
    line: str = answer
    if answer == "levelled off":
        line += f" since step {_median(shapes, 'settled'):,.0f}"
    if len(case.seeds) > 1:
        line += f" on {len(agreeing)} of {len(case.seeds)} seeds"
        if together.answer == answer and len(agreeing) < len(case.seeds):
            line += ", and in their mean"
    ends = f"{figure(_median(shapes, 'start'))} → {figure(_median(shapes, 'end'))}"
    if answer == "unstable":  # where it begins and ends is chance
        lowest = float(np.median([shape.end - shape.climb for shape in shapes]))
        ends = f"between {figure(lowest)} and {figure(_median(shapes, 'peak'))}"
    line += f": return {ends}"
    if len(shapes) > 1:
        line += " (medians over these seeds)"
    if answer == "collapsed":
        line += f", peak {figure(_median(shapes, 'peak'))}"
    if case.random:
        line += f", random policy {figure(case.random.mean)}"
    if answer == "flat":
        return f"{line}, {_flatness(case, shapes)}"
    return f"{line}, {_when(answer, shapes)}"


def _median(shapes: Sequence[CurveShape], name: str) -> float:
    return float(np.median([getattr(shape, name) for shape in shapes]))


def _flatness(case: RunCase, shapes: Sequence[CurveShape]) -> str:
    """Say which change would not show, or that the change that shows is small beside what can be gained here."""
    visible = _median(shapes, "visible")
    change = _median(shapes, "end") - _median(shapes, "start")
    if abs(change) <= visible or case.reachable is None:
        return f"a change of less than {figure(visible)} would not show"
    verb = "fell" if change < 0 else "rose"
    step = _median(shapes, "changed")
    return (
        f"it {verb} around step {step:,.0f} and is flat otherwise: that is less than {SMALLEST_CHANGE:.0%} of the way "
        f"to {figure(case.reachable)}, which is reachable here"
    )


def _when(answer: Answer, shapes: Sequence[CurveShape]) -> str:
    steps = {name: f"{_median(shapes, name):,.0f}" for name in ("changed", "peak_step", "swings")}
    sure = min(shape.sure for shape in shapes)
    certain = f"{sure:.0%} certain"
    return {
        "still rising": f"most of it around step {steps['changed']}, {certain}: train longer",
        "levelled off": f"most of it around step {steps['changed']}, {certain}",
        "collapsed": f"highest at step {steps['peak_step']}, {certain}",
        "declining": f"mostly around step {steps['changed']}, {certain}",
        "unstable": f"{steps['swings']} swings down and up",
    }[answer]


def _seed(seed: SeedCase, case: RunCase) -> dict[str, Any]:
    shape = case.shapes[seed.seed]
    figures = ("start", "end", "peak", "gain", "loss", "visible", "sure")
    values = seed.curve.values
    parts = np.array_split(values, max(1, min(CURVE_POINTS, len(values))))
    return {
        "seed": seed.seed,
        "status": seed.state,
        "step": seed.step,
        "answer": shape.answer,
        "points": shape.points,
        **{name: plain(getattr(shape, name)) for name in figures},
        "peak_step": shape.peak_step,
        "changed": shape.changed,
        "settled": shape.settled,
        "report": seed.report.score if seed.report else None,
        "source": RETURN if len(seed.values(RETURN)) >= FEWEST_POINTS else "evaluations",
        "curve": [float(part.mean()) for part in parts if len(part)],
    }


def missing(case: RunCase) -> tuple[str, ...]:
    """Say which evidence a diagnosis of this run needs and does not have."""
    notes = [*case.missing]
    notes += [f"seed {seed.seed}: {note}" for seed in case.seeds for note in seed.missing]
    unfinished = [seed for seed in case.seeds if seed.state in ("running", "lost", "interrupted", "prepared")]
    if unfinished:
        states = ", ".join(f"seed {seed.seed} {seed.state} at step {seed.step:,}" for seed in unfinished)
        notes.append(f"not trained to its end: {states}")
    if not case.has(RETURN):
        notes.append(f"no {RETURN}: the returns of training episodes")
    if not case.has("evaluations") and not any(seed.report for seed in case.seeds):
        note = "no evaluation"
        if case.is_imported:
            note += ": the run was imported, and rlx does not have its policies"
        elif case.is_script:
            note += ": in the script, call run.evaluate(policy)"
        notes.append(note)
    if case.random is None and not any(seed.untrained for seed in case.seeds):
        notes.append("no score of an untrained or random policy: rlx judges flat curves by themselves")
    return tuple(notes)


def health(findings: Sequence[Finding], answer: Answer) -> str:
    """Put a run's health into a word: high findings need attention, and medium ones need watching."""
    severities = {finding.severity for finding in findings}
    if "high" in severities:
        return "needs attention"
    if "medium" in severities:
        return "watch"
    if answer == "unknown":
        return "unknown"
    return "no failure seen"
