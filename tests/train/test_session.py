"""What a trainer talks to: rows, evaluations and checkpoints when they are due, and the end when it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlx import files
from rlx.config.load import parse
from rlx.config.schema import Experiment
from rlx.errors import JobFailed
from rlx.runs.checkpoints import checkpoint
from rlx.runs.checkpoints.checkpoint import Bundle
from rlx.runs.live import LiveSeed
from rlx.runs.run import Run, Seed
from rlx.runs.status import STOPPED_BY_RULE
from rlx.train.session import Session, StoppedByRule, resume_label
from rlx.train.trainer import train
from tests.evaluate.linear import GOOD, POOR, LinearPolicy


def experiment(**sections: Any) -> Experiment:
    return parse(
        {
            "run_name": "some",
            "env": {"id": "CartPole-v1"},
            "algo": {"name": "ppo", "total_timesteps": 100, "rollout_steps": 5, "batch_size": 40},
            "checkpoint": {"save_every": 40, "keep": 1},
            "eval": {"every": 50, "episodes": 2},
            **sections,
        }
    )


@pytest.fixture
def live(tmp_path: Path) -> LiveSeed:
    folder = tmp_path / "runs" / "some_001" / "seed_0"
    folder.mkdir(parents=True)
    return LiveSeed(folder, root=tmp_path)


def bundle(step: int) -> Bundle:
    return Bundle(
        step=step, backend="linear", algorithm="ppo", resume="exact", missing="", policy={"w": np.full(2, step)},
        optimizer={}, state={}, replay={"seen": np.zeros(3)}, spaces={},
    )  # fmt: skip


def drive(session: Session, steps: range, weights: tuple[float, ...] = GOOD) -> int:
    """Update step by step until the session says stop; return the last step."""
    for step in steps:
        policy = LinearPolicy(np.array(weights))
        if not session.after_update(step, lambda: {"x": 1.0}, policy=policy, snapshot=lambda step=step: bundle(step)):
            return step
    raise AssertionError("the session never said stop")


def test_a_whole_training_logs_evaluates_saves_and_reports(live: LiveSeed) -> None:
    session = Session(experiment(), live)
    assert drive(session, range(10, 200, 10)) == 100
    session.close()
    seed = Seed(0, live.folder)
    assert [row["step"] for row in seed.rows] == list(range(10, 101, 10))
    assert {"time/steps_per_second", "time/cpu_seconds", "time/memory_mb"} <= seed.rows[-1].keys()
    assert set(checkpoint.names(seed.checkpoints)) == {"latest", "best", "step_80"}
    names = {document["name"] for document in Run(live.folder.parent).evaluations()}
    assert names == {"seed_0_step_50", "seed_0_step_100", "seed_0_latest", "random"}
    assert session.is_complete


def test_the_report_stands_beside_the_random_and_the_untrained_policy(live: LiveSeed) -> None:
    session = Session(experiment(), live)
    session.begin(LinearPolicy(np.array(POOR)), lambda: bundle(0))
    drive(session, range(10, 200, 10))
    session.close()
    documents = {document["name"]: document for document in Run(live.folder.parent).evaluations()}
    report, untrained = documents["seed_0_latest"], documents["seed_0_untrained"]
    assert report["mean"] == 500.0 > report["untrained"]["mean"] == untrained["mean"]
    assert report["random"]["mean"] == documents["random"]["mean"] < 100
    assert report["fingerprint"] == untrained["fingerprint"] == documents["random"]["fingerprint"]
    assert (untrained["step"], untrained["seed"]) == (0, 0)


def test_the_untrained_policy_is_kept_without_what_only_training_needs_and_is_never_resumed(live: LiveSeed) -> None:
    session = Session(experiment(), live)
    session.begin(LinearPolicy(np.array(POOR)), lambda: bundle(0))
    session.close()
    kept = checkpoint.read(session.folder / "untrained")
    assert (kept.step, kept.replay, kept.optimizer, kept.resume) == (0, {}, {}, "warm")
    assert checkpoint.newest(session.folder) is None


def test_the_random_policy_is_measured_once_for_all_seeds_of_a_run(live: LiveSeed, tmp_path: Path) -> None:
    drive(first := Session(experiment(), live), range(10, 200, 10))
    first.close()
    (path,) = live.folder.parent.glob("eval/*/random.json")
    before = path.stat().st_mtime_ns
    (live.folder.parent / "seed_1").mkdir()
    second = Session(experiment(), LiveSeed(live.folder.parent / "seed_1", root=tmp_path))
    drive(second, range(10, 200, 10))
    second.close()
    assert path.stat().st_mtime_ns == before


def test_best_is_the_first_of_equals_and_a_worse_policy_does_not_replace_it(live: LiveSeed) -> None:
    session = Session(experiment(), live)
    assert session.after_update(50, dict, policy=LinearPolicy(np.array(GOOD)), snapshot=lambda: bundle(50))
    drive(session, range(60, 200, 10), weights=POOR)
    session.close()
    assert checkpoint.read(session.folder / "best").step == 50
    assert checkpoint.read(session.folder / "latest").step == 100


def test_a_stop_request_saves_latest_with_its_replay_buffer_and_ends(live: LiveSeed) -> None:
    session = Session(experiment(), live)
    live.request_stop("SIGTERM")
    assert drive(session, range(10, 200, 10)) == 10
    session.close()
    assert checkpoint.read(session.folder / "latest").step == 10
    assert checkpoint.read(session.folder / "latest").replay
    assert not session.is_complete


def test_a_judge_is_asked_now_and_then_and_ends_the_seed_with_latest_saved(live: LiveSeed) -> None:
    asked: list[int] = []

    def judge(step: int) -> str | None:
        asked.append(step)
        return "budget: 60 of 60 seconds are used" if step >= 60 else None

    session = Session(experiment(stop={"every": 30}), live, judge=judge)
    with pytest.raises(StoppedByRule, match="stopped by rule: budget") as caught:
        drive(session, range(10, 200, 10))
    assert type(caught.value).__name__ == STOPPED_BY_RULE
    session.close()
    assert asked == [30, 60]
    assert checkpoint.read(session.folder / "latest").step == 60
    *_, last = files.read_rows(live.folder / "events.jsonl")
    assert (last["event"], last["step"], last["reason"]) == ("stopped", 60, "budget: 60 of 60 seconds are used")


def test_an_interrupt_saves_the_boundary_it_is_given(live: LiveSeed) -> None:
    session = Session(experiment(), live)
    session.interrupt(lambda: bundle(30))
    assert session.step == 30
    assert checkpoint.read(session.folder / "latest").step == 30
    session.close()


def test_is_due_agrees_with_what_after_update_does(live: LiveSeed) -> None:
    session = Session(experiment(log={"every": 30}), live)
    policy = LinearPolicy(np.array(GOOD))
    due = []
    for step in range(1, 101):
        if session.is_due(step):
            due.append(step)
            session.after_update(step, dict, policy=policy, snapshot=lambda step=step: bundle(step))
    assert due == [30, 40, 50, 60, 80, 90, 100]
    session.close()


def test_a_resumed_session_goes_on_from_its_checkpoint(live: LiveSeed) -> None:
    first = Session(experiment(), live)
    live.request_stop("SIGTERM")
    drive(first, range(50, 60, 10))
    first.close()
    live.interrupted(50)
    live.close()
    again = LiveSeed(live.folder, root=live.root)
    session = Session(experiment(), again, checkpoint=checkpoint.newest(first.folder))
    drive(session, range(60, 200, 10), weights=POOR)
    session.close()
    seed = Seed(0, live.folder)
    assert [row["step"] for row in seed.rows] == [50, 60, 70, 80, 90, 100]
    resumed = next(event for event in seed.events if event["event"] == "resumed")
    assert (resumed["step"], resumed["label"]) == (50, "exact")
    assert checkpoint.read(session.folder / "best").step == 50
    again.close()


def test_a_resume_with_other_code_or_versions_is_not_called_exact(live: LiveSeed) -> None:
    session = Session(experiment(), live)
    session.interrupt(lambda: bundle(30))
    session.close()
    saved = checkpoint.read(session.folder / "latest")
    same = [{"code_sha256": "a"}] * 2
    assert resume_label(saved, attempts=same, config=saved.config) == ("exact", "")
    edited = [{"code_sha256": "a"}, {"code_sha256": "b"}]
    label, missing = resume_label(saved, attempts=edited, config=saved.config)
    assert label == "warm"
    assert "code" in missing
    other = {**saved.config, "algo": {**saved.config["algo"], "gamma": 0.5}, "log": {"every": 7}}
    assert resume_label(saved, attempts=same, config=other) == ("warm", "changed since: algo.gamma")
    saved.manifest["versions"]["numpy"] = "1.0"
    assert "numpy 1.0 →" in resume_label(saved, attempts=same, config=saved.config)[1]


def test_a_project_that_was_moved_ends_the_training_and_is_not_written_twice(live: LiveSeed) -> None:
    session = Session(experiment(), live)
    live.root.joinpath("runs").rename(live.root / "elsewhere")
    with pytest.raises(JobFailed, match="moved"):
        drive(session, range(10, 200, 10))
    assert not live.root.joinpath("runs").exists()
    session.close()


def test_progress_is_a_sign_of_life(live: LiveSeed) -> None:
    session = Session(experiment(), live)
    session.progress(17, 3.5)
    assert b'"step":17' in (live.folder / "heartbeat").read_bytes()
    session.close()


class Killed(BaseException):
    """Ends an attempt at once, without a record."""


def attempt(folder: Path) -> None:
    """Train a small policy as a worker does, from the newest checkpoint."""
    algo = {"name": "ppo", "total_timesteps": 128, "rollout_steps": 32, "batch_size": 64, "update_epochs": 1}
    small = experiment(
        algo=algo, env={"id": "CartPole-v1", "num_envs": 2}, backend="fast", policy={"hidden_sizes": [4]}
    )
    live = LiveSeed(folder, root=folder.parents[2])
    session = Session(small, live, checkpoint=checkpoint.newest(folder / "checkpoints"))
    try:
        train(small, [session])
        live.completed(session.step)
    finally:
        session.close()
        live.close()


@pytest.mark.parametrize("moment", ["report", "completed", "link"])
def test_a_seed_killed_after_its_last_checkpoint_gets_its_report_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    whole, killed = (tmp_path / "runs" / name / "seed_0" for name in ("whole_001", "killed_001"))
    for folder in (whole, killed):
        folder.mkdir(parents=True)
    attempt(whole)

    def kill(*_: object, **__: object) -> None:
        if moment != "link" or Seed(0, killed).events[-1].get("step") == 128:
            raise Killed

    owner = {"report": Session, "completed": LiveSeed, "link": checkpoint}[moment]
    real = getattr(owner, moment)
    with monkeypatch.context() as patch:
        patch.setattr(owner, moment, lambda *words: kill() or real(*words))
        with pytest.raises(Killed):
            attempt(killed)
    attempt(killed)

    assert [event["event"] for event in Seed(0, killed).events].count("reported") == 1
    steps, reports = [], []
    for folder in (whole, killed):
        steps.append(checkpoint.read(folder / "checkpoints" / "best").step)
        documents = {document["name"]: document for document in Run(folder.parent).evaluations()}
        reports.append(documents["seed_0_latest"]["episodes"])
    assert reports[0] == reports[1]
    assert steps[0] == steps[1]
