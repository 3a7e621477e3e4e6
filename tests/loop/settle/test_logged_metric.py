"""Settling own commands by a metric that they log, and configs with different budgets."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from rlx.compare.question import ComparisonQuestion
from rlx.config.load import load
from rlx.errors import EvidenceInvalid, NotFound, UsageError
from rlx.launch import launch
from rlx.loop.settle.settle import Limits, Settlement, settle
from rlx.runs.live import LiveSeed
from rlx.runs.run import Run
from rlx.train.own_script import start
from tests.conftest import Project

PROGRAM = """
import pathlib, sys
seed, out, level = int(sys.argv[1]), pathlib.Path(sys.argv[2]), float(sys.argv[3])
(out / "log.csv").write_text("step,success\\n50,0\\n100,%s\\n" % (level + seed / 1000))
(out / "policy.bin").write_bytes(b"weights")
"""
SUCCESS = ComparisonQuestion(metric="success")


def command(project: Project, name: str, level: float, **sections: Any) -> str:
    """Write the config of a program that logs `success` near a level."""
    project.write("train.py", PROGRAM)
    train = [sys.executable, "train.py", "{seed}", "{out}", str(level)]
    metrics = {"reader": "csv", "path": "{out}/log.csv"}
    section = {"train": train, "metrics": metrics, "checkpoint": "{out}/policy.bin"}
    algo = {"total_timesteps": 100, **sections.pop("algo", {})}
    import yaml

    config = {"run_name": name, "backend": "command", "algo": algo, "command": section, **sections}
    project.write(f"configs/{name}.yaml", yaml.safe_dump(config))
    return str(project.root / "configs" / f"{name}.yaml")


def trained(project: Project, config: str, level: float, count: int) -> Run:
    """Create the run of a command's config as if its program had trained so many seeds."""
    experiment = load(project.root / config).model_copy(update={"seeds": count})
    run = launch.create(experiment, root=project.root)
    for seed in range(count):
        live = LiveSeed(run.path / f"seed_{seed}", root=project.root)
        live.log(100, {"success": level + seed / 1000})
        live.completed(100)
        live.close()
    return Run(run.path)


def settled(project: Project, base: str, new: str, question: ComparisonQuestion, *, seeds: int = 10) -> Settlement:
    limits = Limits(max_seeds=seeds, question=question)
    return settle(base, new, root=project.root, limits=limits, report=lambda progress: None, say=lambda text: None)


def test_own_commands_are_settled_by_a_metric_that_they_log(project: Project) -> None:
    base, new = command(project, "base", 0.1), command(project, "new", 0.9)
    trained(project, base, 0.1, 10)
    trained(project, new, 0.9, 9)
    ended = settled(project, base, new, SUCCESS)
    document = ended.document()
    assert (document["verdict"], document["evidence"], ended.why) == ("better", "reported", "decided")
    assert document["trained"] == {"baseline": 0, "candidate": 1}
    assert "reported: the last value of success that training logged" in document["line"]


def test_a_command_without_a_metric_is_refused_before_anything_is_trained(project: Project) -> None:
    base, new = command(project, "base", 0.1), command(project, "new", 0.9)
    with pytest.raises(UsageError, match="rlx cannot open its checkpoints") as caught:
        settled(project, base, new, ComparisonQuestion())
    assert "--metric TAG" in str(caught.value.hint)
    assert project.runs() == []


def test_a_metric_that_is_not_logged_ends_the_settle_with_its_name(project: Project) -> None:
    base, new = command(project, "base", 0.1), command(project, "new", 0.9)
    trained(project, base, 0.1, 10)
    with pytest.raises(NotFound, match="has logged `sucess`"):
        settled(project, base, new, ComparisonQuestion(metric="sucess"))
    empty = trained(project, new, 0.9, 3)
    for seed in empty.seeds:
        seed.metrics_path.write_bytes(b'{"step": 100, "time": 1.0, "loss": 0.5}\n')
    with pytest.raises((NotFound, EvidenceInvalid), match="`success`"):
        settled(project, base, new, SUCCESS)


def test_different_budgets_are_settled_when_that_is_the_question(project: Project) -> None:
    base = command(project, "short", 0.1)
    new = command(project, "long", 0.9, algo={"total_timesteps": 1000})
    with pytest.raises(UsageError, match="budgets differ: ") as caught:
        settled(project, base, new, SUCCESS)
    assert str(caught.value.hint).endswith("--budget-question")
    trained(project, base, 0.1, 10)
    trained(project, new, 0.9, 10)
    ended = settled(project, base, new, ComparisonQuestion(metric="success", budgets_may_differ=True))
    assert ended.candidate.verdict.verdict == "better"
    assert ended.candidate.line.endswith("budgets: long_001 1,000 steps, short_001 100 steps")


def test_the_noise_of_own_commands_is_that_of_a_metric_that_they_log(project: Project) -> None:
    base = command(project, "base", 0.1)
    trained(project, base, 0.1, 10)
    data = json.loads(project.rlx("noise", base, "--metric", "success", "--json").stdout)
    assert (data["n"], data["trained"], data["metric"], data["evidence"]) == (10, 0, "success", "reported")
    assert (data["min"], data["max"]) == (0.1, 0.109)
    refused = project.rlx("noise", base, code=2).stderr
    assert "--metric TAG" in refused
    assert "--aa" in project.rlx("noise", base, "--metric", "success", "--aa", code=2).stderr


def test_the_noise_of_a_script_names_a_command_that_works(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.root)
    for seed in range(3):
        with start({"run_name": "mine"}, seed=seed) as run:
            run.log(10, {"rollout/return_mean": float(seed)})
    hint = project.rlx("noise", "mine_001", code=3).stderr
    option = hint.partition("--metric ")[2].split()[0]
    text = project.rlx("noise", "mine_001", "--metric", option).stdout
    assert "3 seeds" in text
    assert text.splitlines()[-1] == "next: rlx plot mine_001"
