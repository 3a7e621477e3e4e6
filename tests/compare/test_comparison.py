"""Comparing runs by the evaluations they have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.evaluate.linear import GOOD, make_run

from rlx.compare.comparison import Comparison, compare
from rlx.errors import NotFound, UsageError
from rlx.runs import store
from rlx.runs.run import Run

PROTOCOL = {"env": {"id": "CartPole-v1", "kwargs": {}}, "episodes": 20, "files": {}}


def run_with(
    root: Path, name: str, scores: Mapping[int, Any], *, fingerprint: str = "aaa", step: int = 1024, **changes: Any
) -> Run:
    """Create a completed run whose final policies were evaluated with these scores."""
    run = make_run(root, name, dict.fromkeys(scores, GOOD), step=step, names=(), **changes)
    evaluate(run, scores, fingerprint=fingerprint, step=step)
    return Run(run.path)


def evaluate(run: Run, scores: Mapping[int, Any], *, fingerprint: str, step: int = 1024, **protocol: Any) -> None:
    for seed, score in scores.items():
        document = {
            "purpose": "report", "mean": score, "seed": seed, "step": step, "time": 1.0,
            "protocol": {**PROTOCOL, **protocol},
        }  # fmt: skip
        store.save_evaluation(run.path, fingerprint, f"seed_{seed}_latest", document)


def pool(mean: float, count: int = 10, *, first: int = 0) -> dict[int, float]:
    drawn = np.random.default_rng(int(mean) + first).normal(mean, 20, count)
    return {first + seed: float(score) for seed, score in enumerate(drawn)}


def only(comparison: Comparison) -> Any:
    (candidate,) = comparison.candidates
    return candidate


def test_ten_clearly_better_seeds_are_better(tmp_path: Path) -> None:
    base = run_with(tmp_path, "base", pool(300))
    new = run_with(tmp_path, "new", pool(400), algo={"name": "ppo", "total_timesteps": 1024, "learning_rate": 1e-3})
    comparison = compare([base, new])
    candidate = only(comparison)
    assert candidate.verdict.verdict == "better"
    assert [(change.key, change.after) for change in candidate.changes] == [("algo.learning_rate", 0.001)]
    assert not comparison.is_invalid
    assert comparison.document()["runs"][0]["n"] == 10


def test_three_seeds_lean_and_the_commands_lead_to_ten(tmp_path: Path) -> None:
    candidate = only(compare([run_with(tmp_path, "a", pool(300, 3)), run_with(tmp_path, "b", pool(400, 4))]))
    assert candidate.verdict.verdict == "inconclusive"
    assert "undecided at 3 v 4" in candidate.verdict.line()
    assert candidate.commands == ("rlx train --more a_001 --seeds 7", "rlx train --more b_001 --seeds 6")


def test_several_candidates_are_judged_against_the_first(tmp_path: Path) -> None:
    runs = [run_with(tmp_path, name, pool(mean)) for name, mean in (("a", 300.0), ("b", 400.0), ("c", 200.0))]
    assert [one.verdict.verdict for one in compare(runs).candidates] == ["better", "worse"]


def test_different_protocols_are_invalid_and_the_commands_evaluate_both_under_one(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), make_run(tmp_path, "b", dict.fromkeys(range(10), GOOD), names=())
    evaluate(new, pool(400), fingerprint="bbb", episodes=3)
    comparison = compare([base, Run(new.path)])
    candidate = only(comparison)
    assert comparison.is_invalid
    assert candidate.verdict.line() == "invalid: a_001 and b_001 were evaluated under different protocols (episodes)"
    assert candidate.commands == ("rlx eval a_001", "rlx eval b_001 --like a_001")


def test_of_several_shared_protocols_the_one_with_most_seeds_then_episodes_counts(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(400))
    for run in (base, new):
        evaluate(run, pool(200, 9), fingerprint="few_seeds", episodes=500)
        evaluate(run, pool(250), fingerprint="many_episodes", episodes=100)
    assert compare([Run(base.path), Run(new.path)]).fingerprint == "many_episodes"


def test_different_step_counts_are_invalid_and_a_rounded_rollout_is_not(tmp_path: Path) -> None:
    base = run_with(tmp_path, "a", pool(300), step=12_288)
    short = run_with(tmp_path, "b", pool(400), step=1024)
    rounded = run_with(tmp_path, "c", pool(400), step=12_700)
    assert only(compare([base, short])).verdict.reason == "step counts differ: a_001 12,288, b_001 1,024"
    assert only(compare([base, rounded])).verdict.verdict == "better"


def test_an_unfinished_seed_is_invalid_and_resume_is_the_way_on(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(400), step=500)
    candidate = only(compare([base, new]))
    assert "seed 0 of b_001 was evaluated at 500 of 1,024 steps" in candidate.verdict.reason
    assert candidate.commands == ("rlx resume b_001",)


def test_a_seed_without_evaluation_is_named_and_never_dropped(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), make_run(tmp_path, "b", dict.fromkeys(range(11), GOOD), names=())
    evaluate(new, pool(400), fingerprint="aaa")
    store.add_seeds(new, [50])
    candidate = only(compare([base, Run(new.path)]))
    assert candidate.verdict.reason == (
        "seed 10 of b_001 (completed) has no evaluation under this protocol; "
        "seed 50 of b_001 (prepared) has no evaluation under this protocol"
    )
    assert candidate.commands == ("rlx eval b_001", "rlx resume b_001")


def test_a_run_without_any_evaluation_says_which_command_makes_one(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), make_run(tmp_path, "b", {0: GOOD})
    store.save_evaluation(new.path, "aaa", "seed_0_step_5", {"purpose": "selection", "mean": 500, "seed": 0})
    with pytest.raises(NotFound, match="b_001 has no report evaluation") as caught:
        compare([base, Run(new.path)])
    assert caught.value.hint == "rlx eval b_001"


def test_returns_that_are_not_a_number_are_invalid(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", {**pool(400), 3: "NaN"})
    comparison = compare([base, new])
    assert only(comparison).verdict.reason == "1 of the candidate's 10 seeds have no finite score"
    assert comparison.document()["runs"][1]["n"] == 10


def test_failing_seeds_are_noted(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", {**pool(400), 0: 9.0, 1: 9.0, 2: 9.0})
    assert [
        note for note in only(compare([base, new])).notes if "3 of b_001's 10 seeds score below a_001's worst" in note
    ]


def test_different_code_is_noted(tmp_path: Path) -> None:
    from rlx import tools

    def commit(message: str) -> None:
        author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        tools.git(*author, "commit", "--quiet", "--allow-empty", "-m", message, folder=tmp_path)

    tools.git("init", "--quiet", folder=tmp_path)
    commit("one")
    base, same = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(400))
    commit("two")
    new = run_with(tmp_path, "c", pool(400))
    one, two = compare([base, same, new]).candidates
    assert one.notes == ()
    assert two.notes[0].startswith("code differs: a_001 ")


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_runs_are_no_comparison(tmp_path: Path, count: int) -> None:
    with pytest.raises(UsageError, match="nothing to compare"):
        compare([run_with(tmp_path, "a", {0: 1.0})] * count)


def test_a_run_is_not_compared_with_itself(tmp_path: Path) -> None:
    run = run_with(tmp_path, "a", {0: 1.0})
    with pytest.raises(UsageError, match="nothing to compare"):
        compare([run, run])
