"""How tasks and studies come into being in real repositories, and what is said where they cannot."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rlx.errors import ConfigError, NotFound, Refused, UsageError
from rlx.hosts.cli.study import approve as approved
from rlx.launch.git.worktree import head_commit
from rlx.loop.study.approve import approve
from rlx.loop.study.describe_task import find_task, new_task, refresh_task
from rlx.loop.study.new_study import Wishes, new_study
from rlx.loop.study.study_status import overview
from rlx.study.contract.contract import POINTS
from rlx.study.study_folder import find_study
from rlx.study.task import task as tasks
from rlx.study.task.infer_task import Commands, source_of
from rlx.study.task.task import PathsAndKeys
from tests.loop.told import WISHES, git, repository, typed
from tests.study.papers import rlx_repo

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
    with pytest.raises(Refused, match="the file has changed") as refused:
        new_study(root, "faster", Wishes(), task="pole")
    assert refused.value.hint == "rlx task refresh pole"
    refresh_task(root, "pole")
    assert not list(tasks.stale_facts(find_task(root, "pole"), root))
    assert new_study(root, "faster", Wishes(), task="pole")["study"] == "faster"


def test_a_stale_task_that_is_shown_says_what_reads_it_again(root: Path) -> None:
    config = root / "configs" / "pole.yaml"
    new_task(root, "pole", config=config)
    assert typed(root, "rlx task show pole")["command"] == "rlx study new NAME --task pole"
    config.write_text(CONFIG.replace("64", "128"))
    typed(root, typed(root, "rlx task show pole")["command"])
    assert not typed(root, "rlx task show pole")["problems"]


def test_a_task_that_is_not_there_is_not_found(root: Path) -> None:
    with pytest.raises(NotFound, match="this project has no task"):
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
        result=source_of("jsonl:{result}", {"success": "success"}),
        surfaces={"hyperparameters": PathsAndKeys(keys=("lr",))},
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
        told = overview(find_study(root))
    assert any("metric.name=success" in one for one in asked)
    assert "rlx task refresh reach --mission 'maximize success'" in asked
    assert find_study(root).contract().confirmed == tuple(POINTS)


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
    with pytest.raises(Refused, match="exists already") as refused:
        new_task(root, "pole", config=other)
    assert refused.value.hint == "rlx task refresh pole reads its files again; " \
        "the same command with --replace overwrites it"  # fmt: skip
    assert (root / ".rlx" / "tasks" / "pole" / "task.yaml").read_bytes() == before
    typed(root, "rlx task new pole --config configs/other.yaml --replace")
    assert find_task(root, "pole").adapter.config == "configs/other.yaml"


def test_a_replaced_task_is_to_be_looked_at_again_and_one_with_an_approved_study_stays(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    new_study(root, "faster", WISHES, config=root / "configs" / "pole.yaml")
    told = typed(root, "rlx task new pole --config configs/pole.yaml --replace")
    assert told["problems"] == []
    assert overview(find_study(root))["status"] == "ready", "the same task again is nothing new"
    typed(root, "rlx task new pole --config configs/pole.yaml --mission 'stand longer' --replace")
    blocked = overview(find_study(root))
    assert blocked["status"] == "blocked"
    assert "the task has changed since" in blocked["missing"][0]
    typed(root, blocked["command"])
    assert overview(find_study(root))["status"] == "ready"
    typed(root, "rlx study approve --yes")
    refused = typed(root, "rlx task new pole --config configs/pole.yaml --replace", code=4)
    assert "was approved on task `pole`" in refused["error"]


def test_a_task_that_is_edited_after_the_approval_voids_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    new_study(root, "faster", WISHES, config=root / "configs" / "pole.yaml")
    approve(find_study(root), by="me")
    path = find_study(root).task_path
    path.write_text(path.read_text().replace("keys: [algo.*", "keys: [env.kwargs, algo.*"))
    assert find_study(root).task().surfaces["hyperparameters"].keys[0] == "env.kwargs"
    assert overview(find_study(root))["status"] == "blocked"
    refused = typed(root, "rlx launch baseline --phase baseline", code=4)
    assert {"BLOCKED"} == {one["code"] for one in refused["reasons"]}


BAD_SCOPES = {
    "a key with a slip": (["scope.keys=[algo.learning_rte]"], "did you mean `algo.learning_rate`?"),
    "a key of another library": (["scope.keys=[ent_coef, algo.gamma]"], "did you mean `algo.entropy_coef`?"),
    "a key of nothing": (["scope.keys=[zzz.qqq, algo.gamma]"], "there is no key `zzz.qqq`; known keys: run_name"),
    "a pattern of nothing": (["scope.keys=['algo.lerning*', algo.gamma]"], "there is no key `algo.lerning*`"),
    "an argument with a slip": (["scope.keys=[env.kwargs.dificulty]"], "did you mean `env.kwargs.difficulty`?"),
    "a key forbidden with a slip": (["scope.forbidden=[algo.total_timestep]"], "did you mean `algo.total_timesteps`?"),
    "a glob of nothing": (["scope.paths=['rewards/**/*.py']"], "`rewards/**/*.py` matches no file"),
    "a file with a slip": (["scope.paths=[envs/lifft.py::Lift._reward]"], "did you mean `envs/lift.py::Lift._reward`?"),
    "a region with a slip": (["scope.paths=[envs/lift.py::Lift.reward]"], "did you mean `envs/lift.py::Lift._reward`?"),
    "a path forbidden with a slip": (["scope.forbidden=[envs/physic.py]"], "did you mean `envs/physics.py`?"),
    "a whole file behind the metric": (["scope.paths=[envs/physics.py, envs/lift.py]"], "name regions of it instead"),
    "a folder behind the metric": (["scope.paths=[envs]"], "name regions of it instead"),
    "the evaluator itself": (["scope.paths=[configs/lift.yaml]"], "belongs to the evaluator"),
    "a reward under the return": (
        ["scope.paths=[envs/lift.py::Lift._reward]", "metric.name=return"], "choose a task metric",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD_SCOPES)
def test_a_scope_that_means_nothing_or_too_much_is_open_with_a_command_that_settles_it(
    tmp_path: Path, what: str
) -> None:
    root = tmp_path / "project"
    rlx_repo(root)
    settings, says = BAD_SCOPES[what]
    wishes = Wishes(seeds=60, hours=2.0, settings=("budget.per_seed_minutes=1", *settings))
    told = new_study(root, "s1", wishes, config=root / "configs" / "lift.yaml")
    assert told["status"] == "blocked"
    assert any(says in one for one in told["missing"]), told["missing"]
    asked: list[str] = []
    while told["status"] == "blocked":
        assert told["command"] not in asked, f"a loop: {told['missing']}"
        asked.append(told["command"])
        typed(root, told["command"])
        told = overview(find_study(root))


def test_keys_of_the_config_and_arguments_that_an_environment_may_take_are_fine(tmp_path: Path) -> None:
    root = tmp_path / "project"
    rlx_repo(root)
    keys = ("algo.*", "policy.hidden_sizes", "env.kwargs.gravity_of_mars", "env.normalize.obs", "algo.*_coef")
    wishes = Wishes(seeds=60, hours=2.0, keys=keys, settings=("budget.per_seed_minutes=1",))
    assert new_study(root, "s1", wishes, config=root / "configs" / "lift.yaml")["status"] == "ready"


REFUSED = {
    "a dirty tree": ("rlx study new s1 --config configs/pole.yaml --hours 1", 4),
    "a direction that is none": ("rlx study new s1 --config configs/pole.yaml --metric return:up", 2),
    "a surface that is none": ("rlx study new s1 --config configs/pole.yaml --surface rewrd", 2),
    "a key of the contract that is none": ("rlx study new s1 --config configs/pole.yaml -s budgt.seeds=3", 2),
    "a value that cannot be": ("rlx study new s1 --config configs/pole.yaml -s metric.alpha=often", 2),
    "no assignment": ("rlx study new s1 --config configs/pole.yaml -s metric.alpha", 2),
    "a name that cannot be": ("rlx study new 'S 1' --config configs/pole.yaml", 2),
    "a config that is not there": ("rlx study new s1 --config configs/none.yaml", 3),
    "a task of a config that is not there": ("rlx task new pole --config configs/none.yaml", 3),
    "a task without a source": ("rlx task new pole --train 'python train.py' --metrics wandb:x", 2),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_leaves_nothing_behind(tmp_path: Path, what: str) -> None:
    root = repository(tmp_path / "project")
    if what == "a dirty tree":
        (root / "notes.txt").write_text("mine")
    before = {path.relative_to(root) for path in root.rglob("*") if ".git/" not in str(path)}
    command, code = REFUSED[what]
    typed(root, command, code=code)
    assert {path.relative_to(root) for path in root.rglob("*") if ".git/" not in str(path)} == before


def test_a_name_that_another_study_has_is_refused_before_a_task_is_made(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    (root / "configs" / "other.yaml").write_text(CONFIG.replace("64", "128"))
    git(root, "add", "-A")
    git(root, "commit", "-qm", "another")
    new_study(root, "faster", WISHES, config=root / "configs" / "pole.yaml")
    typed(root, "rlx study new faster --config configs/other.yaml", code=4)
    assert not (root / ".rlx" / "tasks" / "other").exists()
    refused = typed(root, "rlx study new slower --task pole --config configs/other.yaml", code=4)
    assert refused["error"] == "task `pole` exists already, for configs/pole.yaml"


def test_an_amendment_that_is_refused_changes_no_byte(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    new_study(root, "faster", WISHES, config=root / "configs" / "pole.yaml")
    study = find_study(root)
    before = (study.contract_path.read_bytes(), (study.folder / "ledger.jsonl").read_bytes())
    for setting, code in (("study=other", 4), ("metric.alpha=often", 2), ("budgt.seeds=3", 2), ("metric", 2)):
        typed(root, f"rlx study amend -s budget.seeds=70 -s {setting}", code=code)
    assert (study.contract_path.read_bytes(), (study.folder / "ledger.jsonl").read_bytes()) == before


def test_what_is_answered_about_the_mission_is_the_task_s(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    commands = Commands(train=("python3", "-c", "0", "{seed}"), metrics=source_of("jsonl:{out}/log", {"return": "r"}))
    new_task(root, "arm", commands=commands)
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return "hold more" if "one sentence" in question else ""

    new_study(root, "hold", Wishes(), task="arm", ask=ask)
    assert asked
    assert find_task(root, "arm").card.mission == "hold more"


def arm(root: Path) -> Path:
    """Return a repository whose study has to ask for everything."""
    repository(root)
    (root / "train.py").write_text("class Reward:\n    pass\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a program")
    evals = ("python3", "-c", "0", "{checkpoint}", "{episode_seed}")
    commands = Commands(
        train=("python3", "train.py", "{seed}", "{overrides}"), override="{key}={value}", eval=evals,
        checkpoint="{out}/net", metrics=source_of("stdout"),
        result=source_of("stdout", {"success": "s", "energy": "e"}),
    )  # fmt: skip
    new_task(root, "arm", commands=commands)
    return root


def test_a_key_of_a_task_is_set_as_long_as_no_study_is_approved_and_nothing_is_half_written(tmp_path: Path) -> None:
    root = arm(tmp_path / "project")
    typed(root, "rlx task refresh -s adapter.metrics.step=iteration -s card.mission=hold")
    metrics = find_task(root, "arm").adapter.metrics
    assert metrics is not None
    assert metrics.step == "iteration"
    typed(root, "rlx task refresh -s 'adapter.checkpoint={out}/*/model_*.pt' -s 'adapter.override=--set {key}={value}'")
    assert find_task(root, "arm").adapter.checkpoint == "{out}/*/model_*.pt"
    assert find_task(root, "arm").adapter.override == "--set {key}={value}"
    told = new_study(root, "hold", Wishes(metric="success", keys=("lr",), hours=1.0), task="arm")
    assert told["status"] == "ready"
    assert typed(root, "rlx task refresh arm -s adapter.steps=9")["command"] == "rlx next"
    assert overview(find_study(root))["status"] == "ready"
    before = find_task(root, "arm")
    assert "did you mean `adapter.steps`?" in typed(root, "rlx task refresh -s adapter.stepps=9", code=2)["hint"]
    typed(root, "rlx task refresh -s name=leg", code=4)
    approve(find_study(root), by="me")
    typed(root, "rlx task refresh -s adapter.steps=10", code=4)
    assert find_task(root, "arm") == before


def test_a_refreshed_task_has_the_values_that_its_config_has_now(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    (root / "arm.yaml").write_text("lr: 0.1\n")
    new_task(root, "arm", commands=Commands(train=("python3", "-c", "0", "arm.yaml", "{seed}", "{overrides}")))
    (root / "arm.yaml").write_text("lr: 0.2\nclip: 1\n")
    assert refresh_task(root, "arm").adapter.defaults == {"lr": 0.2, "clip": 1}


def test_every_question_can_be_answered_and_is_asked_again_until_it_is(tmp_path: Path) -> None:
    root = arm(tmp_path / "project")
    answers = ["hold more", "sucess", "success", "trian.py::Reward", "train.py::Reward, agent.lr", "long", "-1", "2"]
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return answers[len(asked) - 1]

    told = new_study(root, "hold", Wishes(guards=("-energy:2",)), task="arm", ask=ask)
    assert told["missing"] == []
    contract = find_study(root).contract()
    assert (contract.metric and contract.metric.name, contract.budget and contract.budget.hours) == ("success", 2)
    assert contract.scope is not None
    assert (contract.scope.paths, contract.scope.keys) == (("train.py::Reward",), ("agent.lr",))
    assert asked[2] == "unknown figure `sucess`; one of success, energy"
    assert asked[4].endswith("did you mean `train.py::Reward`?")
    assert asked[6:] == [
        "`long` is not a number of hours; for example 4, or 0.5",
        "`-1` is not a number of hours; for example 4, or 0.5",
    ]


def test_what_is_set_is_not_asked_and_what_is_wrong_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    root = arm(tmp_path / "project")
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return ""

    with pytest.raises(UsageError, match="is true or false") as error:
        new_study(root, "hold", Wishes(guards=("energy <= 20:2",)), task="arm", ask=ask)
    assert error.value.hint == "--guard -energy:2"
    with pytest.raises(UsageError, match="unknown name `fuel`"):
        new_study(root, "hold", Wishes(guards=("-fuel",)), task="arm", ask=ask)
    with pytest.raises(ConfigError):
        new_study(root, "hold", Wishes(settings=("automation.stap=[]",)), task="arm", ask=ask)
    assert asked == []
    new_study(root, "hold", Wishes(settings=("metric.name=success", "scope.keys=[lr]")), task="arm", ask=ask)
    assert [one.split()[0] for one in asked] == ["What", "How"]


def test_no_command_that_is_printed_takes_a_safety_rule_out(tmp_path: Path) -> None:
    root = arm(tmp_path / "project")
    wishes = Wishes(metric="success", keys=("lr",), hours=1.0, settings=(
        "guardrails=[{expression: energy <= 20, margin: 2}, {expression: enrgy}]",
        "automation.stop=[rejectd_in_a_row > 3, candidates]", "scope.forbidden=[../other]",
    ))  # fmt: skip
    told = new_study(root, "hold", wishes, task="arm")
    asked: list[str] = []
    while "study amend" in told["command"] or "task refresh" in told["command"]:
        assert told["command"] not in asked
        asked.append(told["command"])
        told = typed(root, told["command"]) if "amend" in told["command"] else overview(find_study(root))
        if "task refresh" in asked[-1]:
            typed(root, asked[-1])
            told = overview(find_study(root))
    contract = find_study(root).contract()
    assert [(one.expression, one.margin) for one in contract.guardrails] == [("-energy", 2), ("energy", 0)]
    assert contract.automation is not None
    assert contract.automation.stop == ("rejected_in_a_row > 3", "candidates >= 5")
    assert contract.scope is not None
    assert contract.scope.forbidden == ("../other",)
    assert told["command"] == "rlx study show hold"


STEP = """import gymnasium


class Line(gymnasium.Env):
    def step(self, action):
        reward = -abs(self.x)
        return None, reward, False, False, {"is_success": True}
"""


def test_a_reward_inside_step_is_said_where_the_contract_is_shown_and_approved(tmp_path: Path) -> None:
    root = tmp_path / "project"
    rlx_repo(root)
    (root / "envs" / "lift.py").write_text(STEP.replace("Line", "Lift"))
    git(root, "commit", "-qam", "a reward inside step")
    wishes = Wishes(seeds=60, hours=2.0, surfaces=("reward",), settings=("budget.per_seed_minutes=1",))
    told = new_study(root, "s1", wishes, config=root / "configs" / "lift.yaml")
    says = "`envs/lift.py::Lift.step` is the whole `step`"
    assert any(says in note for note in told["points"][2]["notes"])
    shown = approved.render(approve(find_study(root), by="me"))
    assert "scope: surface reward: envs/lift.py::Lift.step" in shown
    assert f"note: {says}" in shown
    assert "rehearsal: none yet" in shown


def test_a_file_that_went_stale_under_an_approved_study_is_put_back_by_the_hint(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    new_study(root, "faster", WISHES, config=root / "configs" / "pole.yaml")
    approve(find_study(root), by="me")
    (root / "configs" / "pole.yaml").write_text(CONFIG.replace("64", "128"))
    git(root, "commit", "-qam", "longer")
    refused = typed(root, "rlx task refresh pole", code=4)
    put_back = refused["hint"].removeprefix("restore its files: ")
    assert put_back.startswith("git checkout ")
    told = typed(root, "rlx next --full")
    assert told["command"] == put_back
    assert "rlx task refresh" not in told["why"]
    assert "a person does this" not in told["why"]
    subprocess.run(shlex.split(put_back), cwd=root, check=True, capture_output=True)
    assert overview(find_study(root))["status"] == "approved"


@pytest.mark.parametrize("is_known", [True, False])
def test_what_no_commit_has_is_put_aside_before_a_file_is_put_back(tmp_path: Path, is_known: bool) -> None:
    root, edited = repository(tmp_path / "project"), CONFIG.replace("64", "128")
    new_study(root, "faster", WISHES, config=root / "configs" / "pole.yaml")
    approve(find_study(root), by="me")
    git(root, "config", "user.name", "me")
    git(root, "config", "user.email", "me@example.org")
    if not is_known:
        git(root, "rm", "-q", "configs/pole.yaml")
        git(root, "commit", "-qm", "moved away")
        (root / "configs").mkdir()
    (root / "configs" / "pole.yaml").write_text(edited)
    told = typed(root, "rlx next --full")
    assert told["action"] == "amend"
    assert "a person does this: the edits in configs/pole.yaml are in no commit" in told["why"]
    subprocess.run(["sh", "-c", told["command"]], cwd=root, check=True, capture_output=True)
    assert overview(find_study(root))["status"] == "approved"
    found = subprocess.run(
        ["git", "show", "stash@{0}:configs/pole.yaml" if is_known else "stash@{0}^3:configs/pole.yaml"],
        cwd=root, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert found.stdout == edited


def test_a_mend_that_is_pinned_after_the_approval_is_not_told_to_be_put_back(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    new_study(root, "faster", WISHES, config=root / "configs" / "pole.yaml")
    approve(find_study(root), by="me")
    (root / "configs" / "pole.yaml").write_text(CONFIG.replace("64", "128"))
    git(root, "commit", "-qam", "mended")
    pinned = head_commit(root)
    typed(root, f"rlx study amend faster -s baseline.commit={pinned}")
    another = "describe another task: rlx task new NAME --config configs/pole.yaml"
    assert typed(root, "rlx task refresh pole", code=4)["hint"] == another
    told = typed(root, "rlx next --full")
    assert another in told["why"]
    assert not told["command"].startswith(("rlx task refresh", "git checkout"))


def test_files_that_were_read_again_are_pinned_again_before_anything_is_approved(tmp_path: Path) -> None:
    root = tmp_path / "project"
    rlx_repo(root)
    wishes = Wishes(seeds=60, hours=2.0, settings=("budget.per_seed_minutes=1",))
    assert new_study(root, "s1", wishes, config=root / "configs" / "lift.yaml")["status"] == "ready"
    for name in ("envs/lift.py", "configs/lift.yaml"):
        with (root / name).open("a") as file:
            file.write("# another\n")
    told = typed(root, "rlx task refresh lift")
    says = "the task was read from another version of"
    asked = typed(root, "rlx next --full")
    assert says in asked["why"]
    assert asked["command"].startswith("git add -A && git commit ")
    assert asked["command"].endswith("rlx study amend s1 -s baseline.commit=$(git rev-parse HEAD)")
    git(root, "commit", "-qam", "another")
    assert says in typed(root, "rlx study approve --yes --by me", code=4)["error"]
    told = typed(root, "rlx study show")
    assert any("`envs/lift.py`" in one and "`configs/lift.yaml`" in one for one in told["missing"])
    assert told["command"] == f"rlx study amend s1 -s baseline.commit={head_commit(root)}"
    while told["status"] == "blocked":
        told = typed(root, told["command"])
    assert find_study(root).contract().baseline.commit == head_commit(root)


def test_files_that_are_pinned_as_they_lie_are_what_the_task_was_read_from(tmp_path: Path) -> None:
    root = tmp_path / "project"
    rlx_repo(root)
    (root / "configs" / "other.yaml").write_text((root / "configs" / "lift.yaml").read_text())
    wishes = Wishes(seeds=60, hours=2.0, settings=("budget.per_seed_minutes=1",))
    told = new_study(root, "s1", wishes, config=root / "configs" / "other.yaml", is_snapshot=True)
    assert told["status"] == "ready"


def test_a_repository_of_unknown_keys_is_led_to_a_scope_and_asked_for_its_figure(tmp_path: Path) -> None:
    root = repository(tmp_path / "lab")
    for name in ("train.py", "evaluate.py"):
        (root / name).write_text("print('loss=1')\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "programs")
    commands = Commands(
        train=("python3", "train.py", "{seed}", "{out}", "{overrides}"),
        eval=("python3", "evaluate.py", "{checkpoint}", "{episodes}", "{episode_seed}"),
        metrics=source_of("stdout"), result=source_of("stdout"), checkpoint="{out}/net", mission="hold more",
    )  # fmt: skip
    new_task(root, "arm", commands=commands)
    told = new_study(root, "hold", Wishes(hours=1.0), task="arm")
    assert any("metric.name=NAME" in one for point in told["points"] for one in point["problems"])
    typed(root, "rlx study amend hold -s metric.name=loss")
    typed(root, typed(root, "rlx next --full")["command"])
    assert find_study(root).contract().scope.paths == ("train.py",)  # type: ignore[union-attr]
    assert typed(root, "rlx next --full")["action"] == "rehearse"


def test_where_a_task_has_no_study_yet_the_hint_begins_one_on_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    new_task(root, "pole", config=root / "configs" / "pole.yaml")
    hint = typed(root, "rlx next --full", code=3)["hint"]
    assert typed(root, hint.replace("NAME", "faster"))["task"] == "pole"


def test_a_time_that_is_over_is_an_open_point_as_long_as_nothing_is_approved(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    told = new_study(root, "s1", replace(WISHES, until="2020-01-31T07:00"), config=root / "configs" / "pole.yaml")
    says = "until `2020-01-31T07:00` has passed: no job could start"
    assert told["status"] == "blocked"
    assert any(says in one for one in told["points"][3]["problems"])
    assert says in typed(root, "rlx study approve --yes --by me", code=4)["error"]
    assert says in typed(root, "rlx next --full")["why"]
    typed(root, told["command"])
    assert typed(root, "rlx study approve --yes --by me")["status"] == "approved"
    contract, text = find_study(root).contract_path, find_study(root).contract_path.read_text()
    contract.write_text(text.replace("until: 07:00", "until: 2020-01-31"))
    assert not any("is over" in one for one in overview(find_study(root))["missing"]), "an approved one ends by itself"
