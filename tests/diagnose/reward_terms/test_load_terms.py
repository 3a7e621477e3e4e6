from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlx.diagnose.load_case import read_case
from rlx.diagnose.reward_terms.load_terms import RewardHistory
from rlx.runs import store
from rlx.runs.metrics import MetricsWriter
from rlx.runs.run import Run

MakeRun = Callable[..., Run]


def read(run: Run) -> RewardHistory:
    return read_case(run).reward_history


def log_terms(run: Run, seed: int, rows: int = 10, **terms: Callable[[int], float]) -> None:
    """Write what training logs about reward terms, in episodes of 20 steps."""
    writer = MetricsWriter(run.path / f"seed_{seed}" / "metrics.jsonl")
    for row in range(1, rows + 1):
        values = {f"reward/term/{name}": paid(row) for name, paid in terms.items()}
        sizes = {f"reward/term_abs/{name}": abs(paid(row)) for name, paid in terms.items()}
        writer.write(
            1000 * row,
            {"rollout/return_mean": 1.0, "rollout/length_mean": 20.0, "rollout/success_rate": 0.5, **values, **sizes},
        )
    writer.close()


def evaluation(seed: int, step: int, **terms: float) -> dict[str, Any]:
    episode = {"seed": 1, "return": sum(terms.values()), "length": 10, "terms": terms}
    document = {"purpose": "selection", "time": 1.0, "mean": 2.0, "protocol": {"env": {"id": "CartPole-v1"}}}
    return {**document, "seed": seed, "step": step, "episodes": [episode, episode]}


def keep(run: Run, seed: int, step: int, **more: Any) -> None:
    document = evaluation(seed, step, alive=10.0, energy=-5.0) | more
    store.save_evaluation(run.path, "f00", f"seed_{seed}_step_{step}", document)


def test_terms_come_from_training_where_it_logged_them(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [], 1: []})
    for seed in (0, 1):
        log_terms(run, seed, alive=lambda row: 1.0, energy=lambda row: -0.1 * row)
        keep(run, seed, 1000)
    found = read(run)
    assert (found.source, found.metric) == ("training", "success_rate")
    assert [one.seed for one in found.seeds] == [0, 1]
    assert found.seeds[0].per_episode["energy"].values == pytest.approx([-2.0 * row for row in range(1, 11)])
    assert found.seeds[0].size["energy"].values[0] == pytest.approx(0.1)


def test_an_episodes_pay_follows_its_length_without_the_lag_of_the_running_mean(make_run: MakeRun) -> None:
    run = make_run(seeds={0: []})
    writer = MetricsWriter(run.path / "seed_0/metrics.jsonl")
    ended = 0.0
    for step in range(200, 20_001, 200):
        ended += 2.0 if step <= 10_000 else 20.0  # episodes of 100 steps, then of 10
        lagging = 100.0 if step <= 12_000 else 10.0
        row = {"rollout/episodes": ended, "rollout/length_mean": lagging, "rollout/return_mean": 1.0}
        writer.write(step, {**row, "reward/term/alive": 1.0, "reward/term_abs/alive": 1.0})
    writer.close()
    alive = read(run).seeds[0].per_episode["alive"]
    assert alive.values[:45] == pytest.approx([100.0] * 45)
    assert alive.values[55:] == pytest.approx([10.0] * 45)


def test_terms_come_from_evaluations_where_training_logged_none(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0]})
    for step in (3000, 1000, 2000):
        keep(run, 0, step, success_rate=step / 4000)
    found = read(run)
    assert found.source == "evaluations"
    (one,) = found.seeds
    assert one.per_episode["alive"].steps.tolist() == [1000, 2000, 3000]
    assert one.per_step["energy"].values.tolist() == [-0.5] * 3
    assert one.task is not None
    assert one.task.values.tolist() == [0.25, 0.5, 0.75]


def test_the_reward_itself_is_no_task_metric(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0]})
    keep(run, 0, 1000)
    assert read(run).metric == ""


def test_the_return_of_another_evaluation_environment_is_one(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0]})
    keep(run, 0, 1000, protocol={"env": {"id": "CartPole-v1", "kwargs": {"hard": True}, "wrappers": []}})
    found = read(run)
    assert found.metric == "evaluation return"
    assert found.seeds[0].task is not None


def test_a_damaged_line_is_left_out_and_named(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [], 1: []})
    log_terms(run, 1, alive=lambda row: 1.0)
    (run.path / "seed_0/metrics.jsonl").write_text('{"step": 1, "reward/term/alive": 1}\nnot json\n')
    case = read_case(run)
    assert [len(seed.per_step["alive"]) for seed in case.reward_history.seeds] == [1, 10]
    assert "1 lines of metrics.jsonl are not rows of metrics" in case.seeds[0].missing


def test_a_torn_last_row_is_ignored(make_run: MakeRun) -> None:
    run = make_run(seeds={0: []})
    log_terms(run, 0, alive=lambda row: 1.0)
    with (run.path / "seed_0/metrics.jsonl").open("a") as stream:
        stream.write('{"step": 99')
    assert len(read(run).seeds[0].per_step["alive"]) == 10


def test_foreign_files_are_named_not_believed(make_run: MakeRun) -> None:
    run = make_run(seeds={0: []})
    (run.path / "seed_0/metrics.jsonl").write_text('{"step": "one", "reward/term/alive": 1.0}\n')
    (run.path / "eval/x").mkdir(parents=True)
    (run.path / "eval/x/seed_0_step_1.json").write_text("[1, 2]")
    case = read_case(run)
    assert not case.reward_history.has_terms
    assert case.missing == ("the evaluation x/seed_0_step_1.json cannot be read",)
    assert "1 rows of metrics.jsonl have no step" in case.seeds[0].missing


def test_not_a_number_survives_reading(make_run: MakeRun) -> None:
    run = make_run(seeds={0: []})
    log_terms(run, 0, broken=lambda row: float("nan") if row == 3 else 1.0)
    assert np.isnan(read(run).seeds[0].per_step["broken"].values[2])


def test_a_run_without_seeds_or_files_has_no_terms(make_run: MakeRun, tmp_path: Path) -> None:
    assert not read(make_run(seeds={})).has_terms
    assert not read(make_run("empty", seeds={0: []}, state="prepared")).has_terms
