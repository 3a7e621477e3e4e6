"""Contracts: all eight points, each missing one named, and no metric that a candidate could compute itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlx.study.contract import contract as contracts
from rlx.study.contract import contract_checks
from rlx.study.contract.contract import POINTS, Contract, Point
from rlx.study.contract.contract_checks import OpenPoint
from rlx.study.contract.contract_view import point_rows
from rlx.study.task.task import Task
from tests.study.papers import commit, contract_of, foreign_repo, foreign_task, rlx_repo, rlx_task, write


@pytest.fixture
def lift(tmp_path: Path) -> tuple[Task, Path, str]:
    sha = rlx_repo(tmp_path)
    return rlx_task(tmp_path), tmp_path, sha


@pytest.fixture
def arena(tmp_path: Path) -> tuple[Task, Path, str]:
    sha = foreign_repo(tmp_path)
    return foreign_task(tmp_path), tmp_path, sha


def found_in(place: tuple[Task, Path, str], **sections: Any) -> list[OpenPoint]:
    task, root, sha = place
    return list(contract_checks.problems(contract_of(task, root, sha, **sections), task, root=root))


def test_a_settled_contract_has_no_problems(lift: tuple[Task, Path, str]) -> None:
    assert found_in(lift) == []


def test_a_foreign_one_neither(arena: tuple[Task, Path, str]) -> None:
    assert found_in(arena) == []


@pytest.mark.parametrize("point", [point for point in POINTS if point != "task"])
def test_a_missing_section_is_named_and_stands_in_the_file_as_an_example(
    lift: tuple[Task, Path, str], point: Point
) -> None:
    found = found_in(lift, **{point: None})
    assert [problem.point for problem in found if "is missing" in problem.message] == [point]
    task, root, sha = lift
    assert f"# {point}: {{" in contracts.dump(contract_of(task, root, sha, **{point: None}))


@pytest.mark.parametrize("point", POINTS)
def test_a_point_that_is_not_confirmed_is_named(lift: tuple[Task, Path, str], point: Point) -> None:
    found = found_in(lift, confirmed=[one for one in POINTS if one != point])
    assert [(problem.point, problem.message) for problem in found] == [(point, "not confirmed")]
    assert str(found[0]).startswith(POINTS[point])


@pytest.mark.parametrize(
    ("point", "section", "says"),
    [
        ("metric", {"name": "succes_rate"}, "did you mean `success_rate`?"),
        ("metric", {"name": "pass_rate"}, "needs scenarios with a `pass`"),
        ("metric", {"name": "success_rate", "source": "training"}, "only reaches level reported"),
        ("metric", {"name": "success_rate", "alpha": 0.5}, "would accept chance as an improvement"),
        ("scope", {}, "nothing is in scope"),
        ("scope", {"surfaces": ["evaluator"]}, "the evaluator may never be in scope"),
        ("scope", {"surfaces": ["policy"]}, "the task has no surface `policy`"),
        ("scope", {"keys": ["eval.episodes"]}, "reaches the evaluator's `eval.*`"),
        ("scope", {"keys": ["env.*"]}, "reaches the evaluator's `env.id`"),
        ("scope", {"keys": ["*"]}, "reaches the evaluator's"),
        ("scope", {"keys": ["seed"]}, "seeds are replicates"),
        ("scope", {"keys": ["env.kwargs.seed"]}, "seeds are replicates"),
        ("scope", {"paths": ["../x.py"]}, "has `.`, `..`"),
        ("scope", {"paths": ["envs/gone.py"]}, "does not exist"),
        ("scope", {"paths": ["envs/lift.py::Lift.jump"]}, "is not a region"),
        ("scope", {"paths": ["configs/lift.yaml"]}, "belongs to the evaluator and may never be in scope"),
        ("scope", {"paths": ["configs/**"]}, "reaches `configs/lift.yaml`"),
        ("scope", {"paths": ["envs/lift.py"]}, "which the metric is computed from"),
        ("scope", {"paths": ["envs/*.py"]}, "covers `envs/physics.py`, which the metric is computed from"),
        ("scope", {"paths": ["**"]}, "reaches `configs/lift.yaml`"),
        ("budget", {"seeds": 60, "hours": 1, "per_seed_minutes": 90}, "one seed may take 90 min"),
        ("budget", {"seeds": 60, "hours": 9, "per_seed_minutes": 9, "until": "7 am"}, "is not a time"),
        ("budget", {"seeds": 19, "hours": 9, "per_seed_minutes": 9}, "too few for a confirmation (20"),
        ("hardware", {"reads": ["data"]}, "is not absolute"),
        ("hardware", {"reads": ["/no/such/folder"]}, "does not exist"),
        ("hardware", {"reads": ["/"]}, "would show jobs the ledger"),
        ("baseline", {"commit": "main", "command": "x"}, "is not a full hash"),
        ("baseline", {"commit": "0" * 40, "command": "x"}, "has no commit 000000000000"),
        ("evaluation", {"level": "pinned"}, "rlx evaluates its configs sealed"),
        ("automation", {"stop": ["rejected > 3"]}, "did you mean `rejected_in_a_row`?"),
        ("automation", {"stop": ["candidates"]}, "is not true or false"),
        ("automation", {"stop": ["candidates >"]}, "is not an expression"),
        ("automation", {"unattended": True}, "unattended without a stop rule"),
        ("guardrails", [{"expression": "succes_rate"}], "did you mean `success_rate`?"),
        ("guardrails", [{"expression": "success_rate > 1"}], "is true or false"),
        ("guardrails", [{"expression": "__import__('os')"}], "has more than names"),
        ("guardrails", [{"expression": "median", "mode": "safety"}], "margin of 0 can never be shown"),
    ],
)
def test_a_point_that_cannot_stand_is_named(lift: tuple[Task, Path, str], point: str, section: Any, says: str) -> None:
    found = found_in(lift, **{point: section})
    where = "metric" if point == "guardrails" else point
    assert any(problem.point == where and says in problem.message for problem in found), found
    assert all(problem.point == where for problem in found)


@pytest.mark.parametrize(
    ("said", "settles"),
    [
        ("collision_rate:minimize", "-s metric.name=return -s metric.direction=maximize"),
        ("fall_rate:minimize", "-s metric.name=pass_rate -s metric.direction=maximize"),
        ("lenght_mean:minimize", "-s metric.name=length_mean"),
        ("succes_rate:maximize", "-s metric.name=success_rate"),
    ],
)
def test_another_metric_is_not_sought_the_wrong_way_round(
    lift: tuple[Task, Path, str], said: str, settles: str
) -> None:
    name, _, direction = said.partition(":")
    found = found_in(lift, metric={"name": name, "direction": direction})
    assert [one.hint for one in found if "has no figure" in one.message] == [f"rlx study amend first {settles}"]


def test_a_task_metric_in_the_place_of_the_return_is_sought_the_right_way_round(lift: tuple[Task, Path, str]) -> None:
    scope = {"paths": ["envs/lift.py::Lift._reward"]}
    (found,) = found_in(lift, scope=scope, metric={"name": "return", "direction": "minimize"})
    assert found.hint.endswith("-s metric.name=success_rate -s metric.direction=maximize")


@pytest.mark.parametrize("name", ["length_mean", "terminated_rate"])
def test_how_episodes_end_may_decide(lift: tuple[Task, Path, str], name: str) -> None:
    assert found_in(lift, metric={"name": name, "direction": "minimize"}) == []


def test_jobs_do_not_read_the_keys_that_sign(lift: tuple[Task, Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    home = lift[1].parent / f"{lift[1].name}-home"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for name in (home, home / ".ssh"):
        found = found_in(lift, hardware={"reads": [str(name)]})
        assert "the keys that sign approvals" in found[0].message


def test_a_baseline_is_pinned_with_its_config(lift: tuple[Task, Path, str]) -> None:
    _, root, sha = lift
    baseline = {"commit": sha, "command": "rlx train configs/lift.yaml", "config_sha256": "0" * 64}
    found = found_in(lift, baseline=baseline)
    assert "config_sha256 does not match `configs/lift.yaml`" in found[0].message
    write(root, "configs/lift.yaml", (root / "configs/lift.yaml").read_text() + "seed: 3\n")
    assert any("config_sha256" in problem.message for problem in found_in(lift))
    commit(root)


def test_a_reward_term_that_the_config_names_can_be_guarded(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    text = (tmp_path / "configs/lift.yaml").read_text()
    named = text.replace("  kwargs:", "  wrappers: [{reward_terms: {energy: cost_energy}}]\n  kwargs:")
    write(tmp_path, "configs/lift.yaml", named)
    place = (rlx_task(tmp_path), tmp_path, commit(tmp_path))
    assert found_in(place, guardrails=[{"expression": "energy - length_mean"}]) == []
    assert "did you mean `energy`?" in found_in(place, guardrails=[{"expression": "enrgy"}])[0].message


def test_a_project_without_git_has_no_baseline(tmp_path: Path) -> None:
    for path in ("envs/lift.py", "envs/physics.py", "configs/lift.yaml"):
        write(tmp_path, path, "")
    sha = rlx_repo(tmp_path)
    (tmp_path / ".git").rename(tmp_path / ".gone")
    assert any("not a git repository" in one.message for one in found_in((rlx_task(tmp_path), tmp_path, sha)))


def test_a_machine_without_git_is_told_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("envs/lift.py", "envs/physics.py", "configs/lift.yaml"):
        write(tmp_path, path, "")
    sha = rlx_repo(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    says = [one.message for one in found_in((rlx_task(tmp_path), tmp_path, sha))]
    assert any("git was not found: install git" in one for one in says)
    assert not any("git init" in one for one in says)


class TestAMetricThatACandidateComputes:
    """The metric is never computed by a file that is in scope."""

    def test_a_region_of_the_reward_is_allowed_with_a_task_metric(self, lift: tuple[Task, Path, str]) -> None:
        assert found_in(lift, scope={"surfaces": ["reward"]}) == []

    def test_a_region_of_the_reward_is_refused_with_the_return(self, lift: tuple[Task, Path, str]) -> None:
        found = found_in(lift, scope={"surfaces": ["reward"]}, metric={"name": "return"})
        assert len(found) == 1
        assert "in a file that `return` is computed from" in found[0].message

    def test_the_return_by_another_name_is_no_metric(self, lift: tuple[Task, Path, str]) -> None:
        found = found_in(lift, scope={"surfaces": ["reward"]}, metric={"name": "mean"})
        assert "the evaluation has no figure `mean`" in found[0].message

    def test_the_return_is_fine_where_no_code_is_in_scope(self, lift: tuple[Task, Path, str]) -> None:
        assert found_in(lift, metric={"name": "return"}) == []

    def test_forbidding_the_file_settles_it(self, lift: tuple[Task, Path, str]) -> None:
        scope = {"paths": ["envs/*.py"], "forbidden": ["envs/lift.py", "envs/physics.py"]}
        assert found_in(lift, scope=scope) == []
        assert found_in(lift, scope={"keys": ["env.*"], "forbidden": ["env.id"]}) == []

    def test_the_eval_commands_file_is_refused_whole_and_in_part(self, arena: tuple[Task, Path, str]) -> None:
        write(arena[1], "eval.py", "from world.arena import Arena\n\ndef score():\n    pass\n")
        place = (foreign_task(arena[1]), arena[1], commit(arena[1]))
        for path in ("eval.py", "eval.py::score", "*.py"):
            found = found_in(place, scope={"paths": [path]})
            assert any("`eval.py`, which belongs to the evaluator" in one.message for one in found), (path, found)

    def test_what_the_eval_command_imports_is_refused_whole(self, arena: tuple[Task, Path, str]) -> None:
        found = found_in(arena, scope={"paths": ["world"]})
        assert any("covers `world/arena.py`" in problem.message for problem in found)
        assert found_in(arena, scope={"paths": ["world/arena.py::Arena.reward"]}) == []

    def test_what_a_pinned_eval_calls_reward_is_a_return(self, arena: tuple[Task, Path, str]) -> None:
        task, root, sha = arena
        assert task.adapter.result is not None
        result = task.adapter.result.model_copy(update={"names": {"mean_reward": "x", "energy": "energy"}})
        renamed = task.model_copy(update={"adapter": task.adapter.model_copy(update={"result": result})})
        found = found_in((renamed, root, sha), scope={"surfaces": ["reward"]}, metric={"name": "mean_reward"})
        assert any("`mean_reward` is computed from" in problem.message for problem in found)

    def test_a_file_found_through_python_path_counts_too(self, arena: tuple[Task, Path, str]) -> None:
        task, root, _ = arena
        write(root, "src/physics.py", "G = 1\n")
        write(root, "eval.py", "import physics\n")
        adapter = task.adapter.model_copy(update={"python_path": (".", "src")})
        moved = foreign_task(root).model_copy(update={"adapter": adapter})
        found = found_in((moved, root, commit(root)), scope={"paths": ["src/physics.py"]})
        assert any("covers `src/physics.py`" in problem.message for problem in found)


def test_keys_need_a_place_on_the_command_line(arena: tuple[Task, Path, str]) -> None:
    task, root, sha = arena
    adapter = task.adapter.model_copy(update={"train": ("python", "train.py", "{seed}")})
    found = found_in((task.model_copy(update={"adapter": adapter}), root, sha))
    assert any("no {overrides}" in problem.message for problem in found)


@pytest.mark.parametrize(
    ("level", "says"),
    [("sealed", "needs adapter.env and adapter.policy"), ("pinned", None), ("reported", None)],
)
def test_a_level_needs_what_it_is_made_with(arena: tuple[Task, Path, str], level: str, says: str | None) -> None:
    metric = {"name": "return" if level == "reported" else "success_rate" if level == "sealed" else "success"}
    found = [one.message for one in found_in(arena, evaluation={"level": level}, metric=metric, guardrails=[])]
    assert found == [] if says is None else any(says in one for one in found)


def test_a_program_of_its_own_is_not_told_to_explore(arena: tuple[Task, Path, str]) -> None:
    (found,) = found_in(arena, evaluation={"level": "pinned", "deterministic": False})
    assert "the eval command decides whether a policy explores" in found.message
    assert found.hint == "rlx study amend first -s evaluation.deterministic=true"
    task, root, sha = arena
    rows = point_rows(contract_of(task, root, sha), task, problems=())
    assert "exploration" not in str(rows)


def test_the_task_point_holds_what_is_wrong_with_the_task(lift: tuple[Task, Path, str]) -> None:
    task, root, sha = lift
    write(root, "envs/lift.py", (root / "envs/lift.py").read_text() + "\n")
    found = found_in(lift)
    assert found
    assert all(problem.point == "task" and "envs/lift.py:" in problem.message for problem in found)
    other = task.model_copy(update={"name": "other"})
    contract = contract_of(task, root, sha)
    assert "this task is `other`" in contract_checks.problems(contract, other, root=root)[0].message


def test_a_task_without_a_mission_is_not_defined(arena: tuple[Task, Path, str]) -> None:
    task, root, sha = arena
    bare = task.model_copy(update={"card": task.card.model_copy(update={"mission": " "})})
    assert any("no mission" in problem.message for problem in found_in((bare, root, sha)))


def test_notes_say_what_is_weak(lift: tuple[Task, Path, str]) -> None:
    task, root, sha = lift
    contract = contract_of(
        task, root, sha,
        metric={"name": "success_rate", "seeds": 9, "source": "training"},
        evaluation={"level": "reported"},
        automation={"unattended": True, "network": True, "sandbox": "if available", "stop": ["spent > 0.9"]},
    )  # fmt: skip
    said = " ".join(note.message for note in contract_checks.notes(contract, task))
    for word in ("provisional", "never move an incumbent", "network", "without one", "asserted", "source training"):
        assert word in said
    assert contract_checks.notes(contract_of(task, root, sha), task) == ()


@pytest.mark.parametrize(("checkpoint", "is_told"), [("{out}/model.pt", True), ("{out}/policy.npz", False)])
def test_a_checkpoint_that_may_hold_code_is_told_of_at_the_pinned_level(
    lift: tuple[Task, Path, str], checkpoint: str, is_told: bool
) -> None:
    task, root, sha = lift
    foreign = task.model_copy(update={"adapter": task.adapter.model_copy(update={"checkpoint": checkpoint})})
    said = contract_checks.notes(contract_of(task, root, sha, evaluation={"level": "pinned"}), foreign)
    assert any("code in it that writes its own figures" in note.message for note in said) == is_told


@pytest.mark.parametrize(("checkpoint", "is_told"), [("{out}/run", True), ("{out}/run/policy.npz", False)])
def test_a_checkpoint_that_may_be_a_folder_of_settings_is_told_of_at_the_pinned_level(
    lift: tuple[Task, Path, str], checkpoint: str, is_told: bool
) -> None:
    task, root, sha = lift
    foreign = task.model_copy(update={"adapter": task.adapter.model_copy(update={"checkpoint": checkpoint})})
    said = contract_checks.notes(contract_of(task, root, sha, evaluation={"level": "pinned"}), foreign)
    assert any(note.message.startswith("not ruled out: if `{out}/run` is a folder") for note in said) == is_told


def test_an_empty_contract_names_all_eight(lift: tuple[Task, Path, str]) -> None:
    task, root, _ = lift
    found = contract_checks.problems(Contract(study="a", task=task.name), task, root=root)
    assert {problem.point for problem in found} == set(POINTS)


@pytest.mark.parametrize(
    ("told", "known", "unknown"),
    [
        ('{"is_success": True, "reward_terms": {"near": 1.0, "effort": 2.0}}', "near", "far"),
        ('{"is_success": True, "reward_terms": terms}', "effort", "far"),
        ('{"is_success": True, "reward_terms": dict(zip(self.names, height))}', "whatever", None),
        ('{"is_success": True}', "length_mean", "near"),
    ],
)
def test_guardrails_know_the_terms_that_the_env_s_file_names(
    tmp_path: Path, told: str, known: str, unknown: str | None
) -> None:
    rlx_repo(tmp_path)
    env = (tmp_path / "envs" / "lift.py").read_text().replace('{"is_success": True}', told)
    write(
        tmp_path,
        "envs/lift.py",
        env.replace("reward = self", 'terms = {"near": 1.0, "effort": 2.0}\n        reward = self'),
    )
    sha, task = commit(tmp_path), rlx_task(tmp_path)
    for name, is_fine in ((known, True), (unknown, False)):
        if name is not None:
            contract = contract_of(task, tmp_path, sha, guardrails=[{"expression": name, "margin": 1}])
            assert (contract_checks.problems(contract, task, root=tmp_path) == ()) is is_fine, name
