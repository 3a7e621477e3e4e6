"""The gate's table says what bench/learning.md shows, no more and no less."""

from __future__ import annotations

import re
from pathlib import Path

import gymnasium

from rlx.train.backends.fast import learning_gate

BENCH = Path(__file__).parents[4] / "bench"


def decided_in_bench(verdict: str) -> set[str]:
    """Return the environments of the tasks with such a verdict in one of their gates, by the committed results."""
    rows = (BENCH / "learning.md").read_text().splitlines()
    names = {row.split("|")[1].strip() for row in rows if row.rstrip().endswith(f"**{verdict}** |")}
    envs = dict(re.findall(r'"(\w+)": Task\(\s*\{"id": "([^"]+)"', (BENCH / "learning.py").read_text()))
    return {envs[name] for name in names}


def kind_of(task: str) -> str:
    env = gymnasium.make(task)
    env.close()
    return type(env.action_space).__name__


def test_the_table_names_the_tasks_that_passed_and_no_kind_of_actions_where_one_failed() -> None:
    failed_kinds = {kind_of(task) for task in decided_in_bench("FAILED")}
    passed = {task for task in decided_in_bench("passed") if kind_of(task) not in failed_kinds}
    assert {task for tasks in learning_gate.PASSED.values() for task in tasks} == passed


def test_every_task_stands_under_its_kind_of_actions() -> None:
    assert all(kind_of(task) == kind for kind, tasks in learning_gate.PASSED.items() for task in tasks)
