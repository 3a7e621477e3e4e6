"""`rlx compare` as it is called, on runs evaluated by `rlx eval`."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import rlx
from rlx.hosts.cli.main import call
from rlx.runs.project import mark_own
from tests.evaluate.linear import GOOD, POOR, make_run, register

FASTER = {"name": "ppo", "total_timesteps": 1024, "learning_rate": 1e-2}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    register(monkeypatch)
    monkeypatch.setenv("RLX_ROOT", str(tmp_path))
    mark_own(tmp_path)
    return tmp_path


def weights(base: tuple[float, ...], seeds: int) -> dict[int, tuple[float, ...]]:
    """Return slightly different policies, one a seed."""
    return {seed: (base[0] + 0.01 * seed, *base[1:]) for seed in range(seeds)}


def evaluated(root: Path, name: str, seeds: dict[int, tuple[float, ...]], *argv: str, **changes: object) -> str:
    run = make_run(root, name, seeds, **changes)  # type: ignore[arg-type]
    assert call(["eval", run.name, "--episodes", "3", *argv]) == 0
    return run.name


def test_good_policies_are_better_than_poor_ones(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    poor = evaluated(root, "poor", weights(POOR, 10))
    good = evaluated(root, "good", weights(GOOD, 10), algo=FASTER)
    capsys.readouterr()
    assert call(["compare", poor, good]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0].startswith("verdict: better: +")
    assert lines[1] == "  good_001 against poor_001"
    assert lines[2].startswith("reason: p = ")
    assert lines[4].split() == ["run", "n", "mean", "sd", "median", "min", "max", "steps", "seeds"]
    assert "good_001 against poor_001:\n  algo.learning_rate: 0.0003 → 0.01\n" in out
    assert [line.split()[1] for line in out.splitlines() if "  length " in line] == ["length", "length"]
    assert (root / ".rlx" / "looks.jsonl").is_file()


def test_the_table_is_there_for_spreadsheets_and_for_papers(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    poor, good = evaluated(root, "poor", weights(POOR, 10)), evaluated(root, "good", weights(GOOD, 10), algo=FASTER)
    capsys.readouterr()
    assert call(["compare", poor, good, "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["run"], row["n"], row["verdict"]) for row in rows] == [
        ("poor_001", "10", "baseline"), ("good_001", "10", "better"),
    ]  # fmt: skip
    assert float(rows[1]["low"]) > 0
    assert call(["compare", poor, good, "--latex"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("\\begin{tabular}{lrrrl}\n")
    assert "    good\\_001 & 10 & $500.0 \\pm 0.0$ & $+" in out
    assert out.endswith("\\end{tabular}\n")
    assert call(["compare", poor, good, "--csv", "--latex"]) == 2


def test_three_seeds_are_undecided_and_say_what_would_settle_it(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    poor, good = evaluated(root, "poor", weights(POOR, 3)), evaluated(root, "good", weights(GOOD, 3), algo=FASTER)
    capsys.readouterr()
    assert call(["compare", poor, good, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    (candidate,) = data["candidates"]
    assert (candidate["verdict"], candidate["n"]) == ("inconclusive", [3, 3])
    assert candidate["line"].endswith("undecided at 3 v 3")
    assert (candidate["look"], candidate["next_look"], candidate["is_futile"]) == (None, 10, False)
    assert candidate["commands"] == ["rlx settle poor_001 good_001"]
    assert candidate["by_hand"] == ["rlx train --more poor_001 --seeds 7", "rlx train --more good_001 --seeds 7"]
    assert "shape" not in data


def test_unlike_protocols_are_invalid_until_the_printed_commands_were_run(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = evaluated(root, "base", weights(GOOD, 2))
    short = {"id": "CartPole-v1", "kwargs": {"max_episode_steps": 50}}
    new = evaluated(root, "new", {seed: (0.5, *GOOD[1:3], seed / 10) for seed in (0, 1)}, env=short)
    capsys.readouterr()
    assert call(["compare", base, new]) == 6
    out = capsys.readouterr().out
    assert "verdict: invalid: base_001 and new_001 were evaluated under different protocols (env.kwargs" in out
    assert call(["compare", base, new, "--latex"]) == 6
    latex = capsys.readouterr().out
    assert "    base\\_001 & -- & -- & -- & baseline \\\\\n" in latex
    assert "    new\\_001 & -- & -- & -- & invalid: base\\_001 and new\\_001 were" in latex
    for line in out.splitlines():
        if line.startswith("next: rlx "):
            assert call(line.removeprefix("next: rlx ").split()) == 0
    capsys.readouterr()
    assert call(["compare", base, new]) == 0
    assert "verdict: inconclusive: leaning " in capsys.readouterr().out


def test_an_edited_environment_is_invalid_until_both_were_evaluated_again(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = "from gymnasium.envs.classic_control import CartPoleEnv\n\n\n"
    own = imported + "class Own(CartPoleEnv):\n    max_episode_steps = 50\n"
    (root / "own.py").write_text(own)
    base = evaluated(root, "base", {0: GOOD}, env={"id": "own.py:Own"})
    (root / "own.py").write_text(own + "    force_mag = 5.0\n")
    new = evaluated(root, "new", {0: POOR}, env={"id": "own.py:Own"}, algo=FASTER)
    capsys.readouterr()
    assert call(["compare", base, new]) == 6
    out = capsys.readouterr().out
    assert "different protocols (files.own.py)" in out
    assert "next: rlx eval base_001\nnext: rlx eval new_001 --like base_001\n" in out
    assert call(["eval", base, "--episodes", "3"]) == 0
    assert call(["compare", base, new]) == 0


def test_a_seed_that_lacks_the_protocol_gets_the_command_that_evaluates_it_so(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = evaluated(root, "base", weights(GOOD, 3))
    new = make_run(root, "new", weights(POOR, 3), algo=FASTER).name
    assert call(["eval", new, "--episodes", "3", "--seed", "0"]) == 0
    capsys.readouterr()
    assert call(["compare", base, new]) == 0
    out = capsys.readouterr().out
    assert "note: waiting for seeds 1, 2 of new_001 (not evaluated): a pending seed is never dropped" in out
    assert "  0 1:not evaluated 2:not evaluated\n" in out
    assert "next: rlx eval new_001 --episodes 3\n" in out
    assert call(["eval", "new_001", "--episodes", "3"]) == 0
    capsys.readouterr()
    assert call(["compare", base, new]) == 0
    assert "undecided at 3 v 3" in capsys.readouterr().out


def test_seed_only_changes_are_invalid(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = evaluated(root, "base", weights(GOOD, 2))
    other = evaluated(root, "other", {seed: (0.3, *GOOD[1:3], seed / 10) for seed in (5, 6)}, seed=5)
    capsys.readouterr()
    assert call(["compare", base, other]) == 6
    assert "verdict: invalid: only the seeds differ between base_001 and other_001" in capsys.readouterr().out


def test_a_run_without_evaluations_is_not_found_and_the_hint_works(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, bare = evaluated(root, "base", {0: GOOD}), make_run(root, "bare", {0: GOOD}).name
    assert call(["compare", base, bare]) == 3
    assert "hint: rlx eval bare_001" in capsys.readouterr().err
    assert call(["compare", base]) == 2
    assert call(["compare", base, bare, "--min-effect", "-3"]) == 2


def test_several_verdicts_are_corrected_for_their_number(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [
        evaluated(root, name, {0: (0.1 * place, *GOOD[1:])}, algo={**FASTER, "learning_rate": 0.1 + place / 10})
        for place, name in enumerate(("a", "b", "c"))
    ]
    capsys.readouterr()
    assert call(["compare", *names]) == 0
    assert "note: 2 candidates, corrected for their number (Holm)" in capsys.readouterr().out


def test_many_config_differences_are_counted_unless_all_are_asked_for(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = {
        "learning_rate": 0.1, "gamma": 0.9, "gae_lambda": 0.8, "clip_range": 0.3, "entropy_coef": 0.1,
        "value_coef": 0.4, "max_grad_norm": 0.3, "rollout_steps": 16, "batch_size": 32, "update_epochs": 3,
    }  # fmt: skip
    policy = {"hidden_sizes": [8], "activation": "relu"}
    env = {"id": "CartPole-v1", "num_envs": 4}
    base = evaluated(root, "base", {0: POOR})
    new = evaluated(root, "new", {0: GOOD}, algo={**FASTER, **many}, policy=policy, env=env)
    capsys.readouterr()
    assert call(["compare", base, new]) == 0
    out = capsys.readouterr().out
    assert len([line for line in out.splitlines() if " → " in line]) == 12
    assert "  and 1 more (--all)\n" in out
    assert call(["compare", base, new, "--all"]) == 0
    out = capsys.readouterr().out
    assert len([line for line in out.splitlines() if " → " in line]) == 13
    assert "more (--all)" not in out


def test_a_gain_that_harms_a_guarded_metric_is_held_back(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    poor, good = evaluated(root, "poor", weights(POOR, 10)), evaluated(root, "good", weights(GOOD, 10), algo=FASTER)
    capsys.readouterr()
    assert call(["compare", poor, good, "--guard", "length:1"]) == 0
    out = capsys.readouterr().out
    assert "verdict: better" in out
    assert "guard: length passes: +" in out
    assert call(["compare", poor, good, "--guard", "length:1:lower", "--json"]) == 0
    (candidate,) = json.loads(capsys.readouterr().out)["candidates"]
    assert candidate["verdict"] == "inconclusive"
    assert candidate["reason"].startswith("better, but it harms length (worse by more than 1: p = ")
    assert candidate["guardrails"]["length"]["answer"] == "harm"
    assert call(["compare", poor, good, "--require-safe", "length:5"]) == 0
    assert "guard: length (safety) passes" in capsys.readouterr().out


def test_bad_guards_are_explained(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = evaluated(root, "poor", weights(POOR, 2)), evaluated(root, "good", weights(GOOD, 2), algo=FASTER)
    capsys.readouterr()
    for words, said in (
        (["--guard", "energy"], "hint: known metrics: length"),
        (["--guard", "length:much"], "hint: --guard success_rate:0.05"),
        (["--require-safe", "length"], "hint: --require-safe success_rate:0.05"),
        (["--guard", ":3"], "not a metric and a margin"),
    ):
        assert call(["compare", *names, *words]) == 2
        assert said in capsys.readouterr().err


# Evidence that is not there


def test_one_seed_a_side_has_open_ends_and_says_what_is_missing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = evaluated(root, "poor", {0: POOR}), evaluated(root, "good", {0: GOOD}, algo=FASTER)
    capsys.readouterr()
    assert call(["compare", *names, "--json"]) == 0
    (candidate,) = json.loads(capsys.readouterr().out)["candidates"]
    assert (candidate["verdict"], candidate["interval"]) == ("inconclusive", [None, None])
    assert call(["compare", *names, "--latex"]) == 0
    assert "[-\\infty, +\\infty]" in capsys.readouterr().out
    assert call(["compare", *names, "--csv"]) == 0
    assert list(csv.DictReader(io.StringIO(capsys.readouterr().out)))[1]["low"] == ""
    assert call(["compare", *names]) == 0
    out = capsys.readouterr().out
    assert "[−∞, +∞], undecided at 1 v 1" in out
    assert out.endswith("\nnext: rlx settle poor_001 good_001\n")


def test_returns_that_are_not_numbers_are_failures_and_never_invented(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = "from gymnasium.envs.classic_control import CartPoleEnv\n\n\n"
    body = "class Own(CartPoleEnv):\n    max_episode_steps = 20\n\n    def step(self, action):\n"
    text = "        observation, _, *rest = super().step(action)\n        return observation, float('nan'), *rest\n"
    (root / "own.py").write_text(imported + body + text)
    env = {"id": "own.py:Own"}
    names = (
        evaluated(root, "base", weights(POOR, 2), env=env),
        evaluated(root, "new", weights(GOOD, 2), env=env, algo=FASTER),
    )
    capsys.readouterr()
    assert call(["compare", *names]) == 6
    out = capsys.readouterr().out
    assert "invalid: no seed of base_001 has a finite score; no seed of new_001 has a finite score" in out
    for line in out.splitlines():
        if line.startswith("next: rlx "):
            assert call(line.removeprefix("next: rlx ").split()) == 0


def test_a_deleted_checkpoint_leaves_the_scores_and_without_scores_there_is_a_clear_line(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scored = evaluated(root, "scored", weights(POOR, 2)), evaluated(root, "good", weights(GOOD, 2), algo=FASTER)
    for name in scored:
        for folder in (root / "runs" / name).glob("seed_*/checkpoints"):
            shutil.rmtree(folder)
    assert call(["compare", *scored]) == 0
    bare = make_run(root, "bare", {0: GOOD}, algo=FASTER)
    shutil.rmtree(bare.path / "seed_0" / "checkpoints")
    capsys.readouterr()
    assert call(["compare", scored[0], "bare_001"]) == 3
    err = capsys.readouterr().err
    assert "bare_001 has no report evaluation of its final policy" in err
    assert "hint: it has no checkpoint to evaluate: rlx info bare_001" in err
    assert call(["info", "bare_001"]) == 0


def test_a_scripts_run_gets_no_command_that_only_rlx_runs_understand(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, push in (("one", 0), ("two", 1)):
        config = {"run_name": name, "env": {"id": "CartPole-v1"}, "algo": {"gamma": 0.9 + push / 100}}
        with rlx.start(config, seed=0) as run:
            run.log(1000, {"rollout/return_mean": 9.0})
            run.evaluate(lambda observation, push=push: np.int64(push), episodes=3)
    capsys.readouterr()
    assert call(["compare", "one_001", "two_001"]) == 0
    out = capsys.readouterr().out
    assert "rlx train --more" not in out
    assert 'note: one_001 is trained by a script: `rlx.start(config, seed=1, run="one_001")` adds a seed' in out
    with rlx.start({"run_name": "three", "env": {"id": "CartPole-v1"}}, seed=0):
        pass
    capsys.readouterr()
    assert call(["compare", "one_001", "three_001"]) == 3
    assert "hint: score it in the script that trains it: run.evaluate(policy)" in capsys.readouterr().err
