"""Whatever command the words of diagnosis print is run here, as it stands, on the run it was printed for."""

from __future__ import annotations

import re
import shlex

import pytest

from rlx.diagnose.load_case import read_case
from rlx.diagnose.rules import all_rules
from tests.conftest import Project
from tests.diagnose.conftest import corridor_project

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
ABOUT_A_RUN = ("analyze", "diagnose", "explain-metrics", "suggest", "summarize", "reflect", "watch")
MOST = 3  # of what `suggest` lists; tests/hosts/cli/test_diagnose.py runs all of it
SHORT = ("-s", "algo.total_timesteps=512", "-s", "eval.report_episodes=2", "-s", "eval.episodes=2")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project with a run on CartPole and one on an environment that reports its terms."""
    project = corridor_project(tmp_path_factory.mktemp("printed"))
    project.rlx("train", project.config("tiny"), "--seeds", "1")
    farm = {"id": "envs/corridors.py:Farm", "num_envs": 2}
    project.rlx("train", project.config("farm", env=farm, algo={"total_timesteps": 1024}), "--seeds", "1")
    return project


def obey(project: Project, line: str) -> None:
    """Run a printed command; one that trains a whole catalog config is made short."""
    words = shlex.split(line)
    assert words[0] == "rlx"
    is_long = words[1] == "train" and words[2].startswith("catalog:")
    project.rlx(*words[1:], *(SHORT if is_long else ()), timeout=600)


@pytest.mark.parametrize("run", ["tiny_001", "farm_001"])
def test_every_command_in_what_a_rule_tells_to_try_works(trained: Project, run: str) -> None:
    case = read_case(trained.run(run))
    told = [line.fill(case) for rule in all_rules() for line in rule.advice if not isinstance(line, str)]
    commands = dict.fromkeys("rlx " + line.partition(": rlx ")[2] for line in told if ": rlx " in line)
    assert len(commands) >= 4
    for command in commands:
        obey(trained, command)


@pytest.mark.parametrize("word", ABOUT_A_RUN)
def test_the_command_in_the_last_line_works(trained: Project, word: str) -> None:
    told = trained.rlx(word, "farm_001").stdout
    lines = [re.sub(r"^(next:|\d+\.) ", "", line) for line in told.splitlines()]
    following = [line for line in lines if line.startswith("rlx ")]
    assert following
    for line in following[:MOST]:
        obey(trained, line)


def test_the_command_after_a_check_of_an_environment_works(trained: Project) -> None:
    for target in ("envs/corridors.py:Corridor", "CartPole-v1", "configs/tiny.yaml", "tiny_001"):
        told = trained.rlx("check", "env", target).stdout
        (following,) = [line.removeprefix("next: ") for line in told.splitlines() if line.startswith("next: ")]
        obey(trained, following)
