"""Sweeps with real trainings: the whole path, kill -9, two resumes, stop, failures, and files of rlx-workbench."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlx.config.load import group_hash, load
from rlx.loop.sweep.sweep_log import SweepLog, free_name
from rlx.loop.sweep.trial_runs import TrialRuns
from rlx.runs.run import Run
from tests.conftest import Project, wait_until

RATE = "algo.learning_rate=log:1e-4:1e-1"
SMALL = {"total_timesteps": 512, "rollout_steps": 32}


def tiny(project: Project, name: str = "tiny", **sections: Any) -> str:
    return project.config(
        name, algo={**SMALL, **sections.pop("algo", {})}, eval={"every": 512, "episodes": 2}, **sections
    )


def sweep_log(project: Project, name: str) -> SweepLog:
    return SweepLog(project.root / ".rlx" / "sweeps" / name)


def shown(project: Project, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(project.rlx("sweep", "show", name, "--json").stdout)
    return document


def test_a_sweep_goes_from_the_search_to_a_confirmed_winner(project: Project) -> None:
    config = tiny(project, policy={"hidden_sizes": [8]})
    words = ("-p", RATE, "-p", "policy.hidden_sizes=[8],[16]", "--trials", "6", "--name", "whole", "--race", "2,3")
    preview = [project.rlx("sweep", config, *words, "--dry-run", "--json").stdout for _ in range(2)]
    done = project.rlx("sweep", config, *words, "--audit-pruning", "-s", "algo.gamma=0.95")

    assert preview[0] == preview[1]
    assert "confirmed" in done.stdout
    data = shown(project, "whole")
    assert data["state"] == "completed"
    assert len(data["trials"]) == 6
    assert len({str(row["values"]) for row in data["trials"]}) == 6
    assert data["winner"]["audit"] is not None
    assert {row["state"] for row in data["trials"]} == {"finished", "dropped"}
    assert all(project.run(row["run"]).metadata["lineage"]["sweep"] == "whole" for row in data["trials"])
    winner = next(row for row in data["trials"] if row["trial"] == data["winner"]["trial"])
    best = load(project.root / data["best_config"])
    assert best.algo.gamma == 0.95
    assert group_hash(best) == project.run(winner["run"]).metadata["group_hash"] or best.backend == "auto"
    assert yaml.safe_load((project.root / data["best_config"]).read_text())["extends"].endswith("tiny.yaml")
    if data["confirmation"]["why"] != "base":
        assert data["confirmation"]["optimism"] is not None
        assert min(seed.number for seed in project.run(data["confirmation"]["runs"][0]).seeds) >= 1000
    project.rlx("sweep", "show", "whole", "--plot")
    for picture in ("parallel.png", "importance.png"):
        assert (project.root / ".rlx" / "sweeps" / "whole" / picture).stat().st_size > 5000
    assert "whole" in project.rlx("sweep", "ls").stdout
    events = len(sweep_log(project, "whole").ledger.events())
    project.rlx("sweep", "resume", "whole")  # it is over: nothing changes
    assert len(sweep_log(project, "whole").ledger.events()) == events
    project.rlx("sweep", config, *words, code=2)


def test_halving_continues_a_trial_exactly(project: Project) -> None:
    config = tiny(project)
    project.rlx("sweep", config, "-p", "algo.gamma=0.9,0.95,0.99", "--trials", "3", "--name", "h", "--race", "0",
                "--confirm", "0", "--halving", "0.3,0.6,1")  # fmt: skip
    data = shown(project, "h")
    winner = next(row for row in data["trials"] if row["share"] == 1.0)
    run = project.run(winner["run"])
    resumed = [event for event in run.seed(0).events if event["event"] == "resumed"]

    assert [event["label"] for event in resumed] == ["exact", "exact"]
    gamma = winner["values"]["algo.gamma"]
    project.rlx("train", config, "-s", f"algo.gamma={gamma}", "-s", "run_name=straight")
    assert _returns(project.run("straight_001")) == _returns(run)
    assert "no confirmation was planned" in data["confirmation"]["line"] or data["confirmation"]["why"] == "base"


def _returns(run: Run) -> list[float]:
    reports = [document for document in run.evaluations() if document["name"] == "seed_0_latest"]
    return [episode["return"] for episode in reports[0]["episodes"]]


def test_kill_nine_loses_no_finished_trial_and_repeats_none(project: Project) -> None:
    config = tiny(project)
    first = ("sweep", config, "-p", RATE, "--trials", "8", "--name", "k", "--race", "2", "--confirm", "0")
    words: tuple[str, ...] = first
    ledger = project.root / ".rlx" / "sweeps" / "k" / "ledger.jsonl"
    for wait in (0.9, 1.4, 2.0, 1.2):
        child = project.start(*words)
        time.sleep(wait)
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
        if ledger.exists() and sweep_log(project, "k").ledger.events():
            words = ("sweep", "resume", "k")
    running = project.start(*words)
    wait_until(lambda: (ledger.exists() and sweep_log(project, "k").is_running) or running.poll() is not None)
    if running.poll() is None:
        refused = project.rlx("sweep", "resume", "k", code=None)
        assert refused.returncode in (4, 0)  # 0: the first one was over already
        if refused.returncode:
            assert "another process is running the sweep" in refused.stderr
    running.communicate(timeout=120)
    assert running.returncode == 0

    state = sweep_log(project, "k").state()
    assert state.is_over
    assert len(state.trials) == 8
    assert len({str(values) for values in state.trials.values()}) == 8
    trials = [project.run(name).metadata["lineage"].get("trial") for name in project.runs()]
    assert sorted(trials) == list(range(8)), {job: ended.reason for job, ended in state.scores.items() if ended.reason}
    for name in project.runs():
        for seed in project.run(name).seeds:
            assert sum(event["event"] == "completed" for event in seed.events) <= 1


def test_stop_is_clean_and_resume_goes_on(project: Project) -> None:
    config = tiny(project, algo={"total_timesteps": 4096})
    child = project.start("sweep", config, "-p", RATE, "--trials", "4", "--name", "s", "--race", "0", "--confirm", "0")
    ledger = project.root / ".rlx" / "sweeps" / "s" / "ledger.jsonl"
    wait_until(
        lambda: ledger.exists() and any(event.kind == "run" for event in sweep_log(project, "s").ledger.events())
    )
    stopped = project.rlx("sweep", "stop", "s")
    output = child.communicate(timeout=60)

    assert child.returncode == 130
    assert "rlx sweep resume s" in output[1]
    assert "stopped" in stopped.stdout
    assert all(project.run(name).status != "running" for name in project.runs())
    project.rlx("sweep", "resume", "s")
    assert sweep_log(project, "s").state().is_over


def test_crashes_are_information_and_a_base_that_cannot_train_is_one_line(project: Project) -> None:
    project.write(
        "envs/fragile.py",
        "import gymnasium\n\n\nclass Fragile(gymnasium.Wrapper):\n"
        "    def __init__(self, env, limit=1.0):\n        super().__init__(env)\n        self.limit = limit\n\n"
        "    def reset(self, **given):\n"
        "        if self.limit > 0.5:\n            raise MemoryError('out of memory')\n"
        "        return super().reset(**given)\n",
    )
    config = tiny(project, backend="auto")
    data = yaml.safe_load((project.root / config).read_text())
    data["env"]["wrappers"] = [{"name": "envs/fragile.py:Fragile", "kwargs": {"limit": 0.1}}]
    (project.root / config).write_text(yaml.safe_dump(data))
    wrapper = "[{{name: envs/fragile.py:Fragile, kwargs: {{limit: {}}}}}]"
    values = f"env.wrappers={wrapper.format(0.1)},{wrapper.format(0.9)}"
    project.rlx("sweep", config, "-p", values, "--trials", "2", "--name", "f", "--race", "0", "--confirm", "0")
    failed = [row for row in shown(project, "f")["trials"] if row["state"] == "failed"]

    assert len(failed) == 1
    assert "memory" in failed[0]["reason"]

    broken = project.rlx("sweep", config, "-p", RATE, "-s", "env.id=Nowhere-v0", code=3)
    assert "the base config does not train" in broken.stderr
    assert "hint:" in broken.stderr


def test_a_full_disk_stops_the_sweep_and_is_not_a_failed_trial(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rlx.errors import RlxError
    from rlx.loop.sweep import run_sweep
    from rlx.loop.sweep.sweep_file import SweepRequest, plan_for, read_parameters
    from rlx.loop.sweep.sweep_plan import SweepBudget

    config = tiny(project)
    request = SweepRequest(
        str(project.root / config), read_parameters([RATE]), name="d", budget=SweepBudget(trials=2),
        options={"confirm": 0, "race": False},
    )  # fmt: skip
    plan = plan_for(request, root=project.root)
    monkeypatch.setattr(TrialRuns, "_refuse_full_disk", _full)
    with pytest.raises(RlxError, match="the disk is full"):
        run_sweep.start(plan, root=project.root, report=lambda _progress: None, say=lambda _text: None)
    monkeypatch.undo()
    assert sweep_log(project, "d").state().scores == {}
    project.rlx("sweep", "resume", "d")
    assert sweep_log(project, "d").state().is_over


def _full(_trials: object) -> None:
    from rlx.errors import RlxError

    raise RlxError("the disk is full", hint="free some space")


def test_a_sweep_file_of_rlx_workbench_runs_unchanged(project: Project) -> None:
    tiny(project, "cartpole")
    path = project.write(
        "configs/sweep.yaml",
        "name: lr_grid\nbase_config: configs/cartpole.yaml\ntags: [grid]\nfixed:\n  algo.gamma: 0.97\n"
        "grid:\n  seed: [42, 123]\n  algo.learning_rate: [0.0003, 0.001]\n",
    )
    done = project.rlx("sweep", str(path.relative_to(project.root)), "--confirm", "0", "--race", "2")
    data = shown(project, "lr_grid")

    assert "`seed` is not a parameter" in done.stderr
    assert sorted(row["values"]["algo.learning_rate"] for row in data["trials"]) == [0.0003, 0.001]
    assert all(project.run(row["run"]).tags == ("grid",) for row in data["trials"])
    assert all(project.run(row["run"]).config["algo"]["gamma"] == 0.97 for row in data["trials"])


def test_a_warm_sweep_reuses_earlier_runs(project: Project) -> None:
    config = tiny(project)
    project.rlx("train", config, "-s", "algo.learning_rate=0.01")
    project.rlx("sweep", config, "-p", "algo.learning_rate=0.01,0.001,0.0003", "--trials", "2", "--name", "w", "--warm",
                "--race", "0", "--confirm", "0", "--halving", "1")  # fmt: skip
    rows = {row["values"]["algo.learning_rate"]: row for row in shown(project, "w")["trials"]}

    assert rows[0.01]["run"] == "tiny_001"
    assert len(rows) == 2
    assert sum(event["event"] == "completed" for event in project.run("tiny_001").seed(0).events) == 1


def test_rlx_sweep_from_python(project: Project) -> None:
    data = yaml.safe_load((project.root / tiny(project)).read_text())
    script = (
        "import json, rlx\n"
        f"data = {data!r}\n"
        "found = rlx.sweep(data, {'algo.gamma': [0.9, 0.99]}, trials=2, name='py', race=False, confirm=0)\n"
        "assert rlx.sweep(data, {'algo.gamma': [0.9, 0.99]}, name='py') == found\n"
        "print(json.dumps(found))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], cwd=project.root, env=project.environment(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    assert found["state"] == "completed"
    assert load(project.root / found["best_config"]).algo.gamma == found["winner_values"]["algo.gamma"]


def test_a_name_that_is_in_use_is_not_given_again(tmp_path: Path) -> None:
    (tmp_path / "advisor_cartpole_001").mkdir()
    assert free_name("advisor_cartpole", folder=tmp_path) == "advisor_cartpole_002"
