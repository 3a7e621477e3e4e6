"""The one screen: eight points, each with what it says, whether it is settled, and why not."""

from __future__ import annotations

import json
from pathlib import Path

from rlx.study.approval import approval
from rlx.study.contract import contract_checks
from rlx.study.contract.budget_power import SeedTime, budget_power
from rlx.study.contract.contract import POINTS, Contract
from rlx.study.contract.contract_view import point_rows
from rlx.study.task import task as tasks
from tests.study.papers import contract_of, rlx_repo, rlx_task


def test_eight_points_in_their_order_with_all_that_was_agreed(tmp_path: Path) -> None:
    sha = rlx_repo(tmp_path)
    task = rlx_task(tmp_path)
    contract = contract_of(
        task, tmp_path, sha,
        metric={"name": "success_rate", "min_effect": 0.05, "claims": 2},
        guardrails=[{"expression": "-length_mean"}, {"expression": "median", "margin": 1, "mode": "safety"}],
        budget={"seeds": 80, "hours": 4, "per_seed_minutes": 3, "until": "07:00", "trial_steps": 0.3},
        hardware={"cores": 2, "memory_gb": 4, "reads": ["/usr/share"]},
        automation={"unattended": True, "stop": ["spent > 0.9", "hours > 3"]},
    )  # fmt: skip
    assert contract.budget is not None
    assert contract.metric is not None
    power = budget_power(contract.budget, contract.metric, seed_time=SeedTime.of(contract.budget))
    rows = point_rows(
        contract,
        task,
        problems=contract_checks.problems(contract, task, root=tmp_path),
        notes=contract_checks.notes(contract, task),
        budget_lines=power.lines("success_rate"),
        forgery_risks=approval.forgery_risks("asserted"),
    )
    assert [row.point for row in rows] == list(POINTS)
    assert [row.number for row in rows] == list(range(1, 9))
    assert all(row.is_settled for row in rows)
    text = "\n".join(line for row in rows for line in (*row.lines, *row.notes))
    for words in (
        "Improve the success_rate",
        "maximize success_rate (mean over seeds, from evaluator) by at least 0.05",
        "10 seeds per side, alpha 0.05, 2 claims",
        "guardrail median: safety must be shown, margin 1",
        "surface hyperparameters: algo.*, policy.*",
        "forbidden: algo.total_timesteps",
        "80 seeds, 4 h, at most 3 min per seed, until 07:00",
        "trials of 30% of the steps",
        "2 cores, 0 GPUs, 4 GB of memory",
        "jobs also read /usr/share",
        f"rlx train configs/lift.yaml at commit {sha[:12]}",
        "level sealed or better",
        "50 for the claim, drawn afterwards",
        "runs unattended; approval asserted",
        "no network, sandbox required",
        "ends when spent > 0.9 or hours > 3",
        "leaves 50 for the search",
        "not ruled out: anyone on this account",
        "anyone on this account could make one",
    ):
        assert words in text, words
    assert json.dumps([row.document() for row in rows])


def test_unlimited_memory_is_shown(tmp_path: Path) -> None:
    sha = rlx_repo(tmp_path)
    task = rlx_task(tmp_path)
    rows = point_rows(contract_of(task, tmp_path, sha, hardware={"cores": 2}), task, problems=())
    assert "per seed: 2 cores, 0 GPUs, unlimited memory (memory_gb); 1 in parallel" in rows[4].lines


def test_what_is_open_says_why(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    task = rlx_task(tmp_path)
    empty = Contract(study="a", task="lift", task_sha256=tasks.sha256(task))
    rows = point_rows(empty, task, problems=contract_checks.problems(empty, task, root=tmp_path))
    assert not any(row.is_settled for row in rows)
    by_point = {row.point: row for row in rows}
    assert by_point["budget"].problems[0].startswith("`budget` is missing (rlx study amend a -s 'budget={")
    assert by_point["task"].problems == ("""not confirmed (rlx study amend a -s 'confirmed=["task"]')""",)
    assert by_point["budget"].lines == ()
