"""What hooks are told of a study."""

from __future__ import annotations

from dataclasses import dataclass

from rlx.study.contract.contract import Contract, Scope
from rlx.study.hook_file import hook_content
from rlx.study.task.task import Adapter, PathsAndKeys, Task


@dataclass(frozen=True)
class Approval:
    contract: str
    expires: float | None = None


@dataclass(frozen=True)
class State:
    contract: str | None
    approval: Approval | None


TASK = Task(
    name="trot",
    adapter=Adapter(
        kind="command",
        prefix=("uv", "run"),
        train=("python", "scripts/train.py", "--seed", "{seed}"),
        eval=("python", "-m", "evals.success", "{checkpoint}"),
    ),
    surfaces={
        "reward": PathsAndKeys(paths=("tasks/reward.py::RewardCfg",), keys=("reward.*",)),
        "evaluator": PathsAndKeys(paths=("evals/*",)),
    },
)
CONTRACT = Contract(
    study="s1", task="trot", scope=Scope(surfaces=("reward",), paths=("gait.py",), forbidden=("robot/",))
)


def test_names_entries_surface_and_what_is_protected() -> None:
    view = hook_content(TASK, CONTRACT, State("a", Approval("a", 12.0)))
    assert view["approved"] is True
    assert view["expires"] == 12.0
    assert view["worktrees"] == ".rlx/tasks/trot/studies/s1/worktrees"
    assert view["train"] == ["scripts/train.py"]
    assert view["surface"] == ["gait.py", "tasks/reward.py"]
    assert view["protected"] == ["evals/*", "evals.success", "evals/success.py", "robot/"]


def test_an_approval_of_another_contract_is_none() -> None:
    assert hook_content(TASK, CONTRACT, State("b", Approval("a")))["approved"] is False
    assert hook_content(TASK, CONTRACT, State("b", None))["approved"] is False


def test_a_program_without_a_file_is_named_by_itself() -> None:
    adapter = Adapter(kind="command", train=("bin/train-agent", "{overrides}"))
    assert hook_content(Task(name="t", adapter=adapter), CONTRACT, State("a", None))["train"] == ["train-agent"]


def test_an_rlx_config_has_no_entry_of_its_own() -> None:
    task = Task(name="t", adapter=Adapter(kind="rlx", config="configs/a.yaml"))
    assert hook_content(task, CONTRACT, State("a", None))["train"] == []
