"""What a score is computed from is found by reading alone, through imports and what a config extends."""

from __future__ import annotations

from pathlib import Path

from rlx.study.task import infer_task, protected_files
from tests.study.papers import commit, foreign_repo, foreign_task, rlx_repo, rlx_task, write


def test_an_rlx_task_is_measured_by_its_config_and_its_envs_files(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    write(tmp_path, "configs/more.yaml", "extends: lift.yaml\n")
    task = infer_task.task_from_config(Path("configs/more.yaml"), root=tmp_path, name="more")
    assert set(protected_files.evaluator_files(task, tmp_path)) == {"configs/more.yaml", "configs/lift.yaml"}
    assert protected_files.metric_files(task, tmp_path) == ("envs/lift.py", "envs/physics.py")
    assert {"eval.*", "env.id", "seed"} <= set(protected_files.keys(task))


def test_a_wrapper_that_only_shapes_rewards_is_not_part_of_the_measurement(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    write(tmp_path, "envs/bonus.py", "import gymnasium\nclass Bonus(gymnasium.RewardWrapper[int, int]):\n    pass\n")
    write(tmp_path, "envs/look.py", "import gymnasium\nclass Look(gymnasium.ObservationWrapper):\n    pass\n")
    wrappers = "wrappers: ['envs/bonus.py:Bonus', 'envs/look.py:Look']"
    write(tmp_path, "configs/two.yaml", f"env: {{id: CartPole-v1, {wrappers}}}\n")
    task = infer_task.task_from_config(Path("configs/two.yaml"), root=tmp_path, name="two")
    assert protected_files.metric_files(task, tmp_path) == ("envs/look.py",)


def test_a_foreign_task_is_measured_by_its_eval_command_and_what_that_imports(tmp_path: Path) -> None:
    foreign_repo(tmp_path)
    task = foreign_task(tmp_path)
    assert protected_files.evaluator_files(task, tmp_path) == ("eval.py",)
    assert protected_files.metric_files(task, tmp_path) == ("eval.py", "world/__init__.py", "world/arena.py")


def test_folders_of_the_evaluator_mean_every_file_in_them(tmp_path: Path) -> None:
    foreign_repo(tmp_path)
    for name in ("evals/a.py", "evals/deep/b.py"):
        write(tmp_path, name, "")
    surfaces = {"evaluator": infer_task.PathsAndKeys(paths=("evals/**", "eval.py::main"))}
    task = foreign_task(tmp_path).model_copy(update={"surfaces": surfaces})
    expected = {"evals/**", "eval.py::main", "eval.py", "evals/a.py", "evals/deep/b.py"}
    assert set(protected_files.evaluator_files(task, tmp_path)) == expected
    (tmp_path / ".git").rename(tmp_path / ".gone")
    assert set(protected_files.evaluator_files(task, tmp_path)) == expected


def test_a_config_that_cannot_be_read_has_nothing_behind_it(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    task = rlx_task(tmp_path)
    write(tmp_path, "configs/lift.yaml", "env: [\n")
    commit(tmp_path)
    assert protected_files.experiment_of(task, tmp_path) is None
    assert protected_files.metric_files(task, tmp_path) == ()
