"""What a contract guards, on the seeds that are compared; stories with the documents that an evaluator leaves."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from rlx import files
from rlx.compare.race import Confirmation
from rlx.loop.study.judge_scores import judge_again
from tests.loop.told import WISHES, Told

Figures = dict[str, float]
STEADY: list[Figures | None] = [{"return": 100.0 + seed, "length_mean": 5.0 + seed / 10} for seed in range(10)]
GUARDED = ("metric.seeds=10", "budget.per_seed_minutes=1")


class Guarded(Told):
    """A study that guards an expression; what its evaluator measured lies beside its ledger."""

    def __init__(self, root: Path, expression: str, *, mode: str = "harm") -> None:
        guard = f'guardrails=[{{"expression": "{expression}", "margin": 1, "mode": "{mode}"}}]'
        super().__init__(root, replace(WISHES, settings=(*GUARDED, guard)))

    def evaluate(self, name: str, phase: str, seed: int, score: float, **fields: object) -> None:
        figures = fields.get("figures", {"return": score, "length_mean": 5.0 + seed % 1000 / 10})
        path = self.study.folder / f"evidence/{name}-{phase}-{seed}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(files.encode({"level": "sealed", "figures": figures}))
        super().evaluate(name, phase, seed, score, sha256=files.sha256(path.read_bytes()))

    def claims(self, ours: list[Figures | None], theirs: list[Figures | None]) -> Confirmation:
        """Tell a claim of a candidate whose seeds have these figures, None for one that crashed; return its answer."""
        name = self.checked(0.01)
        self.trained(name, (400.0, 401.0, 402.0))
        self.decide(name, "advanced", against="baseline", test="race")
        plan = self.state.candidates[name].plan
        for side, known in (("baseline", ours), (name, theirs)):
            seeds = tuple(range(1000, 1000 + len(known)))
            states = {str(seed): "completed" if one else "failed" for seed, one in zip(seeds, known, strict=True)}
            self.intend(f"{side}-claim", side, "confirmation", seeds, **({} if side == "baseline" else {"plan": plan}))
            self.start(f"{side}-claim")
            self.end(f"{side}-claim", seeds, states=states)
            hashes = {seed: f"{side}-{seed}" for seed, how in states.items() if how == "completed"}
            self.tell("weights", candidate=side, run=f"run_{side}-claim", checkpoints=hashes)
        self.tell("drawn", purpose="confirm", first=10**6, episodes=50, candidates=["baseline", name])
        for side, known in (("baseline", ours), (name, theirs)):
            for seed, figures in enumerate(known, 1000):
                if figures:
                    self.evaluate(side, "confirmation", seed, figures["return"], figures=figures)
        event = self.tell(
            "decided",
            candidate=name,
            decision="inconclusive",
            study="continue",
            says="",
            against="baseline",
            test="claim",
            n=[10, 10],
        )
        assert self.state.violations == ()
        found, guards = judge_again(self.study, event)
        assert isinstance(found, Confirmation)
        assert found.guardrails == guards
        return found


def better(known: list[Figures | None], gain: float = 200.0) -> list[Figures | None]:
    return [one and {**one, "return": one["return"] + gain} for one in known]


@pytest.mark.parametrize("mode", ["harm", "safety"])
def test_a_seed_of_the_baseline_that_crashed_is_left_out_of_the_guard_as_of_the_claim(
    tmp_path: Path, mode: str
) -> None:
    story = Guarded(tmp_path, "-length_mean", mode=mode)
    found = story.claims([None, *STEADY], better(STEADY))
    assert (found.answer, found.n) == ("confirmed", (10, 10))
    assert (found.guardrails["-length_mean"].answer, found.guardrails["-length_mean"].change) == ("passes", 0.0)


def test_only_seeds_that_are_compared_are_guarded(tmp_path: Path) -> None:
    late: Figures = {"return": 100.0, "length_mean": -1e6}
    story = Guarded(tmp_path, "-length_mean")
    found = story.claims([None, *STEADY, late, late, late], better(STEADY))
    assert (found.answer, found.guardrails["-length_mean"].change) == ("confirmed", 0.0)


def test_a_guard_that_cannot_be_worked_out_on_a_seed_says_so_and_stops_nothing(tmp_path: Path) -> None:
    ours = [{**one, "terminated_rate": float(number > 0)} for number, one in enumerate(STEADY) if one]
    theirs = better(
        [
            {key: value for key, value in one.items() if key != "terminated_rate" or number}
            for number, one in enumerate(ours)
        ]
    )
    found = Guarded(tmp_path, "1 / terminated_rate").claims([*ours], theirs)
    guard = found.guardrails["1 / terminated_rate"]
    assert "1 seed of the baseline without a value left out" in guard.reason
    assert "1 seed of the candidate without a value counted as the worst" in guard.reason
    assert math.isfinite(guard.change)


def test_a_guard_without_any_value_is_unproven_and_nothing_is_claimed(tmp_path: Path) -> None:
    found = Guarded(tmp_path, "-terminated_rate").claims(STEADY, better(STEADY))
    assert found.guardrails["-terminated_rate"].answer == "unproven"
    assert (found.answer, "no seed of the baseline has a value" in found.reason) == ("not shown", True)
