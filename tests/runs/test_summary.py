from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rlx import files
from rlx.runs import store
from rlx.runs.metrics import MetricsWriter
from rlx.runs.run import Run
from rlx.runs.summary import costs, cpu_seconds, final_returns, spread, summarize, summary, trained_seconds

MakeRun = Callable[..., Run]


def evaluate(run: Run, fingerprint: str, name: str, mean: float, *, purpose: str = "report") -> None:
    store.save_evaluation(run.path, fingerprint, name, {"purpose": purpose, "mean": mean})


def test_describes_a_run_over_its_seeds(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0, 10.0], 3: [1.0, 20.0], 1: [0.0, 30.0]})
    store.tag(run, "baseline")

    described = summary(Run(run.path))

    assert described["name"] == "cartpole_001"
    assert described["status"] == "completed"
    assert (described["env"], described["algo"], described["backend"]) == ("CartPole-v1", "ppo", "sb3")
    assert (described["seeds"], described["tally"]) == (3, "3 completed")
    assert (described["steps"], described["planned_steps"]) == (200, 200)
    assert described["return"] == {
        "mean": 20.0, "sd": 10.0, "n": 3, "best": 30.0, "source": "rollout/return_mean", "metric": "return",
        "values": [10.0, 30.0, 20.0],
    }  # fmt: skip
    assert described["tags"] == ["baseline"]
    assert described["seconds"] == 60.0


def test_report_evaluation_of_latest_beats_best_and_training_returns(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0], 1: [2.0]})
    evaluate(run, "select", "seed_0_step_100", 500.0, purpose="selection")
    evaluate(run, "report", "seed_0_best", 100.0)
    evaluate(run, "report", "seed_0_latest", 90.0)
    evaluate(run, "report", "seed_1_best", 80.0)
    evaluate(run, "report", "seed_1_step_100", 5.0)

    described = summary(run)["return"]

    assert described["source"] == "report evaluation"
    assert described["values"] == [90.0, 80.0]


def test_the_report_protocol_with_most_seeds_is_shown_and_the_newest_of_equals(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0], 1: [2.0]})
    evaluate(run, "aaa", "seed_0_latest", 1.0)
    evaluate(run, "aaa", "seed_1_latest", 2.0)
    evaluate(run, "zzz", "seed_0_latest", 9.0)
    assert final_returns(run).fingerprint == "aaa"

    evaluate(run, "zzz", "seed_1_latest", 9.0)
    os.utime(run.path / "eval" / "aaa", (1e9, 1e9))
    assert final_returns(run).fingerprint == "zzz"


def test_the_protocol_that_training_reported_under_is_shown_whatever_was_evaluated_later(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0], 1: [2.0]})
    for seed in (0, 1):
        row = {"event": "reported", "time": 1.0, "step": 100, "fingerprint": "own"}
        files.append_line(run.path / f"seed_{seed}" / "events.jsonl", files.encode(row))
        evaluate(run, "own", f"seed_{seed}_latest", 1.0)
        evaluate(run, "zzz", f"seed_{seed}_latest", 9.0)
    run = Run(run.path)
    assert run.own_protocol == "own"
    assert (final_returns(run).fingerprint, summary(run)["return"]["mean"]) == ("own", 1.0)


def test_a_seed_without_report_is_left_out_rather_than_mixed_in(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0], 1: [2.0]})
    evaluate(run, "r", "seed_1_latest", 50.0)

    described = summary(run)["return"]

    assert (described["mean"], described["n"], described["sd"]) == (50.0, 1, None)


def test_spread_of_nothing_is_nothing() -> None:
    assert spread([None, None], source="x") is None


def test_seconds_leave_out_the_pause_between_attempts_and_count_a_killed_one_to_its_last_sign(
    make_run: MakeRun,
) -> None:
    run = make_run(seeds={0: [1.0]}, state="prepared")
    folder = run.path / "seed_0"
    for event in [
        {"event": "started", "time": 100.0},
        {"event": "evaluated", "time": 130.0, "step": 100, "mean": 1.0},
        {"event": "started", "time": 1000.0},
        {"event": "interrupted", "time": 1020.0},
        {"event": "started", "time": 5000.0, "process": {"place": "elsewhere", "pid": 1, "started": "1"}},
    ]:
        files.append_line(folder / "events.jsonl", files.encode(event))
    (folder / "heartbeat").touch()
    os.utime(folder / "heartbeat", (5007.0, 5007.0))

    (seed,) = Run(run.path).seeds

    assert seed.status.state == "lost"
    assert trained_seconds(seed) == pytest.approx(30 + 20 + 7, abs=0.1)


def test_a_running_seed_counts_until_now(make_run: MakeRun) -> None:
    run = make_run(state="running", seeds={0: [1.0]})
    events = run.path / "seed_0" / "events.jsonl"
    (started,) = files.read_rows(events)
    events.write_bytes(files.encode({**started, "time": time.time() - 50}) + b"\n")

    assert 49 < summary(Run(run.path))["seconds"] < 60


def test_a_script_run_without_env_algorithm_or_plan_is_described(tmp_path: Path) -> None:
    run = store.create(
        tmp_path, name="mine", snapshot="algo: my own\n", metadata={"env": None, "algorithm": None}, seeds=[0]
    )

    described = summarize(run.path)

    assert (described["status"], described["env"], described["algo"]) == ("prepared", "", "")
    assert described["planned_steps"] == 0


def test_the_reason_of_the_first_seed_that_has_one_is_shown(make_run: MakeRun) -> None:
    run = make_run(state="failed", seeds={0: [1.0], 1: [2.0]}, reason="ValueError: loss is NaN at step 128")

    assert summary(run)["reason"] == "ValueError: loss is NaN at step 128"


def test_a_vanished_folder_is_broken_rather_than_an_exception(tmp_path: Path) -> None:
    assert summarize(tmp_path / "nowhere")["status"] == "broken"


def test_cpu_time_adds_up_over_attempts(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0], 1: [1.0]})
    writer = MetricsWriter(run.path / "seed_0" / "metrics.jsonl")
    for step, spent in ((200, 3.0), (300, 7.0), (400, 2.0), (500, 5.0)):
        writer.write(step, {"time/cpu_seconds": spent})
    writer.close()
    assert [cpu_seconds(seed) for seed in run.seeds] == [12.0, None]


def test_seeds_that_one_process_trained_together_share_its_cost(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0], 1: [1.0]})  # both by one process, for a minute
    for seed in run.seeds:
        writer = MetricsWriter(seed.metrics_path)
        writer.write(200, {"time/cpu_seconds": 8.0})
        writer.close()
    assert [(cost.seconds, cost.cpu_seconds) for cost in costs(Run(run.path)).values()] == [(30.0, 4.0), (30.0, 4.0)]
    alone = make_run("alone", seeds={0: [1.0]})
    assert [(cost.seconds, cost.cpu_seconds) for cost in costs(alone).values()] == [(60.0, None)]
