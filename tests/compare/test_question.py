"""Comparisons that ask something else: a metric that training logged, different budgets, several runs as one."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import rlx
from rlx.compare.comparison import compare
from rlx.compare.question import ComparisonQuestion
from rlx.compare.run_pool import pooled
from rlx.errors import NotFound
from rlx.runs.run import Run
from tests.compare.test_comparison import FASTER, only, pool, run_with

SUCCESS = ComparisonQuestion(metric="task/success")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rlx.toml").touch()
    monkeypatch.setenv("RLX_ROOT", str(tmp_path))
    return tmp_path


def script(name: str, values: Sequence[float], *, first_seed: int = 0, steps: int = 100, **config: Any) -> Run:
    """Record a script's seeds, each with one value of `task/success` at its end, and without an evaluation."""
    for seed, value in enumerate(values, start=first_seed):
        with rlx.start({"run_name": name, "name": name, **config}, seed=seed) as run:
            run.log(steps // 2, {"task/success": -5.0, "energy": 3.0})
            run.log(steps, {"task/success": value, "energy": 1.0 + seed / 10})
    return rlx.open(f"{name}_001")


def test_a_logged_metric_decides_and_the_verdict_says_who_reported_it() -> None:
    base = script("base", [0.1 + 0.01 * seed for seed in range(10)])
    new = script("new", [0.6 + 0.01 * seed for seed in range(10)])
    with pytest.raises(NotFound, match="no report evaluation") as caught:
        compare([base, new])
    assert "--metric task/success" in str(caught.value.hint)
    comparison = compare([base, new], question=SUCCESS)
    candidate = only(comparison)
    assert candidate.verdict.verdict == "better"
    assert candidate.line.endswith("; reported: the last value of task/success that training logged")
    document = comparison.document()
    assert (document["candidates"][0]["evidence"], document["runs"][0]["evidence"]) == ("reported", "reported")
    assert (document["runs"][0]["metric"], document["runs"][0]["steps"]) == ("task/success", [100])


def test_lower_is_better_turns_the_verdict_around() -> None:
    base = script("base", [0.1 + 0.01 * seed for seed in range(10)])
    new = script("new", [0.6 + 0.01 * seed for seed in range(10)])
    candidate = only(compare([base, new], question=ComparisonQuestion(metric="task/success", is_lower_better=True)))
    assert candidate.verdict.verdict == "worse"
    assert "negated because lower is better" in candidate.line


def test_a_metric_that_nothing_logged_names_the_nearest() -> None:
    base, new = script("base", [0.1]), script("new", [0.2])
    with pytest.raises(NotFound, match="no seed of base_001 has logged `task/sucess`") as caught:
        compare([base, new], question=ComparisonQuestion(metric="task/sucess"))
    assert "task/success" in str(caught.value.hint)


def test_a_seed_without_the_metric_is_pending_and_never_dropped() -> None:
    base = script("base", [0.1, 0.2, 0.3])
    new = script("new", [0.4, 0.5])
    with rlx.start({"run_name": "new", "name": "new"}, seed=2) as run:
        run.log(100, {"energy": 1.0})
    candidate = only(compare([base, rlx.open(new.name)], question=SUCCESS))
    assert candidate.verdict.n == (3, 2)
    assert any("seed 2 of new_001 (no value of task/success)" in note for note in candidate.notes)


def test_different_budgets_are_a_question_that_has_to_be_asked(tmp_path: Path) -> None:
    short = run_with(tmp_path, "short", pool(300), algo={"name": "ppo", "total_timesteps": 1024})
    long = run_with(tmp_path, "long", pool(400), algo={"name": "ppo", "total_timesteps": 10_240}, step=10_240)
    for run, steps in ((short, 1024), (long, 10_240)):
        (run.path / "metadata.json").write_text(f'{{"total_timesteps": {steps}, "id": "{run.name}"}}')
    short, long = Run(short.path), Run(long.path)
    refused = only(compare([short, long]))
    assert refused.verdict.verdict == "invalid"
    assert refused.commands == ("rlx compare short_001 long_001 --budget-question",)
    asked = only(compare([short, long], question=ComparisonQuestion(budgets_may_differ=True)))
    assert asked.verdict.verdict == "better"
    assert asked.line.endswith("; budgets: long_001 10,240 steps, short_001 1,024 steps")


def test_runs_of_one_config_are_pooled_into_one_arm(project: Path) -> None:
    first = script("mine", [0.1, 0.2])
    shutil.copytree(first.path, project / "runs" / "mine_002")  # the same seeds once more: they count once
    script("mine", [0.3, 0.4, 0.5], first_seed=2)
    (project / "runs" / "mine_002" / "seed_1").rename(project / "runs" / "mine_002" / "seed_7")
    other = script("other", [0.9, 0.8])
    runs = [rlx.open("mine_001"), rlx.open("mine_002"), other]
    base, new = pooled(runs)
    assert [seed.number for seed in base.seeds] == [0, 1, 2, 3, 4, 7]
    candidate = only(compare([base, new], question=SUCCESS))
    assert candidate.verdict.n == (6, 2)
    note = "mine_001 stands for 2 runs of one config: mine_001, mine_002; 1 training of a seed that another run has"
    assert any(text.startswith(note) for text in candidate.notes)


def test_runs_in_different_environments_lead_to_the_comparison_over_tasks(tmp_path: Path) -> None:
    from tests.evaluate.linear import GOOD, config, write_checkpoint

    cartpole = run_with(tmp_path, "cartpole", pool(300, 3), algo=FASTER)
    other = run_with(tmp_path, "acrobot", pool(100, 3), fingerprint="bbb", algo=FASTER)
    for run, kind in ((cartpole, "box"), (other, "dict")):
        write_checkpoint(run.seeds[0].checkpoints, "latest", GOOD, plain=config("x"), step=1024, spaces={"kind": kind})
    candidate = only(compare([cartpole, other]))
    assert candidate.verdict.verdict == "invalid"
    assert "have different environments" in candidate.verdict.reason
    assert candidate.commands == ("rlx compare --tasks cartpole_001 acrobot_001",)
