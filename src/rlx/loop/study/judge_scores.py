"""Judges a race or a claim from the scores in a ledger: the same ledger always gives the same figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rlx.compare.guardrails import Better, Guard, GuardrailResult
from rlx.compare.race import LEAST_SEEDS, Claim, Complexity, Confirmation, Race, ScoreScale, confirm, race
from rlx.config.expression import Expression
from rlx.evaluate.episode_metrics import RATES
from rlx.launch.study_jobs.candidate_check import changed_lines
from rlx.loop.study import measure_scores
from rlx.loop.study.measure_scores import Measured
from rlx.study.candidate.candidate import BASELINE
from rlx.study.contract.contract import Contract
from rlx.study.ledger.ledger import Event
from rlx.study.ledger.lifecycle import Phase
from rlx.study.ledger.state import State
from rlx.study.situation import head_phase
from rlx.study.study_folder import Study

Sides = tuple[Sequence[Measured], Sequence[Measured]]


def race_sides(state: State, phases: Mapping[str, Phase]) -> Sides:
    """Return the measured seeds of two candidates, each in its phase."""
    first, second = (measure_scores.measured(state, name, phase) for name, phase in phases.items())
    return first, second


def _scores(sides: Sides) -> Iterator[list[float | None]]:
    return ([seed.score for seed in side] for side in sides)


def judge_race(
    study: Study, state: State, sides: Sides, names: tuple[str, str], *, coverage: float | None = None
) -> Race:
    """Judge a race on the seeds of both sides; `coverage` repeats a decision at the level it was made with."""
    first, second = (complexity_of(study, state, name) for name in names)
    scale = _scale(study.contract())
    if coverage is not None:
        scale = replace(scale, shown_level=(1 - coverage) / 2)
    return race(*_scores(sides), scale=scale, complexity=(first, second))


def race_guardrails(study: Study, state: State, result: Race, trial: Sequence[Measured]) -> dict[str, GuardrailResult]:
    """Test the guardrails on a race's seeds against the original baseline, as the claim will."""
    if not result.n[1]:
        return {}
    pool = measure_scores.measured(state, BASELINE, "baseline")
    return _guardrails(study, (pool, trial), result.n)


def _scale(contract: Contract) -> ScoreScale:
    assert contract.metric is not None
    better: Better = "lower" if contract.metric.direction == "minimize" else "higher"
    worst = None
    if contract.evaluation and contract.evaluation.level == "sealed" and contract.metric.name in RATES:
        worst = float(better == "lower")  # rlx measures this rate itself, so it knows its worst value
    claim_level = Claim(contract.metric.alpha, contract.metric.claims).level
    return ScoreScale(better, worst, contract.metric.min_effect, shown_level=claim_level)  # one level in all texts


def claim_sides(state: State, name: str) -> Sides:
    """Return both sides on the seeds of this claim; an earlier claim had other seeds of the baseline.

    Seeds count in their own order, up to one that was cut off and not trained again.
    """
    return _claim_side(state, BASELINE, name), _claim_side(state, name, name)


def _claim_side(state: State, side: str, name: str) -> list[Measured]:
    seeds = state.claim_seeds(side, name)
    end = min(state.cut_off(side, "confirmation"), default=math.inf)
    measured = measure_scores.measured(state, side, "confirmation")
    return [seed for seed in measured if seed.seed in seeds and seed.seed < end]


def judge_claim(study: Study, sides: Sides) -> Confirmation:
    """Judge a claim on fresh seeds, with the contract's guardrails."""
    contract = study.contract()
    metric = contract.metric
    assert metric is not None
    most = max(metric.seeds, LEAST_SEEDS)
    claim = Claim(metric.alpha, metric.claims, metric.seeds)
    guardrails = _guardrails(study, sides, (most, most))
    return confirm(*_scores(sides), scale=_scale(contract), claim=claim, guardrails=guardrails)


def judge_again(study: Study, event: Event) -> tuple[Race | Confirmation, Mapping[str, GuardrailResult]]:
    """Judge a decision once more from the ledger as it is now; a sound ledger gives the same figures."""
    state, name, against = study.state(), str(event["candidate"]), str(event["against"])
    if event["test"] == "claim":
        claim = judge_claim(study, claim_sides(state, name))
        return claim, claim.guardrails
    opponent, trial = race_sides(state, {against: head_phase(against), name: "trial"})
    trial = trial[: event["n"][1]]
    result = judge_race(study, state, (opponent, trial), (against, name), coverage=event.get("coverage"))
    return result, race_guardrails(study, state, result, trial)


def _guardrails(study: Study, sides: Sides, sizes: tuple[int, int]) -> dict[str, GuardrailResult]:
    """Test every guarded expression with one value per seed, on at most so many seeds of each side."""
    baseline = [seed for seed in sides[0] if seed.score is not None][: sizes[0]]
    candidate = sides[1][: sizes[1]]
    results = {}
    for guardrail in study.contract().guardrails:
        expression = Expression(guardrail.expression)
        test = Guard(guardrail.expression, guardrail.margin, must_be_shown=guardrail.mode == "safety")
        values = [[_value(study, expression, seed) for seed in side] for side in (baseline, candidate)]
        results[guardrail.expression] = test.test(*values)
    return results


def _value(study: Study, expression: Expression, seed: Measured) -> float:
    """Return a guarded expression's value; NaN for a seed that failed or has no such figure."""
    figures = measure_scores.figures(study, seed)
    if not figures or not expression.names <= figures.keys():
        return math.nan
    return expression.value(figures)


def complexity_of(study: Study, state: State, name: str) -> Complexity:
    """Return what a candidate adds to the baseline: changed lines, one line per changed key, and its parameters."""
    keys = {key for candidate in study.chain(name) for key in candidate.changes}
    return Complexity(changed_lines(study.patch(name) or b"") + len(keys), state.parameters(name))
