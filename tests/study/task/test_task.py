"""Tasks: what people edit reads back, facts go stale visibly, and templates that could not work are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlx.study.task import task as tasks
from rlx.study.task.task import Task
from tests.study.papers import foreign_repo, foreign_task, rlx_repo, rlx_task, write


def changed(task: Task, **adapter: Any) -> Task:
    return task.model_copy(update={"adapter": task.adapter.model_copy(update=adapter)})


def test_a_task_reads_back_as_it_was_written(tmp_path: Path) -> None:
    foreign_repo(tmp_path)
    rlx_repo(tmp_path)
    for task in (foreign_task(tmp_path), rlx_task(tmp_path)):
        path = write(tmp_path, "task.yaml", tasks.dump(task))
        assert tasks.read(path) == task
        assert "# The mission of the task" in path.read_text()


def test_settled_tasks_have_no_problems(tmp_path: Path) -> None:
    foreign_repo(tmp_path)
    rlx_repo(tmp_path)
    assert tasks.problems(foreign_task(tmp_path), tmp_path) == ()
    assert tasks.problems(rlx_task(tmp_path), tmp_path) == ()


def test_a_fact_goes_stale_with_its_file_and_says_where(tmp_path: Path) -> None:
    foreign_repo(tmp_path)
    task = foreign_task(tmp_path)
    write(tmp_path, "train.py", (tmp_path / "train.py").read_text() + "\n")
    stale = tasks.problems(task, tmp_path)
    assert any(line.startswith("train.py:1: what trains: the file has changed (") for line in stale)
    assert any(line.startswith("train.py:8: default of lr") for line in stale)
    (tmp_path / "eval.py").unlink()
    assert any("eval.py:1: what evaluates: the file is gone" in line for line in tasks.problems(task, tmp_path))


@pytest.mark.parametrize(
    ("adapter", "says"),
    [
        ({"train": ("python", "train.py", "{sed}", "{seed}")}, "unknown placeholder `{sed}`; did you mean `{seed}`?"),
        ({"train": ("python", "train.py")}, "no {seed}: all seeds would train the same"),
        ({"train": ("bash", "-c", "python train.py {seed} {overrides}")}, "{overrides} must be a separate argument"),
        ({"train": ()}, "the command that trains is missing"),
        ({"train": ("python", "trian.py", "{seed}")}, "no file `trian.py`"),
        ({"eval": ("python", "eval.py", "{episode_seed}")}, "no {checkpoint}"),
        ({"eval": ("python", "eval.py", "{checkpoint}")}, "no {episode_seed}"),
        ({"eval": ("sh", "score.sh", "{checkpoint}", "{episode_seed}")}, "no file `score.sh`"),
        ({"override": "{key}"}, "needs {key} and {value}"),
        ({"metrics": None}, "adapter.metrics: the place where training writes its metrics is missing"),
        ({"result": None}, "adapter.result: the place where eval writes its metrics is missing"),
        ({"checkpoint": ""}, "adapter.checkpoint"),
        ({"config": "configs/lift.yaml"}, "kind command has no rlx config"),
        ({"env": "world/arena.py:Arena"}, "both `env` and `policy`"),
        ({"python_path": ("src",)}, "`src` is not a folder"),
        ({"python_path": ("..",)}, "`..` is not a folder"),
        ({"policy_files": ("net.py",)}, "no file `net.py`"),
        ({"metrics": tasks.Source(reader="csv")}, "adapter.metrics.path: reader csv needs the file"),
        ({"metrics": tasks.Source(reader="csv", path="../x.csv")}, "leaves the job's folder"),
        ({"metrics": tasks.Source(reader="csv", path="{oot}/x.csv")}, "did you mean `{out}`?"),
        ({"result": tasks.Source(reader="stdout", pattern="")}, "no named group"),
        ({"result": tasks.Source(reader="stdout", pattern="x=(.*)")}, "no named group"),
        ({"result": tasks.Source(reader="stdout", pattern="x=(")}, "is not a regular expression"),
        ({"result": tasks.Source(reader="jsonl", path="{result}")}, "adapter.eval: no {result}"),
        ({"result": tasks.Source(reader="jsonl", path="a", pattern="b")}, "belongs to reader stdout"),
        ({"launcher": tasks.Launcher(executor="custom", submit=("sbatch", "{comand}"))}, "did you mean `{command}`?"),
        ({"launcher": tasks.Launcher(executor="custom", submit=("sbatch",))}, "adapter.launcher.poll"),
        ({"launcher": tasks.Launcher(executor="custom", submit=("sbatch",))}, "it would submit nothing"),
        ({"launcher": tasks.Launcher(submit=("sbatch",))}, "belong to executor custom, not to local"),
    ],
)
def test_what_cannot_work_is_named(tmp_path: Path, adapter: dict[str, Any], says: str) -> None:
    foreign_repo(tmp_path)
    found = tasks.problems(changed(foreign_task(tmp_path), **adapter), tmp_path)
    assert any(says in line for line in found), found


@pytest.mark.parametrize(
    ("adapter", "says"),
    [
        ({"config": None}, "the config is missing"),
        ({"config": "configs/lfit.yaml"}, "no config file"),
        ({"config": "../lift.yaml"}, "has `.`, `..`"),
        ({"train": ("python", "train.py", "{seed}")}, "has no `train`"),
    ],
)
def test_an_rlx_task_is_its_config(tmp_path: Path, adapter: dict[str, Any], says: str) -> None:
    rlx_repo(tmp_path)
    found = tasks.problems(changed(rlx_task(tmp_path), **adapter), tmp_path)
    assert any(says in line for line in found), found


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("world/arena.py::Arena.rewards", "is not a region: world/arena.py has no `Arena.rewards`"),
        ("world/areena.py", "does not exist"),
        ("world/areena.py::A", "does not exist"),
        ("../world", "has `.`, `..`"),
    ],
)
def test_a_surface_is_a_place_that_is_there(tmp_path: Path, pattern: str, says: str) -> None:
    foreign_repo(tmp_path)
    task = foreign_task(tmp_path)
    task = task.model_copy(update={"surfaces": {"env": tasks.PathsAndKeys(paths=(pattern,))}})
    found = tasks.problems(task, tmp_path)
    assert any(line.startswith("surfaces.env: ") and says in line for line in found), found


def test_what_is_printed_needs_no_pattern(tmp_path: Path) -> None:
    foreign_repo(tmp_path)
    assert tasks.problems(changed(foreign_task(tmp_path), result=tasks.Source(reader="stdout")), tmp_path) == ()


def test_templates_are_filled_and_other_braces_stay() -> None:
    assert tasks.fill("a={x} {y} {{}} {1}", {"x": "{y}"}) == "a={y} {y} {{}} {1}"
    assert tasks.placeholders("{a}{b_c} {} { d } {1}") == ("a", "b_c")


def test_entry_files_are_scripts_and_modules(tmp_path: Path) -> None:
    foreign_repo(tmp_path)
    adapter = foreign_task(tmp_path).adapter
    assert tasks.entry_files(("python", "-m", "world.arena", "./eval.py"), adapter, tmp_path) == (
        "eval.py",
        "world/arena.py",
    )
