"""The gate's table says what bench/learning.md shows, no more and no less."""

from __future__ import annotations

import re
from pathlib import Path

import gymnasium

from rlx.train.backends import fast_gate

BENCH = Path(__file__).parents[3] / "bench"


def passed_in_bench() -> set[str]:
    """Return the environments of the tasks that passed a gate and failed none, by the committed results."""
    rows = (BENCH / "learning.md").read_text().splitlines()
    passed, failed = (
        {row.split("|")[1].strip() for row in rows if row.rstrip().endswith(f"**{verdict}** |")}
        for verdict in ("passed", "FAILED")
    )
    envs = dict(re.findall(r'"(\w+)": Task\(\s*\{"id": "([^"]+)"', (BENCH / "learning.py").read_text()))
    return {envs[name] for name in passed - failed}


def test_the_table_names_the_tasks_that_passed() -> None:
    named = {task for tasks in fast_gate.PASSED.values() for task in tasks}
    assert named == (passed_in_bench() if (BENCH / "learning.md").is_file() else set())


def test_every_task_stands_under_its_kind_of_actions() -> None:
    for kind, tasks in fast_gate.PASSED.items():
        for task in tasks:
            env = gymnasium.make(task)
            assert type(env.action_space).__name__ == kind
            env.close()
