"""A repository's own training program is a run like any other: metrics, log, checkpoint, stop, resume, failure."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlx.config.load import load
from rlx.errors import JobFailed
from rlx.launch import launch
from rlx.runs import process
from rlx.runs.checkpoints import foreign_checkpoint
from rlx.runs.live import LiveSeed
from rlx.runs.run import Run
from rlx.train.backends.command import training_process
from rlx.train.session import Session
from rlx.train.trainer import trainer_for
from tests.conftest import Project, wait_until

pytestmark = pytest.mark.slow

TRAIN = """
import argparse, json, os, pathlib, signal, sys, time
import helper
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int); parser.add_argument("--out"); parser.add_argument("--steps", type=int)
parser.add_argument("--rate", type=float, default=1.0); parser.add_argument("--go", default="well")
parser.add_argument("--from-checkpoint")
args = parser.parse_args()
out = pathlib.Path(args.out)
start = json.loads(pathlib.Path(args.from_checkpoint).read_text())["step"] if args.from_checkpoint else 0
print("where", os.getcwd(), helper.__file__, flush=True)
if args.go == "noisy":
    print("x" * 200 + "\\n", end="", flush=True)
def save(step):
    if args.go != "unsaved":
        (out / "policy.json").write_text(json.dumps({"seed": args.seed, "step": step, "rate": args.rate}))
def on_term(number, frame):
    save(step)
    sys.exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN if args.go == "deaf" else on_term)
for step in range(start + 10, args.steps + 1, 10):
    if args.go != "silent":
        with open(out / "log.jsonl", "a") as log:
            log.write(json.dumps({"step": step, "reward": step * args.rate + args.seed}) + "\\n")
    if args.go in ("on", "deaf"):
        time.sleep(0.05)
if args.go == "badly":
    raise ValueError("the arm fell off")
if args.go == "child":
    import subprocess
    child = subprocess.Popen([sys.executable, "-c", "import os, time; os.setsid(); time.sleep(600)"])
    (out / "child").write_text(str(child.pid))
save(args.steps)
"""


def config(project: Project, name: str = "own", steps: int = 100, **section: Any) -> str:
    command: dict[str, Any] = {
        "train": ["python", "tools/train.py", "--seed={seed}", "--out={out}", "--steps={steps}", "{overrides}"],
        "override": "--{key} {value}",
        "metrics": {"reader": "jsonl", "path": "{out}/log.jsonl", "names": {"rollout/return_mean": "reward"}},
        "checkpoint": "{out}/policy.json",
        "python_path": ["lib", "."],
        **section,
    }
    document = {"run_name": name, "backend": "command", "algo": {"total_timesteps": steps}, "command": command}
    project.write(f"configs/{name}.yaml", yaml.safe_dump(document))
    project.write("tools/train.py", TRAIN)
    project.write("lib/helper.py", "")
    return f"configs/{name}.yaml"


def test_a_program_is_trained_on_several_seeds_and_its_figures_are_the_runs(project: Project) -> None:
    said = project.rlx("train", config(project, overrides={"rate": 0.5}), "--seeds", "2")
    run = project.run("own_001")
    assert run.status == "completed", said.stderr
    for seed in run.seeds:
        assert seed.step == 100
        assert list(seed.series("rollout/return_mean").values)[-1] == 50.0 + seed.number
        kept = foreign_checkpoint.find(seed.checkpoints)
        assert kept is not None
        assert json.loads(kept.path.read_text()) == {"seed": seed.number, "step": 100, "rate": 0.5}
        assert foreign_checkpoint.weights_sha256(seed) == kept.sha256
    assert foreign_checkpoint.weights_sha256(run.seeds[0]) != foreign_checkpoint.weights_sha256(run.seeds[1])
    log = (run.path / "logs" / "seed_0.log").read_text()
    assert f"where {project.root} {project.root / 'lib' / 'helper.py'}" in log


def test_other_commands_take_such_a_run_as_it_is(project: Project) -> None:
    project.rlx("train", config(project))
    assert json.loads(project.rlx("ls", "--json").stdout)["runs"][0]["backend"] == "command"
    assert "latest_foreign" in project.rlx("info", "own_001").stdout
    for words in (("watch",), ("logs",), ("diagnose",), ("analyze",), ("suggest",), ("summarize",), ("plot",)):
        project.rlx(*words, "own_001", code=None)
    refused = project.rlx("eval", "own_001", code=2).stderr
    assert "trained by a command of your own: rlx cannot open its checkpoints" in refused
    project.rlx("resume", "own_001", "--prove", code=2)
    project.rlx("resume", "own_001", "--fork", code=2)
    assert "total_timesteps" in project.rlx("config", "show", "own_001").stdout
    assert project.rlx("config", "check", "configs/own.yaml").stdout.count("fine") == 1


def test_what_only_its_own_program_loads_is_neither_probed_nor_called_altered(project: Project) -> None:
    project.rlx("train", config(project))
    for words in ("probe own_001 mass=1:2:2", "probe own_001:latest_foreign mass=1:2:2", "stress own_001"):
        refused = project.rlx(*words.split(), code=2).stderr
        assert "own_001 is trained by a command of your own: rlx cannot open its checkpoints" in refused
    assert "reward/term/NAME=" in project.rlx("reflect", "own_001", code=3).stderr


@pytest.mark.parametrize(
    ("go", "reason"),
    [
        (
            "badly",
            "the training command ended with exit code 1: ValueError: the arm fell off",
        ),
        ("silent", r"stale or missing metric: the command ended well, but .*log.jsonl does not exist"),
        (
            "unsaved",
            r"missing checkpoint: the command ended well, but wrote no new .*policy.json; .*output has log.jsonl",
        ),
    ],
)
def test_what_fails_or_leaves_nothing_behind_is_no_training(project: Project, go: str, reason: str) -> None:
    done = project.rlx("train", config(project, overrides={"go": go}), code=5)
    run = project.run("own_001")
    assert run.status == "failed"
    import re

    assert re.search(reason, run.seeds[0].status.reason), run.seeds[0].status.reason
    assert re.search(reason, done.stderr)


def test_what_lay_there_before_counts_neither_as_figures_nor_as_a_checkpoint(project: Project) -> None:
    where = {"path": str(project.root / "log.jsonl"), "reader": "jsonl"}
    path = config(project, overrides={"go": "silent"}, metrics=where)
    project.write("log.jsonl", '{"step": 90, "reward": 1e9}\n')
    project.rlx("train", path, code=5)
    assert "stale or missing metric" in project.run("own_001").seeds[0].status.reason
    assert project.run("own_001").seeds[0].rows == []
    path = config(project, checkpoint="old.json")
    project.write("old.json", "{}")
    project.rlx("train", path, code=5)
    assert "stale or missing checkpoint" in project.run("own_002").seeds[0].status.reason


def test_printed_figures_and_other_readers_serve_as_well(project: Project) -> None:
    pattern = {"reader": "stdout", "pattern": r"at (?P<step>\d+) got (?P<gain>\S+)"}
    train = ["python", "-c", "import sys; print('at', sys.argv[1], 'got nan')", "{seed}"]
    project.rlx("train", config(project, train=train, metrics=pattern, checkpoint=""), "--seeds", "7,")
    (row,) = project.run("own_001").seeds[0].rows
    assert (row["step"], row["gain"]) == (7, "NaN")


def test_a_stopped_program_is_told_and_a_resumed_one_says_how_it_began(project: Project) -> None:
    project.rlx("train", config(project, steps=100_000, overrides={"go": "on"}), "--detach")
    wait_until(lambda: project.run("own_001").seeds[0].last("rollout/return_mean"))
    project.rlx("stop", "own_001")
    run = project.run("own_001")
    assert run.status == "interrupted"
    assert foreign_checkpoint.find(run.seeds[0].checkpoints) is not None
    project.rlx("resume", "own_001", "--detach")
    wait_until(lambda: any(event["event"] == "resumed" for event in project.run("own_001").seeds[0].events))
    wait_until(lambda: project.run("own_001").seeds[0].rows)
    assert project.run("own_001").seeds[0].rows[0]["step"] == 10
    assert (run.seeds[0].folder / "output_1" / "log.jsonl").exists()
    project.rlx("stop", "own_001")
    assert "resumed anew from step 0" in project.rlx("info", "own_001").stdout


def test_a_program_that_can_go_on_goes_on_and_is_called_warm(project: Project) -> None:
    again = [
        "python",
        "tools/train.py",
        "--seed={seed}",
        "--out={out}",
        "--steps={steps}",
        "--from-checkpoint={checkpoint}",
    ]
    project.rlx("train", config(project, steps=100_000, overrides={"go": "on"}, resume=again), "--detach")
    wait_until(lambda: project.run("own_001").seeds[0].last("rollout/return_mean"))
    project.rlx("stop", "own_001")
    stopped = project.run("own_001").seeds[0].step
    done = project.rlx("resume", "own_001")
    seed = project.run("own_001").seeds[0]
    assert "resumed warm from step" in done.stdout
    assert seed.status.state == "completed"
    assert [row["step"] for row in seed.rows] == list(range(10, 100_001, 10))
    assert stopped < 100_000


def test_a_program_that_does_not_listen_is_killed(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_process, "GRACE_SECONDS", 0.5)
    experiment = load(project.root / config(project, steps=100_000, overrides={"go": "deaf"}, minutes=0.02))
    run = launch.create(experiment, root=project.root)
    live = LiveSeed(run.path / "seed_0", root=project.root)
    session = Session(experiment, live)
    with pytest.raises(JobFailed, match=r"timeout: longer than 0\.02 minutes"):
        trainer_for(experiment).train(session)
    session.close()
    live.close()
    assert not _writers(run.path / "seed_0" / "output" / "log.jsonl")


def test_what_a_program_leaves_behind_is_killed(project: Project) -> None:
    project.rlx("train", config(project, overrides={"go": "child"}))
    child = int((project.run("own_001").seeds[0].folder / "output" / "child").read_text())
    assert not process.is_alive(process.identify(child)) or not process.identify(child).started


def test_a_killed_worker_takes_its_program_along(project: Project) -> None:
    project.rlx("train", config(project, steps=100_000, overrides={"go": "on"}), "--detach")
    wait_until(lambda: project.run("own_001").seeds[0].last("rollout/return_mean"))
    started = next(event for event in project.run("own_001").seeds[0].events if event["event"] == "started")
    os.kill(started["process"]["pid"], signal.SIGKILL)
    project.rlx("wait", "own_001", code=None)
    assert project.run("own_001").status == "lost"
    log = project.run("own_001").seeds[0].folder / "output" / "log.jsonl"
    size = log.stat().st_size
    wait_until(lambda: not _writers(log))
    assert log.stat().st_size - size < 10_000


def _writers(log: Path) -> list[str]:
    """Return the processes whose command line names the log's folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes()
        except OSError:
            continue
        if os.fsencode(log.parent) in words:
            found.append(entry.parent.name)
    return found


def test_a_rule_of_the_config_ends_the_program(project: Project) -> None:
    path = config(project, steps=100_000, overrides={"go": "on", "rate": 0.0})
    limits = ("-s", "stop.plateau.steps=300", "-s", "stop.every=100")
    done = project.rlx("train", path, *limits, code=5, timeout=120)
    assert "stopped by rule" in done.stderr
    assert isinstance(project.run("own_001"), Run)


def test_seeds_that_train_at_once_meet_at_different_ports(project: Project) -> None:
    meet = """
import argparse, json, os, pathlib, socket, time
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int); parser.add_argument("--out", type=pathlib.Path)
args, _ = parser.parse_known_args()
port = int(os.environ["MASTER_PORT"])
assert os.environ["PET_MASTER_PORT"] == str(port)
with socket.create_server(("127.0.0.1", port)):  # as torchrun's first process does
    (args.out / "policy.json").write_text("{}")
    (args.out / "log.jsonl").write_text(json.dumps({"step": 100, "reward": port}) + "\\n")
    deadline = time.monotonic() + 60
    while len(list(args.out.parents[1].glob("seed_*/**/policy.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
"""
    path = config(project)
    project.write("tools/train.py", meet)
    project.rlx("train", path, "--seeds", "2", "-s", "device=cpu")
    run = project.run("own_001")
    ports = [list(seed.series("rollout/return_mean").values)[-1] for seed in run.seeds]
    assert run.status == "completed"
    assert len(set(ports)) == 2
