"""The command lines of skills in blocks that are marked as runnable (```sh run) do run, in one project."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from rlx.hosts.agents import packaged_skills
from tests.conftest import Project

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SKILLS = packaged_skills.PLUGIN / "skills"
ORDER = (  # the pages as one project comes by them; what one leaves, the next finds
    "rl-design/SKILL.md",
    "rl-design/references/design-topics.md",
    "rl-experiment/SKILL.md",
    "rl-diagnose/SKILL.md",
    "rl-diagnose/references/symptoms.md",
    "rl-reward/SKILL.md",
    "rl-reward/references/reflection.md",
    "rl-study-setup/SKILL.md",
    "rl-study-setup/references/metrics.md",
    "rl-audit/SKILL.md",
    "rl-audit/references/report.md",
)
BOSS = """\
import numpy as np
from gymnasium import Env, spaces


class BossFight(Env):
    observation_space = spaces.Box(-10.0, 10.0, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = self.np_random.uniform(-1, 1), 0
        return self._seen(), {}

    def step(self, action):
        self.place, self.steps = float(np.clip(self.place + (0.1 if action else -0.1), -5, 5)), self.steps + 1
        terms = {"forward": 0.1 if action else -0.1, "effort": -0.01}
        won = self.place > 2
        info = {"reward_terms": terms, "success": won}
        return self._seen(), sum(terms.values()), won, self.steps >= 50, info

    def _seen(self):
        return np.array([self.place, self.steps / 50], np.float32)
"""
REWARD = """\
def reward(observation, action, next_observation, terminated, info):
    forward = max(-1.0, min(1.0, float(next_observation[0] - observation[0])))
    return forward + (1.0 if terminated else 0.0), {"forward": forward, "goal": 1.0 if terminated else 0.0}
"""


def marked(page: str) -> list[str]:
    """Return the lines of a page's runnable blocks."""
    blocks = re.findall(r"```sh run\n(.*?)```", (SKILLS / page).read_text(encoding="utf-8"), flags=re.S)
    return [line for block in blocks for line in block.splitlines()]


def test_every_page_with_a_mark_is_run() -> None:
    assert {str(path.relative_to(SKILLS)) for path in SKILLS.rglob("*.md") if "```sh run" in path.read_text()} == set(
        ORDER
    )


def test_what_is_marked_as_runnable_runs(project: Project) -> None:
    founded(project)
    for page in ORDER:
        for line in marked(page):
            done = project.rlx(*shlex.split(line)[1:], code=None)
            assert done.returncode == 0, f"{page}: {line}\n{done.stdout}\n{done.stderr}"
        if git(project, "status", "--porcelain"):  # a study begins at a commit
            commit(project)


def founded(project: Project) -> None:
    """Make the project that the skills talk about: an environment, a reward, configs, a run of each other one."""
    project.write("envs/boss.py", BOSS)
    project.write("rewards.py", REWARD)
    project.write(".gitignore", "/runs/\n/.rlx/\n")
    project.config("base")
    project.rlx("train", project.config("wide", policy={"hidden_sizes": [16]}), "--seeds", "2")
    hopper = project.config("hopper_ppo", env={"id": "envs/boss.py:BossFight"})
    for _ in range(2):
        project.rlx("train", hopper)
    git(project, "init", "-q")
    commit(project)
    assert Path(project.root / "rlx.toml").exists()


def commit(project: Project) -> None:
    git(project, "add", "-A")
    git(project, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all")


def git(project: Project, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=project.root, check=True, capture_output=True, text=True).stdout
