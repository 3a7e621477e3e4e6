"""A run's folder is read whatever state it is in; what is missing is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rlx.diagnose.analyze import analyze
from rlx.diagnose.diagnose import diagnose
from rlx.diagnose.explain import explain
from rlx.diagnose.load_case import read_case
from rlx.diagnose.run_case import RETURN, RunCase
from rlx.diagnose.suggest import suggest
from rlx.diagnose.summarize import summarize
from rlx.runs.run import Run

MakeRun = Callable[..., Run]
RAMP = [float(value) for value in range(40)]


def everything(run: Run) -> RunCase:
    """Read a run and let everything that judges look at it: nothing may raise."""
    case = read_case(run)
    found = diagnose(case)
    analyze(case)
    explain(case)
    suggest(case, found, snapshot="x.yaml")
    summarize(case)
    return case


def notes(run: Run) -> str:
    return " | ".join(analyze(everything(run)).missing)


def test_series_and_status_are_read(make_run: MakeRun) -> None:
    case = everything(make_run(seeds={0: RAMP, 3: RAMP}))
    assert [seed.seed for seed in case.seeds] == [0, 3]
    assert case.seeds[0].state == "completed"
    assert list(case.seeds[0].values(RETURN)) == RAMP
    assert case.algorithm == "ppo"
    assert case.planned_steps == 200
    assert analyze(case).answer in ("still rising", "levelled off")


def test_what_the_catalog_reached_is_known_for_an_environment_as_it_is(make_run: MakeRun) -> None:
    assert read_case(make_run()).reachable == 475
    assert read_case(make_run("own", env="Own-v0")).reachable is None


def test_the_kind_of_the_error_says_that_a_rule_ended_the_seed_whatever_its_words(make_run: MakeRun) -> None:
    by_rule = make_run("a", state="failed", kind="StoppedByRule", reason="quite other words")
    by_error = make_run("b", state="failed", kind="ValueError", reason="stopped by rule: so says the program")
    assert read_case(by_rule).seeds[0].state == "stopped"
    assert read_case(by_error).seeds[0].state == "failed"


def test_a_run_without_metrics_says_so(make_run: MakeRun) -> None:
    run = make_run(seeds={0: RAMP})
    (run.path / "seed_0" / "metrics.jsonl").unlink()
    assert "seed 0: no metrics.jsonl" in notes(run)
    assert analyze(read_case(run)).answer == "unknown"


def test_empty_metrics_are_said_to_be_empty(make_run: MakeRun) -> None:
    run = make_run(seeds={0: RAMP})
    (run.path / "seed_0" / "metrics.jsonl").write_bytes(b"")
    assert "metrics.jsonl is empty" in notes(run)


def test_a_torn_line_costs_only_itself(make_run: MakeRun) -> None:
    run = make_run(seeds={0: RAMP})
    path = run.path / "seed_0" / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert "the last line of metrics.jsonl is torn" in notes(run)
    assert len(read_case(run).seeds[0].values(RETURN)) == len(RAMP) - 1


@pytest.mark.parametrize(
    "content",
    [
        b"step,return\n1,2\n3,4\n",
        b"\x00\xff\xfe binary \x80",
        b"[1, 2, 3]\n[4]\n",
        b'{"loss": 3}\n{"loss": 2}\n',
        b'{"step": "many", "rollout/return_mean": 1}\n',
        b'{"step": 1, "rollout/return_mean": {"a": 1}, "x": null, "y": [1]}\n',
    ],
)
def test_foreign_metrics_are_counted_not_raised(make_run: MakeRun, content: bytes) -> None:
    run = make_run(seeds={0: RAMP})
    (run.path / "seed_0" / "metrics.jsonl").write_bytes(content)
    case = everything(run)
    assert len(case.seeds[0].curve) == 0
    assert analyze(case).answer == "unknown"


@pytest.mark.parametrize("name", ["metadata.json", "config_snapshot.yaml", "seed_0/events.jsonl"])
@pytest.mark.parametrize("content", [b"", b"{not json", b"[]", b"a: [1", b"\xff\xfe"])
def test_any_damaged_file_leaves_the_rest_to_be_judged(make_run: MakeRun, name: str, content: bytes) -> None:
    run = make_run(seeds={0: RAMP})
    (run.path / name).write_bytes(content)
    assert analyze(everything(Run(run.path))).answer in ("still rising", "levelled off")


def test_a_damaged_evaluation_is_named(make_run: MakeRun) -> None:
    run = make_run(seeds={0: RAMP})
    folder = run.path / "eval" / "abc"
    folder.mkdir(parents=True)
    (folder / "seed_0_latest.json").write_bytes(b'{"mean": ')
    (folder / "random.json").write_bytes(b'{"mean": "many", "episodes": 3}')
    (folder / "list.json").write_bytes(b"[1]")
    assert "abc/seed_0_latest.json cannot be read" in notes(run)


def test_a_run_still_training_and_a_killed_one_say_so(make_run: MakeRun) -> None:
    assert "seed 0 running at step 4,000" in notes(make_run("live", seeds={0: RAMP}, state="running"))
    assert "seed 0 lost at step 4,000" in notes(make_run("dead", seeds={0: RAMP}, state="lost"))


def test_a_prepared_run_has_nothing_yet(make_run: MakeRun) -> None:
    case = everything(make_run(state="prepared"))
    assert analyze(case).answer == "unknown"


def test_a_run_without_seeds_says_so(make_run: MakeRun) -> None:
    assert "it has no seed folder" in notes(make_run(seeds={}))


def test_rows_trained_again_after_a_resume_replace_the_old_ones(make_run: MakeRun) -> None:
    run = make_run(seeds={0: RAMP})
    path = run.path / "seed_0" / "metrics.jsonl"
    with path.open("ab") as stream:
        stream.write(b'{"resume_from": 200, "time": 1}\n{"step": 300, "time": 1, "rollout/return_mean": 77}\n')
    assert list(read_case(run).seeds[0].values(RETURN)) == [0.0, 1.0, 77.0]


def test_nothing_in_the_folder_is_needed(tmp_path: Path) -> None:
    (tmp_path / "runs" / "bare_001" / "seed_0").mkdir(parents=True)
    case = everything(Run(tmp_path / "runs" / "bare_001"))
    assert case.name == "bare_001"
    assert diagnose(case).findings == ()


@pytest.mark.parametrize(("wrappers", "is_alike"), [([], False), ([{"name": "scale_reward", "kwargs": {}}], True)])
def test_evaluations_without_the_trainings_reward_wrapper_are_known_to_pay_otherwise(
    make_run: MakeRun, wrappers: list[object], is_alike: bool
) -> None:
    run = make_run(seeds={0: RAMP})
    config = run.path / "config_snapshot.yaml"
    config.write_text("env: {id: CartPole-v1, wrappers: [{name: scale_reward, kwargs: {}}]}\nalgo: {name: ppo}\n")
    folder = run.path / "eval" / "abc"
    folder.mkdir(parents=True)
    env = {"id": "CartPole-v1", "kwargs": {}, "wrappers": wrappers}
    document = {"mean": 9.0, "n": 5, "std": 1.0, "purpose": "report", "protocol": {"env": env}}
    (folder / "random.json").write_text(json.dumps(document))
    assert read_case(Run(run.path)).has_same_reward is is_alike
