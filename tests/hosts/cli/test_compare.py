"""`rlx compare` as it is called, on runs evaluated by `rlx eval`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from rlx.hosts.cli.main import call
from tests.evaluate.linear import GOOD, POOR, make_run, register

FASTER = {"name": "ppo", "total_timesteps": 1024, "learning_rate": 1e-2}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    register(monkeypatch)
    monkeypatch.setenv("RLX_ROOT", str(tmp_path))
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
    assert out.splitlines()[0].split() == ["run", "n", "mean", "sd", "median", "min", "max", "steps", "seeds"]
    assert "good_001 against poor_001:\n  algo.learning_rate: 0.0003 → 0.01\n" in out
    assert "verdict: better: +" in out
    assert "reason: p = " in out
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
    assert "    good\\_001 & 10 & $500 \\pm 0$ & $+" in out
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
    assert candidate["commands"] == ["rlx train --more poor_001 --seeds 7", "rlx train --more good_001 --seeds 7"]
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
    assert "note: seeds 1, 2 of new_001 (not evaluated) is waited for, never dropped" in out
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
