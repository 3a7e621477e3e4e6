"""`runs` as a symbolic link to a larger disk, as is usual on clusters: every command works as without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.runs.metrics import MetricsWriter
from rlx.runs.run import find
from tests.conftest import Project
from tests.evaluate.linear import GOOD, make_run, register

COMMANDS = (
    ("eval", "some_001"), ("eval", "some_001", "--fresh", "2"), ("eval", "runs/some_001/seed_0/checkpoints/best"),
    ("stress", "some_001", "--episodes", "1"), ("review", "some_001"), ("info", "some_001"),
    ("probe", "some_001", "attr:gravity=9,10", "--episodes", "1"),
    ("ls",), ("diagnose", "some_001"), ("analyze", "some_001"), ("summarize", "some_001"), ("tag", "some_001", "a"),
    ("video", "some_001", "--format", "gif", "--steps", "5"), ("wait", "some_001"), ("logs", "some_001"),
    ("plot", "some_001"), ("note", "some_001", "x"), ("top", "--once"), ("replay", "some_001", "--steps", "5"),
    ("report", "some_001", "--html", "a.html"), ("suggest", "some_001"), ("explain-metrics", "some_001"),
    ("config", "show", "some_001"), ("cards", "--for", "some_001"),
    ("watch", "some_001", "--timeout", "1"), ("export", "some_001", "--to", "csv", "--out", "-"),
    ("export", "some_001:best", "--to", "dataset", "--episodes", "1"), ("untag", "some_001", "a"),
    ("explain", "some_001"), ("advisor", "some_001"),
    ("rm", "some_001", "--yes"),
)  # fmt: skip


def test_every_command_works_when_runs_is_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch)
    project = Project(tmp_path / "project")
    project.write("rlx.toml", "")
    disk = tmp_path / "large disk" / "runs of all"
    disk.mkdir(parents=True)
    (project.root / "runs").symlink_to(disk)
    run = make_run(project.root, "some", {0: GOOD})
    writer = MetricsWriter(run.path / "seed_0" / "metrics.jsonl")
    writer.write(1024, {"rollout/return_mean": 500.0})
    writer.close()
    assert find("some_001", root=project.root).path == run.path == project.root / "runs" / "some_001"
    for words in COMMANDS:
        done = project._call(words)
        assert done.returncode == 0, (words, done.stderr)
        assert "Traceback" not in done.stderr
    assert not list(disk.glob("some*"))


def test_a_run_trains_resumes_and_is_compared_behind_a_link(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.write("rlx.toml", "")
    (tmp_path / "disk").mkdir()
    (project.root / "runs").symlink_to(tmp_path / "disk")
    config = project.config("tiny")
    project.rlx("train", config, "--seeds", "1")
    project.rlx("train", "--more", "tiny_001", "--seeds", "1")
    assert sorted(path.name for path in (tmp_path / "disk" / "tiny_001").glob("seed_*")) == ["seed_0", "seed_1"]
    other = project.config("other", algo={"gamma": 0.9})
    long = project.config("long", algo={"total_timesteps": 10_000_000})
    for words in (
        ("settle", "tiny_001", other), ("compare", "tiny_001", "other_001"), ("noise", "tiny_001", "--seeds", "4"),
        ("sweep", config, "-p", "algo.gamma=0.9,0.99", "--trials", "2"), ("sweep", "show", "tiny_sweep_001"),
        ("sweep", "resume", "tiny_sweep_001"), ("train", "--detach", long), ("stop", "long_001"),
        ("resume", "tiny_001", "--fork", "-s", "algo.total_timesteps=2048"),
    ):  # fmt: skip
        project.rlx(*words)
    project.rlx("wait", "long_001", code=5)  # interrupted
    refused = project.rlx("reflect", "tiny_001", code=3)
    assert refused.stderr.startswith("error: tiny_001 has no reward terms\n")
    assert (tmp_path / "disk" / "long_001").is_dir()
