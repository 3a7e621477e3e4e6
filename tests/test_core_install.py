"""The core install is enough: the demo's commands and a film work where torch and Stable-Baselines3 are absent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Project

pytestmark = pytest.mark.slow

ABSENT = """
from importlib.machinery import PathFinder

found = PathFinder.find_spec


def find_spec(name, path=None, target=None):
    if name.partition(".")[0] in ("torch", "stable_baselines3", "sb3_contrib"):
        return None
    return found(name, path, target)


PathFinder.find_spec = find_spec
"""


@pytest.fixture
def core(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project whose commands, and all they start, do not find the packages of the extra."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(ABSENT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=":")
    tried = subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, text=True)
    assert "No module named 'torch'" in tried.stderr
    return project


def test_the_whole_loop_runs(core: Project) -> None:
    for name, rate in (("quick", 1e-2), ("slow", 1e-5)):
        trained = core.rlx("train", core.config(name, algo={"learning_rate": rate}), "--seeds", "2")
        assert "backend fast: " in trained.stderr
    assert "fast" in core.rlx("ls", "--json").stdout
    core.rlx("eval", "quick_001")
    core.rlx("compare", "slow_001", "quick_001", code=None)
    core.rlx("plot", "slow_001", "quick_001", "--out", "curves.png")
    core.rlx("video", "quick_001:latest", "--out", "film.mp4")
    assert (core.root / "curves.png").stat().st_size > 1000
    assert (core.root / "film.mp4").stat().st_size > 1000


def test_what_needs_the_extra_says_so(core: Project) -> None:
    refused = core.rlx("train", core.config(algo={"name": "recurrent_ppo"}), code=2)
    assert "pip install 'rlx[sb3]'" in refused.stderr
    assert core.runs() == []
    core.rlx("train", core.config())
    exported = core.rlx("export", "tiny_001", "--to", "sb3", code=1)
    assert "exporting to sb3 needs `torch`" in exported.stderr
