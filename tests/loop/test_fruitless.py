"""Trainings and evaluations that leave no score: what is said, what is done next, what it costs; real processes."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from rlx.runs.run import Run
from tests.conftest import wait_until
from tests.loop.mill import Mill

pytestmark = pytest.mark.slow


@pytest.fixture
def mill(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Mill:
    """Return a mill whose pool is full."""
    return Mill.ready(tmp_path / "mill", tmp_path_factory)


@pytest.mark.parametrize(
    ("how", "code", "says"),
    [
        ("crash", 5, "KeyError: 'nothing works'"),
        ("mute", 6, "ValueError: there is nothing to measure"),
        ("nan", 6, "the success is nan"),
    ],
)
def test_a_baseline_without_any_score_stops_the_study_after_its_first_round(
    tmp_path: Path, how: str, code: int, says: str
) -> None:
    mill = Mill.built(tmp_path / "mill", how=how)
    assert says in mill.types("study", "baseline", code=code)["error"]
    state = mill.study.state()
    assert len(state.jobs) == 1
    assert (state.spent.seeds, state.reserved.seeds) == (6, 0)

    told = mill.types("next", "--full")
    assert (told["action"], told["command"]) == ("approve", "rlx study approve more --go-on")
    assert says in told["why"]
    assert not any(step["action"] in ("baseline", "propose") for step in told["also"])
    assert "a person is needed" in mill.types("study", "loop")["ended"]
    refused = mill.types("study", "baseline", code=4)
    assert "ESCALATED" in {one["code"] for one in refused["reasons"]}
    assert len(mill.study.state().jobs) == 1


@pytest.mark.parametrize(
    ("how", "code", "says"),
    [
        ("crash", 5, "KeyError: 'nothing works'"),
        ("mute", 0, "ValueError: there is nothing to measure"),
        ("nan", 0, "the success is nan"),
    ],
)
def test_a_candidate_without_any_score_is_to_be_mended_and_its_verdict_says_why(
    mill: Mill, how: str, code: int, says: str
) -> None:
    identity = mill.proposes(how=how)
    mill.trains(identity, code=code)
    judged = mill.types("verdict", identity)
    assert (judged["verdict"], judged["effect"], judged["p"]) == ("invalid", None, None)
    assert judged["reason"] == "none of the candidate's 3 seeds has a score"
    assert any(says in one for one in judged["objections"])
    assert mill.types("decide", identity)["decision"] == "debug"
    assert mill.types("decide", identity)["decision"] == "debug"
    (tried,) = mill.types("next", "--full")["recent"]
    assert (tried["state"], tried["effect"], tried["p"]) == ("debug", None, None)
    assert says in mill.prints("next", "--full")

    refused = mill.types("check", "candidate", identity, code=4)
    assert [one["code"] for one in refused["reasons"]] == ["UNCHANGED"]
    assert "differs by more than 1 %" in refused["reasons"][0]["says"]
    told = mill.types("next", "--full")
    assert told["action"] == "propose"
    assert not any(step["action"] in ("check", "launch", "mend") for step in told["also"])
    assert mill.types("study", "loop")["ended"].startswith("somebody must propose")
    assert len(mill.study.state().jobs) == 2


def test_why_all_seeds_failed_is_told_once_and_without_the_command(mill: Mill) -> None:
    identity = mill.proposes(how="crash")
    mill.trains(identity, code=5)
    says = "seeds 0, 1, 2 failed: the training command ended with exit code 1: KeyError: 'nothing works'"
    assert mill.types("verdict", identity)["objections"] == [says]


def test_seeds_of_the_baseline_that_cannot_be_measured_are_replaced(tmp_path: Path) -> None:
    mill = Mill.built(tmp_path / "mill", how="some mute")
    filled = mill.types("study", "baseline")
    assert list(filled["seeds"]) == ["1", "2", "3", "4", "5", "6"]
    assert mill.study.state().spent.seeds == 7
    assert mill.types("next", "--full")["action"] == "propose"


def test_a_run_of_which_one_seed_failed_is_not_called_completed(mill: Mill) -> None:
    identity = mill.proposes(how="some")
    run = mill.trains(identity, code=5)
    told = mill.types("wait", run, code=5)
    assert told["state"] == "failed"
    assert [one["state"] for one in told["seeds"]] == ["failed", "completed", "completed"]
    printed = mill.prints("wait", run, code=5)
    assert "KeyError: 'nothing works'" in printed
    assert "next: rlx next\n" in printed
    assert mill.types("next", "--full")["command"] == f"rlx decide {identity}"


def test_what_the_queue_did_says_why_it_was_refused_or_failed(mill: Mill) -> None:
    mill.proposes(how="crash")
    mill.proposes(how="mute")
    mill.proposes(gain=2)
    mill.types("study", "queue", *(word for one in ("c001", "c002", "c003") for word in ("--add", one)))
    mill.study.ledger.append("moved", candidate="c003", before="validated", after="draft", why="edited")
    did = mill.types("study", "queue", "--work")["did"]
    assert [(one["candidate"], one["phase"], one["outcome"]) for one in did] == [
        ("c001", "trial", "failed"), ("c002", "trial", "debug"), ("c003", "trial", "refused"),
    ]  # fmt: skip
    crashed, mute, refused = (one["why"] for one in did)
    assert any("KeyError: 'nothing works'" in one for one in crashed)
    assert any("there is nothing to measure" in one for one in mute)
    assert [one.partition(":")[0] for one in refused] == ["STATE"]
    mill.types("check", "candidate", "c003")
    mill.types("study", "queue", "--add", "c003")
    mill.study.ledger.append("moved", candidate="c003", before="validated", after="draft", why="edited")
    printed = mill.prints("study", "queue", "--work")
    assert "done: c003 (trial): refused\n  STATE: c003 is not checked" in printed


def ends_its_supervisor(mill: Mill, run: str) -> None:
    """Kill the supervisor of a run of which every seed has begun, and wait until it is gone."""
    path = mill.root / "runs" / run
    wait_until(lambda: all(seed.events for seed in Run(path).seeds))
    supervisor = Run(path).supervisor
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGKILL)
    wait_until(lambda: not Run(path).is_supervised and Run(path).status != "running")


@pytest.mark.parametrize("what", ["runs/{run}", "runs/{run}/seed_*", "runs/{run}/seed_*/events.jsonl"])
def test_a_run_that_is_removed_is_lost_and_was_paid_for(mill: Mill, what: str) -> None:
    identity = mill.proposes(how="stay")
    plan = mill.study.state().candidates[identity].plan
    launched = mill.types("launch", identity, "--plan", str(plan), "--seeds", "2")
    ends_its_supervisor(mill, launched["run"])
    refused = mill.types("rm", launched["run"], "--yes", code=4)
    assert (refused["error"], refused["hint"]) == (
        f"{launched['run']} is evidence of the study more: its ledger names it", "rlx study log more"
    )  # fmt: skip
    for path in mill.root.glob(what.format(run=launched["run"])):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    mill.types("next", "--full")

    job = mill.study.state().jobs[launched["job"]]
    assert (job.outcome, job.spent) == ("lost", job.reserve)
    assert launched["seeds"] == [0, 1]
    assert mill.types("study", "audit")["problems"] == []
