"""What makes a candidate's evidence invalid, whatever its scores: other code, other budgets, a changed worktree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlx.launch import record, worktree
from rlx.loop import scores
from rlx.runs.run import Run
from rlx.study.lifecycle import Phase
from rlx.study.study import Study


def objections(study: Study, sides: Mapping[str, Phase]) -> Iterator[str]:
    """Yield every reason not to believe a comparison of candidates, each in its phase."""
    state, contract, task = study.state(), study.contract(), study.task()
    runs = {name: [Run(study.root / "runs" / str(job.run)) for job in scores.ended(state, name, phase)]
            for name, phase in sides.items()}  # fmt: skip
    yield from _budgets(runs)
    assert contract.baseline is not None
    for name, own in runs.items():
        tree = study.worktree(name)
        now = worktree.diff_sha256(worktree.diff(tree, contract.baseline.commit, root=study.root))
        for run in own:
            if (run.metadata.get("lineage") or {}).get("diff_sha256") != now:
                yield f"the worktree of {name} is other than when {run.name} was launched"
            yield from record.problems(run, worktree=tree, root=study.root, contract=contract, task=task)


def _budgets(runs: Mapping[str, list[Run]]) -> Iterator[str]:
    planned = {name: sorted({run.planned_steps for run in own}) for name, own in runs.items()}
    if len({tuple(steps) for steps in planned.values()}) > 1:
        told = ", ".join(f"{name} {' and '.join(map(str, steps))}" for name, steps in planned.items())
        yield f"the sides were trained for different numbers of steps: {told}"
