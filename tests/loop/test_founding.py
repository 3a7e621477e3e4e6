"""How tasks and studies come into being in real repositories, and what is said where they cannot."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rlx.errors import NotFound, Refused, UsageError
from rlx.loop.founding import Wishes, approve, find_task, new_study, new_task, overview, refresh_task
from rlx.study import task as tasks
from rlx.study.contract import POINTS
from rlx.study.derive import Commands, source_of
from rlx.study.study import find
from rlx.study.task import Place
from tests.loop.told import WISHES, git, repository, typed

CONFIG = "env: {id: CartPole-v1}\nalgo: {name: ppo, total_timesteps: 64}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "pole.yaml").write_text(CONFIG)
    (tmp_path / "rlx.toml").write_text("schema = 1\n")
    return tmp_path


def test_a_study_outside_of_git_or_before_the_first_commit_is_refused_with_what_to_type(root: Path) -> None:
    config = root / "configs" / "pole.yaml"
    with pytest.raises(Refused, match="not in a git repository") as refused:
        new_study(root, "faster", Wishes(), config=config)
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("git init")
    git(root, "init", "-q")
    with pytest.raises(Refused, match="has no commit yet"):
        new_study(root, "faster", Wishes(), config=config)


def test_a_stale_task_begins_no_study_until_it_is_read_again(root: Path) -> None:
    config = root / "configs" / "pole.yaml"
    new_task(root, "pole", config=config)
    config.write_text(CONFIG.replace("64", "128"))
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "as it is")
    with pytest.raises(Refused, match="the file is another now") as refused:
        new_study(root, "faster", Wishes(), task="pole")
    assert refused.value.hint == "rlx task refresh pole"
    refresh_task(root, "pole")
    assert not list(tasks.stale(find_task(root, "pole"), root))
    assert new_study(root, "faster", Wishes(), task="pole")["study"] == "faster"


def test_a_task_that_is_not_there_is_not_found(root: Path) -> None:
    with pytest.raises(NotFound, match="there is no task here"):
        find_task(root, None)
    new_task(root, "pole", config=root / "configs" / "pole.yaml")
    with pytest.raises(NotFound, match="no task `pol`"):
        find_task(root, "pol")


def test_what_rlx_writes_stays_out_of_the_project_s_git(root: Path) -> None:
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "as it is")
    new_task(root, "pole", config=root / "configs" / "pole.yaml")
    (root / "runs" / "pole_001").mkdir()
    (root / "runs" / "pole_001" / "metadata.json").write_text("{}")
    assert untracked(root) == ""


def test_a_runs_folder_of_somebody_else_is_left_alone(root: Path) -> None:
    (root / "runs").mkdir()
    (root / "runs" / "notes.txt").write_text("mine")
    new_task(root, "pole", config=root / "configs" / "pole.yaml")
    assert [path.name for path in (root / "runs").iterdir()] == ["notes.txt"]


def untracked(root: Path) -> str:
    words = ["git", "-C", str(root), "status", "--porcelain"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def test_every_open_point_is_settled_by_the_command_that_next_prints(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    (root / "train.py").write_text("")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a program")
    train = ("python", "train.py", "--seed", "{seed}", "--out", "{out}", "{overrides}")
    evals = ("python", "train.py", "{checkpoint}", "{episode_seed}", "--out", "{result}")
    commands = Commands(
        train=train, eval=evals, checkpoint="{out}/net", metrics=source_of("jsonl:{out}/log", {}),
        result=source_of("jsonl:{result}", {"success": "success"}), surfaces={"hyperparameters": Place(keys=("lr",))},
    )  # fmt: skip
    new_task(root, "reach", commands=commands)
    wishes = Wishes(metric="sucess", hours=0.5, seeds=8, is_unattended=True,
                    settings=("automation.stop=[nonsense > 2]", "budget.per_seed_minutes=45"))  # fmt: skip
    told = new_study(root, "s1", wishes, task="reach")
    asked = []
    while told["status"] == "blocked":
        assert told["command"] not in asked, "a loop"
        asked.append(told["command"])
        typed(root, told["command"])
        told = overview(find(root))
    assert any("metric.name=success" in one for one in asked)
    assert "rlx task refresh reach --mission 'maximize success'" in asked
    assert find(root).contract().confirmed == tuple(POINTS)


def test_a_mission_may_be_said_in_ones_own_words_as_long_as_no_study_is_approved(root: Path) -> None:
    new_task(root, "pole", config=root / "configs" / "pole.yaml")
    assert refresh_task(root, "pole", mission="stand longer").card.mission == "stand longer"
    assert find_task(root, "pole").card.mission == "stand longer"


@pytest.mark.parametrize(
    "wishes",
    [Wishes(seeds=-4, hours=1.0), Wishes(seeds=0, hours=1.0), Wishes(hours=-1.0), Wishes(hours=float("nan")),
     Wishes(hours=float("inf"), seeds=8), Wishes(hours=0.0)],
)  # fmt: skip
def test_numbers_that_cannot_be_right_are_a_usage_error_of_one_line(root: Path, wishes: Wishes) -> None:
    with pytest.raises(UsageError, match=r"^--(seeds|hours) \S+: [^\n]*$") as refused:
        new_study(root, "s1", wishes, config=root / "configs" / "pole.yaml")
    assert refused.value.exit_code == 2
    assert refused.value.hint
    assert not (root / ".rlx").exists(), "nothing is left behind"


def test_a_task_that_is_there_is_written_anew_only_where_that_is_said(root: Path) -> None:
    config = root / "configs" / "pole.yaml"
    new_task(root, "pole", config=config)
    other = root / "configs" / "other.yaml"
    other.write_text(CONFIG.replace("64", "128"))
    before = (root / ".rlx" / "tasks" / "pole" / "task.yaml").read_bytes()
    with pytest.raises(Refused, match="is there already") as refused:
        new_task(root, "pole", config=other)
    assert refused.value.hint == "rlx task refresh pole reads its files again; " \
        "the same command with --replace writes it anew"  # fmt: skip
    assert (root / ".rlx" / "tasks" / "pole" / "task.yaml").read_bytes() == before
    typed(root, "rlx task new pole --config configs/other.yaml --replace")
    assert find_task(root, "pole").adapter.config == "configs/other.yaml"


def test_a_replaced_task_is_to_be_looked_at_again_and_one_with_an_approved_study_stays(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    new_study(root, "faster", WISHES, config=root / "configs" / "pole.yaml")
    told = typed(root, "rlx task new pole --config configs/pole.yaml --replace")
    assert told["problems"] == []
    assert overview(find(root))["status"] == "ready", "the same task again is nothing new"
    typed(root, "rlx task new pole --config configs/pole.yaml --mission 'stand longer' --replace")
    blocked = overview(find(root))
    assert blocked["status"] == "blocked"
    assert "says something else" in blocked["missing"][0]
    typed(root, blocked["command"])
    assert overview(find(root))["status"] == "ready"
    typed(root, "rlx study approve --yes")
    refused = typed(root, "rlx task new pole --config configs/pole.yaml --replace", code=4)
    assert "was approved on task `pole`" in refused["error"]


def test_a_task_that_is_edited_after_the_approval_voids_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    new_study(root, "faster", WISHES, config=root / "configs" / "pole.yaml")
    approve(find(root), by="me")
    path = find(root).task_path
    path.write_text(path.read_text().replace("keys: [algo.*", "keys: [env.kwargs, algo.*"))
    assert find(root).task().surfaces["hyperparameters"].keys[0] == "env.kwargs"
    assert overview(find(root))["status"] == "blocked"
    refused = typed(root, "rlx launch baseline --phase baseline", code=4)
    assert {"BLOCKED"} == {one["code"] for one in refused["reasons"]}
