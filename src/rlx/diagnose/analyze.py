"""What happened in a run, when, and how sure that is: the shape of every seed's curve and of the run as a whole."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlx.diagnose.case import RETURN, Case, SeedCase
from rlx.diagnose.curve import FEWEST_POINTS, Answer, Shape
from rlx.diagnose.finding import Finding
from rlx.figures import figure

SPARKS = 60


@dataclass(frozen=True)
class Analysis:
    """The answer most seeds give, and how many of them; `line` is the sentence."""

    answer: Answer
    agree: int
    line: str
    seeds: tuple[dict[str, Any], ...]
    missing: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the analysis as JSON-able data."""
        return {
            "answer": self.answer, "agree": self.agree, "line": self.line, "seeds": list(self.seeds),
            "missing": list(self.missing),
        }  # fmt: skip


def analyze(case: Case) -> Analysis:
    """Say what happened; where nothing can be said, why."""
    told = {seed.seed: case.shapes[seed.seed] for seed in case.seeds if case.shapes[seed.seed].answer != "unknown"}
    counts = Counter(shape.answer for shape in told.values())
    answer: Answer = max(counts, key=lambda one: counts[one], default="unknown")
    agree = counts[answer]
    return Analysis(
        answer,
        agree,
        _line(case, answer, [shape for shape in told.values() if shape.answer == answer]),
        tuple(_seed(seed, case) for seed in case.seeds),
        missing(case),
    )


def _line(case: Case, answer: Answer, shapes: list[Shape]) -> str:
    if not shapes:
        return "nothing can be said yet: fewer than five returns on every seed"
    start, end, peak = (float(np.median([getattr(one, name) for one in shapes])) for name in ("start", "end", "peak"))
    on = f" on {len(shapes)} of {len(case.seeds)} seeds" if len(case.seeds) > 1 else ""
    moves = f"{figure(start)} → {figure(end)}" + (
        f", peak {figure(peak)}" if answer in ("collapsed", "unstable") else ""
    )
    beside = f" (random policy {figure(case.random.mean)})" if case.random else ""
    return f"{answer}{on}: return {moves}{beside}, {_when(answer, shapes)}"


def _when(answer: Answer, shapes: list[Shape]) -> str:
    def median(name: str) -> str:
        return f"{float(np.median([getattr(one, name) for one in shapes])):,.0f}"

    if answer == "flat":
        return f"a change of less than {figure(float(np.median([one.visible for one in shapes])))} would not show"
    sure = f"{min(one.sure for one in shapes):.0%} sure"
    return {
        "improving": f"most of it around step {median('changed')}, level since step {median('settled')}, {sure}",
        "plateau": f"nothing gained since step {median('settled')}, {sure}",
        "collapsed": f"highest at step {median('peak_step')}, {sure}",
        "declining": f"mostly around step {median('changed')}, {sure}",
        "unstable": f"{median('swings')} swings there and back",
    }[answer]


def _seed(seed: SeedCase, case: Case) -> dict[str, Any]:
    found = case.shapes[seed.seed]
    figures = {name: getattr(found, name) for name in ("start", "end", "peak", "gain", "loss", "visible", "sure")}
    return {
        "seed": seed.seed,
        "status": seed.state,
        "step": seed.step,
        "answer": found.answer,
        "points": found.points,
        **{name: None if math.isnan(value) else value for name, value in figures.items()},
        "peak_step": found.peak_step,
        "changed": found.changed,
        "settled": found.settled,
        "report": seed.report.score if seed.report else None,
        "source": RETURN if len(seed.values(RETURN)) >= FEWEST_POINTS else "evaluations",
        "curve": _sparks(seed),
    }


def _sparks(seed: SeedCase) -> list[float]:
    """Return the curve in a few figures, for a line of the terminal."""
    values = seed.curve.values
    return [float(part.mean()) for part in np.array_split(values, min(SPARKS, len(values)))] if len(values) else []


def missing(case: Case) -> tuple[str, ...]:
    """Say what a diagnosis of this run would need and does not have."""
    found = [*case.missing]
    found += [f"seed {seed.seed}: {what}" for seed in case.seeds for what in seed.missing]
    unended = [seed.seed for seed in case.seeds if seed.state in ("running", "lost", "interrupted", "prepared")]
    if unended:
        states = ", ".join(
            f"seed {seed.seed} {seed.state} at step {seed.step:,}" for seed in case.seeds if seed.seed in unended
        )
        found.append(f"not trained to its end: {states}")
    if not case.has(RETURN):
        found.append(f"no {RETURN}: what episodes score in training")
    if not case.has("evaluations") and not any(seed.report for seed in case.seeds):
        found.append("no evaluation" + (": in the script, run.evaluate(policy)" if case.is_script else ""))
    if case.random is None and not any(seed.untrained for seed in case.seeds):
        found.append("no score of an untrained or random policy: flat curves are judged by themselves")
    return tuple(found)


def verdict(findings: tuple[Finding, ...], answer: Answer) -> str:
    """Put a run's health into a word: high findings need attention, medium ones watching."""
    if any(finding.severity == "high" for finding in findings):
        return "needs attention"
    if any(finding.severity == "medium" for finding in findings):
        return "watch"
    return "unknown" if answer == "unknown" else "no failure seen"
