"""Comparing runs by the evaluations they have."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlx import external_programs, files
from rlx.compare.comparison import CandidateVerdict, RunComparison, compare
from rlx.errors import EvidenceInvalid, NotFound, UsageError
from rlx.runs import interim_looks, store
from rlx.runs.run import Run
from tests.evaluate.linear import GOOD, POOR, make_run

PROTOCOL = {"env": {"id": "CartPole-v1", "kwargs": {}}, "episodes": 20, "files": {}}
FASTER = {"name": "ppo", "total_timesteps": 1024, "learning_rate": 1e-3}


def run_with(
    root: Path, name: str, scores: Mapping[int, Any], *, fingerprint: str = "aaa", step: int = 1024, **changes: Any
) -> Run:
    """Create a completed run whose final policies were evaluated with these scores; every name has its own config."""
    algo = changes.pop("algo", {**FASTER, "gamma": 0.9 + len(name) / 1000 + ord(name[0]) / 10_000})
    run = make_run(root, name, dict.fromkeys(scores, GOOD), step=step, names=(), algo=algo, **changes)
    evaluate(run, scores, fingerprint=fingerprint, step=step)
    return Run(run.path)


def evaluate(
    run: Run, scores: Mapping[int, Any], *, fingerprint: str = "aaa", step: int = 1024, **protocol: Any
) -> None:
    for seed, score in scores.items():
        document = {
            "purpose": "report", "mean": score, "seed": seed, "step": step, "time": 1.0,
            "protocol": {**PROTOCOL, **protocol},
        }  # fmt: skip
        store.save_evaluation(run.path, fingerprint, f"seed_{seed}_latest", document)


def more(run: Run, scores: Mapping[int, Any]) -> Run:
    """Train and evaluate further seeds of a run."""
    from rlx.runs.live import LiveSeed

    run = store.add_seeds(run, scores)
    for seed in scores:
        live = LiveSeed(run.path / f"seed_{seed}", root=run.path.parent.parent)
        live.completed(1024)
        live.close()
    evaluate(run, scores)
    return Run(run.path)


def end(run: Run, seed: int, state: str, **fields: Any) -> Run:
    """Let a seed end in another way than completed."""
    row = {"event": state, "time": 2.0, **fields}
    files.append_line(run.path / f"seed_{seed}" / "events.jsonl", files.encode(row))
    return Run(run.path)


def pool(mean: float, count: int = 10, *, first: int = 0) -> dict[int, float]:
    drawn = np.random.default_rng(int(mean) + first).normal(mean, 20, count)
    return {first + seed: float(score) for seed, score in enumerate(drawn)}


def only(comparison: RunComparison) -> CandidateVerdict:
    (candidate,) = comparison.candidates
    return candidate


def test_ten_clearly_better_seeds_are_better(tmp_path: Path) -> None:
    base = run_with(tmp_path, "base", pool(300), algo={"name": "ppo", "total_timesteps": 1024})
    new = run_with(tmp_path, "new", pool(400), algo=FASTER)
    comparison = compare([base, new])
    candidate = only(comparison)
    assert candidate.verdict.verdict == "better"
    assert [(change.key, change.after) for change in candidate.changes] == [("algo.learning_rate", 0.001)]
    assert candidate.commands == ("rlx plot base_001 new_001",)
    assert not comparison.is_invalid
    assert comparison.document()["runs"][0]["n"] == 10


def test_three_seeds_lean_and_the_commands_lead_to_ten(tmp_path: Path) -> None:
    candidate = only(compare([run_with(tmp_path, "a", pool(300, 3)), run_with(tmp_path, "b", pool(400, 4))]))
    assert candidate.verdict.verdict == "inconclusive"
    assert "undecided at 3 v 4" in candidate.verdict.line()
    assert candidate.commands == ("rlx settle a_001 b_001",)
    assert candidate.by_hand == ("rlx train --more a_001 --seeds 7", "rlx train --more b_001 --seeds 6")


def test_several_candidates_are_judge_against_the_first_and_share_the_error(tmp_path: Path) -> None:
    runs = [run_with(tmp_path, name, pool(mean)) for name, mean in (("a", 300.0), ("b", 400.0), ("c", 200.0))]
    comparison = compare(runs)
    assert [one.verdict.verdict for one in comparison.candidates] == ["better", "worse"]
    assert "(levels shared by 2 candidates)" in comparison.candidates[0].verdict.reason
    together = [note for one in comparison.candidates for note in one.notes]
    assert not [note for note in together if "also looked at" in note]


def test_a_gain_smaller_than_asked_for_is_not_better(tmp_path: Path) -> None:
    runs = [run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(400))]
    assert only(compare(runs, minimum_effect=150.0)).verdict.verdict == "inconclusive"
    assert only(compare(runs, minimum_effect=50.0)).verdict.verdict == "better"


# Protocols


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


def reported(run: Run, fingerprint: str = "aaa") -> Run:
    """Record that the run's training reported under this protocol."""
    for seed in run.seeds:
        row = {"event": "reported", "time": 1.0, "step": 1024, "fingerprint": fingerprint}
        files.append_line(seed.folder / "events.jsonl", files.encode(row))
    return Run(run.path)


def test_a_further_evaluation_leaves_the_verdict_and_is_named_beside_it(tmp_path: Path) -> None:
    runs = [reported(run_with(tmp_path, name, pool(mean))) for name, mean in (("a", 300.0), ("b", 400.0))]
    for run, mean in zip(runs, (400, 300), strict=True):
        evaluate(run, pool(mean), fingerprint="3616495e1247", episodes=100)
    comparison = compare([Run(run.path) for run in runs])
    assert (comparison.fingerprint, only(comparison).verdict.verdict) == ("aaa", "better")
    assert only(comparison).notes == ("also evaluated under 3616495e1247: rlx compare a_001 b_001 --protocol 3616",)
    asked = compare([Run(run.path) for run in runs], protocol="3616")
    assert (asked.fingerprint, only(asked).verdict.verdict) == ("3616495e1247", "worse")
    assert only(asked).notes[:2] == (
        "judged under 3616495e1247, not under the runs' own protocol aaa",
        "also evaluated under aaa: rlx compare a_001 b_001 --protocol aaa"
        " (`better` there, at 10 seeds: choosing among protocols is peeking)",
    )


def test_runs_with_different_protocols_of_their_own_are_judged_under_one_they_share(tmp_path: Path) -> None:
    base = reported(run_with(tmp_path, "a", pool(300)), "aaa")
    new = reported(run_with(tmp_path, "b", pool(400), fingerprint="bbb"), "bbb")
    assert only(compare([base, new])).verdict.verdict == "invalid"
    evaluate(new, pool(400), fingerprint="aaa")
    comparison = compare([base, Run(new.path)])
    assert (comparison.fingerprint, only(comparison).verdict.verdict) == ("aaa", "better")
    why = "the two runs have different protocols of their own: judged under aaa, that of a_001"
    assert only(comparison).notes == (why,)


@pytest.mark.parametrize(("prefix", "how"), [("x", "matches no"), ("", "matches no"), ("a", "ambiguous")])
def test_a_protocol_that_is_not_one_of_the_shared_ones_is_refused_with_those(
    tmp_path: Path, prefix: str, how: str
) -> None:
    runs = [run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(400))]
    for run in runs:
        evaluate(run, pool(300), fingerprint="abc")
    with pytest.raises(UsageError, match=how) as refused:
        compare([Run(run.path) for run in runs], protocol=prefix)
    assert refused.value.hint == "shared protocols: aaa, abc"


def test_a_candidate_that_shares_no_protocol_leaves_the_others_their_verdicts(tmp_path: Path) -> None:
    base, good, poor = (run_with(tmp_path, name, pool(mean)) for name, mean in (("a", 300), ("b", 400), ("c", 200)))
    odd = run_with(tmp_path, "d", pool(400), fingerprint="bbb")
    evaluate(odd, pool(400), fingerprint="bbb", episodes=3)
    evaluate(base, pool(300), fingerprint="ccc")
    late = run_with(tmp_path, "e", pool(400), fingerprint="ccc")
    comparison = compare([Run(base.path), good, Run(odd.path), poor, late])
    verdicts = [(one.name, one.verdict.verdict, one.fingerprint) for one in comparison.candidates]
    assert verdicts == [
        ("b_001", "better", "aaa"), ("d_001", "invalid", None), ("c_001", "worse", "aaa"), ("e_001", "better", "ccc"),
    ]  # fmt: skip
    assert comparison.candidates[1].commands == ("rlx eval a_001", "rlx eval d_001 --like a_001")
    rows = [(row["run"], row["fingerprint"]) for row in comparison.document()["runs"]]
    assert rows == [("a_001", "aaa"), ("b_001", "aaa"), ("c_001", "aaa"), ("a_001", "ccc"), ("e_001", "ccc")]


def test_different_step_counts_are_invalid_and_a_rounded_rollout_is_not(tmp_path: Path) -> None:
    base = run_with(tmp_path, "a", pool(300), step=12_288)
    short = run_with(tmp_path, "b", pool(400), step=1024)
    rounded = run_with(tmp_path, "c", pool(400), step=12_700)
    assert only(compare([base, short])).verdict.reason == "step counts differ: a_001 12,288, b_001 1,024"
    assert only(compare([base, rounded])).verdict.verdict == "better"


def test_a_seed_evaluated_before_its_end_is_invalid_and_evaluating_it_again_is_the_way_on(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(400), step=500)
    candidate = only(compare([base, new]))
    assert "seed 0 of b_001 was evaluated at 500 of 1,024 steps" in candidate.verdict.reason
    assert candidate.commands == ("rlx eval b_001",)


def test_a_run_without_any_evaluation_says_which_command_makes_one(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), make_run(tmp_path, "b", {0: GOOD})
    store.save_evaluation(new.path, "aaa", "seed_0_step_5", {"purpose": "selection", "mean": 500, "seed": 0})
    with pytest.raises(NotFound, match="b_001 has no report evaluation") as caught:
        compare([base, Run(new.path)])
    assert caught.value.hint == "rlx eval b_001"


def test_a_run_of_which_every_seed_crashed_says_why_and_invents_nothing(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), make_run(tmp_path, "b", {0: GOOD, 1: GOOD}, names=())
    for seed in (0, 1):
        new = end(new, seed, "failed", reason="loss `loss` is nan at step 64", kind="Diverged")
    with pytest.raises(EvidenceInvalid, match="all 2 crashed \\(loss `loss` is nan at step 64\\)") as caught:
        compare([base, new])
    assert caught.value.hint == "rlx info b_001 --traceback"


# Seeds that did not end well


def test_a_seed_without_evaluation_is_waited_for_and_never_dropped(tmp_path: Path) -> None:
    base = run_with(tmp_path, "a", pool(300))
    new = make_run(tmp_path, "b", dict.fromkeys(range(11), GOOD), names=(), algo=FASTER)
    evaluate(new, {seed: score for seed, score in pool(400, 11).items() if seed != 4})
    store.add_seeds(new, [50])
    candidate = only(compare([base, Run(new.path)]))
    assert candidate.verdict.verdict == "inconclusive"
    assert candidate.verdict.n == (10, 4)
    assert candidate.notes[:2] == (
        "waiting for seed 4 of b_001 (not evaluated): a pending seed is never dropped",
        "waiting for seed 50 of b_001 (prepared): a pending seed is never dropped",
    )
    assert candidate.commands == ("rlx eval b_001", "rlx resume b_001")


@pytest.mark.parametrize(("state", "command"), [("interrupted", "rlx resume b_001"), ("lost", "rlx resume b_001")])
def test_infrastructure_kills_are_to_be_resumed(tmp_path: Path, state: str, command: str) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(400))
    new = end(new, 0, state, reason="SIGKILL")
    candidate = only(compare([base, new]))
    assert (
        candidate.verdict.line()
        == f"inconclusive: waiting for seed 0 of b_001 ({state}): a pending seed is never dropped"
    )
    assert candidate.commands == (command,)
    assert compare([base, new]).document()["candidates"][0]["verdict"] == "inconclusive"


def test_seeds_that_train_for_the_next_look_do_not_hold_up_this_one(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(400))
    new = store.add_seeds(new, range(10, 16))
    candidate = only(compare([base, new]))
    assert candidate.verdict.verdict == "better"
    assert candidate.notes == (
        "waiting for seeds 10, 11, 12, 13, 14, 15 of b_001 (prepared): a pending seed is never dropped",
    )


def test_a_crashed_candidate_seed_scores_as_the_random_policy_or_the_worst_seen(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(315))
    assert only(compare([base, new])).verdict.verdict == "better"
    crashed = run_with(tmp_path, "c", {seed: score for seed, score in pool(315).items() if seed < 7})
    crashed = more(crashed, {7: "NaN", 8: 350.0, 9: 350.0})
    for seed in (8, 9):
        crashed = end(crashed, seed, "failed", reason="loss is nan at step 64", kind="Diverged")
    candidate = only(compare([base, crashed]))
    worst = min(pool(300).values())
    assert candidate.verdict.verdict == "inconclusive"
    assert candidate.verdict.n == (10, 10)
    assert f"seed 7 of c_001 scored nan: it scores {worst:.4g}, the worst seen" in candidate.notes
    assert f"seed 9 of c_001 crashed (loss is nan at step 64): it scores {worst:.4g}, the worst seen" in candidate.notes
    path = base.path / "eval" / "aaa" / "seed_0_latest.json"
    files.write_json(path, {**files.read_json(path), "random": {"mean": 22.0}})
    os.unlink(interim_looks.path(tmp_path))
    noted = only(compare([Run(base.path), Run(crashed.path)])).notes
    assert "seed 7 of c_001 scored nan: it scores 22, as the random policy" in noted


def test_a_crashed_baseline_seed_is_replaced_and_worse_is_not_said(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(200))
    assert only(compare([base, new])).verdict.verdict == "worse"
    base = end(run_with(tmp_path, "c", pool(300)), 3, "failed", reason="boom", kind="ValueError")
    candidate = only(compare([base, new]))
    assert candidate.verdict.n == (9, 10)
    assert "seed 3 of c_001 crashed (boom): a baseline seed is left out and replaced" in candidate.notes
    assert candidate.commands == ("rlx settle c_001 b_001",)
    assert candidate.by_hand == ("rlx train --more c_001 --seeds 1",)
    candidate = only(compare([more(base, {10: 300.0}), new]))
    assert candidate.verdict.verdict == "inconclusive"
    assert "flatters the baseline" in candidate.verdict.reason


def test_failing_seeds_are_noted(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", {**pool(400), 0: 9.0, 1: 9.0, 2: 9.0})
    assert [
        note for note in only(compare([base, new])).notes if "3 of b_001's 10 seeds score below a_001's worst" in note
    ]


# What was changed


def test_only_other_seeds_are_no_change_to_judge(tmp_path: Path) -> None:
    base = run_with(tmp_path, "a", pool(300), algo=FASTER)
    new = run_with(tmp_path, "b", pool(400, first=10), algo=FASTER, seed=10)
    comparison = compare([base, new])
    assert comparison.is_invalid
    assert only(comparison).verdict.reason.startswith("only the seeds differ between a_001 and b_001")


def test_bit_identical_weights_are_found_in_the_checkpoints(tmp_path: Path) -> None:
    runs = []
    for name, rate in (("a", 1e-3), ("b", 2e-3)):
        weights = {seed: (*POOR[:3], seed / 10 + (name == "b" and seed > 0)) for seed in range(10)}
        run = make_run(tmp_path, name, weights, algo={**FASTER, "learning_rate": rate})
        evaluate(run, pool(300))
        runs.append(Run(run.path))
    reason = only(compare(runs)).verdict.reason
    assert reason == "the change had no effect: seed 0 ended with bit-identical weights on both sides"


def test_different_code_is_shown_and_mixed_code_is_invalid(tmp_path: Path) -> None:
    def commit(name: str) -> None:
        (tmp_path / name).write_text("")
        author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        external_programs.git("add", name, folder=tmp_path)
        external_programs.git(*author, "commit", "--quiet", "-m", name, folder=tmp_path)

    external_programs.git("init", "--quiet", folder=tmp_path)
    commit("one.py")
    base = run_with(tmp_path, "a", pool(300), algo=FASTER)
    commit("README.md")
    same = run_with(tmp_path, "b", pool(400))
    commit("two.py")
    new = run_with(tmp_path, "c", pool(400), algo=FASTER)
    one, two = compare([base, same, new]).candidates
    assert (one.verdict.verdict, one.notes) == ("better", ())
    assert two.verdict.verdict == "better"
    assert two.notes[0].startswith("code differs: a_001 ")
    assert two.notes[0].endswith(": two.py")
    mixed = only(compare([more(base, {10: 300.0}), new]))
    assert mixed.verdict.reason.startswith("the attempts of a_001 ran different code: ")
    assert mixed.commands == ("rlx train runs/a_001/config_snapshot.yaml",)


# Looking again


def test_looks_are_recorded_once_and_looking_again_changes_nothing(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(306))
    first = compare([base, new])
    taken = interim_looks.read(tmp_path)
    assert [(look.baseline.run, look.candidate.run, look.seeds) for look in taken] == [
        ("a_001", "b_001", 3), ("a_001", "b_001", 6), ("a_001", "b_001", 10),
    ]  # fmt: skip
    for _ in range(3):
        assert compare([Run(base.path), Run(new.path)]).document() == first.document()
    assert interim_looks.read(tmp_path) == taken


def test_seeds_added_one_by_one_are_decided_at_the_next_declared_look_only(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(307))
    verdicts = []
    for seed in range(10, 17):
        candidate = only(compare([base, new]))
        verdicts.append((candidate.verdict.verdict, candidate.verdict.next_look))
        base, new = more(base, {seed: 200.0 + seed}), more(new, {seed: 420.0 + seed})
    assert verdicts == [("inconclusive", 16)] * 6 + [("better", None)]
    assert [look.seeds for look in interim_looks.read(tmp_path)] == [3, 6, 10, 16]


def test_a_score_that_was_changed_after_the_look_does_not_change_the_look(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(306))
    before = only(compare([base, new])).verdict
    evaluate(new, pool(500))
    after = only(compare([base, Run(new.path)]))
    assert after.verdict.verdict == before.verdict == "inconclusive"
    assert "the look at 10 was taken earlier, on other scores; it stands" in after.notes


def test_a_seed_taken_away_after_a_look_is_invalid(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(306))
    compare([base, new])
    shutil.rmtree(new.path / "seed_4")
    candidate = only(compare([base, more(Run(new.path), {10: 900.0})]))
    assert candidate.verdict.line() == "invalid: seed 4 of b_001, in the look at 6, is gone"


def test_a_decision_stands_and_every_seed_is_shown_beside_it(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(400))
    assert only(compare([base, new])).verdict.look == 10
    candidate = only(compare([base, more(new, {10: 9.0, 11: 9.0})]))
    assert (candidate.verdict.verdict, candidate.verdict.n) == ("better", (10, 10))
    assert candidate.notes[0].startswith("decided at the look of 10; every seed, 10 v 12: +")


def test_candidates_looked_at_one_by_one_know_of_each_other(tmp_path: Path) -> None:
    base, new, other = (run_with(tmp_path, name, pool(mean)) for name, mean in (("a", 300), ("b", 306), ("c", 307)))
    assert only(compare([base, new])).notes == ()
    assert only(compare([base, other])).notes == (
        "also compared with a_001: b_001; each comparison has its own chance of error",
    )


def test_the_same_question_asked_of_fresh_runs_is_known(tmp_path: Path) -> None:
    def fresh(name: str, mean: float, first: int) -> Run:
        run = run_with(tmp_path, name, pool(mean, first=first), algo={**FASTER, "gamma": mean / 1000})
        path = run.path / "metadata.json"
        files.write_json(path, {**files.read_json(path), "group_hash": name})
        return Run(run.path)

    assert only(compare([fresh("a", 300, 0), fresh("b", 306, 0)])).notes == ()
    (note,) = [one for one in only(compare([fresh("a", 300, 50), fresh("b", 306, 50)])).notes if "same" in one]
    assert note == "the same two configs were compared before: a_001 v b_001; each pair has its own chance of error"


def test_a_project_that_cannot_be_written_to_is_still_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(400))

    def full(path: Path, row: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "append_line", full)
    assert only(compare([base, new])).verdict.verdict == "better"
    assert interim_looks.read(tmp_path) == []


# What a best checkpoint claimed


def test_the_winners_curse_is_shown_where_best_was_evaluated_again(tmp_path: Path) -> None:
    base, new = run_with(tmp_path, "a", pool(300)), run_with(tmp_path, "b", pool(400))
    for seed in (0, 1):
        for step, mean in ((256, 300.0), (512, 480.0 + seed), (1024, 400.0)):
            document = {"purpose": "selection", "mean": mean, "seed": seed, "step": step, "protocol": PROTOCOL}
            store.save_evaluation(new.path, "sel", f"seed_{seed}_step_{step}", document)
    assert only(compare([base, Run(new.path)])).notes == ()
    for seed in (0, 1):
        document = {"purpose": "report", "mean": 440.0, "seed": seed, "step": 512, "time": 1.0, "protocol": PROTOCOL}
        store.save_evaluation(new.path, "aaa", f"seed_{seed}_best", document)
    assert only(compare([base, Run(new.path)])).notes == (
        "`best` of b_001 was selected at 480.5 and scores 440 on report episodes (2 seeds): winner's curse",
    )


@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 0.0), (1.0, -500.0)])
def test_scaling_or_shifting_returns_changes_no_verdict(tmp_path: Path, scale: float, shift: float) -> None:
    plain, moved = tmp_path / "plain", tmp_path / "moved"
    found = []
    for root, turn in ((plain, lambda score: score), (moved, lambda score: score * scale + shift)):
        runs = [
            run_with(root, name, {seed: turn(score) for seed, score in pool(mean).items()})
            for name, mean in (("a", 300.0), ("b", 330.0), ("c", 303.0), ("d", 250.0))
        ]
        found.append([(one.verdict.verdict, one.verdict.p) for one in compare(runs).candidates])
    assert found[0] == found[1]
    assert [verdict for verdict, _ in found[0]] == ["better", "inconclusive", "worse"]


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_runs_are_no_comparison(tmp_path: Path, count: int) -> None:
    with pytest.raises(UsageError, match="nothing to compare"):
        compare([run_with(tmp_path, "a", {0: 1.0})] * count)


def test_a_run_is_not_compared_with_itself(tmp_path: Path) -> None:
    run = run_with(tmp_path, "a", {0: 1.0})
    with pytest.raises(UsageError, match="nothing to compare"):
        compare([run, run])
