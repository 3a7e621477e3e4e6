"""What makes a candidate's evidence invalid, whatever its scores: other code, other budgets, a changed worktree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlx.launch import record, worktree
from rlx.loop import scores
from rlx.runs.run import Run
from rlx.study import patterns
from rlx.study.contract import allowed
from rlx.study.lifecycle import Phase
from rlx.study.study import Study


def objections(study: Study, sides: Mapping[str, Phase]) -> Iterator[str]:
    """Yield every reason not to believe a comparison of candidates, each in its phase."""
    state, contract = study.state(), study.contract()
    runs = {name: [Run(study.root / "runs" / str(job.run)) for job in scores.ended(state, name, phase)]
            for name, phase in sides.items()}  # fmt: skip
    yield from _budgets(runs)
    assert contract.baseline is not None
    in_scope = _files_in_scope(study)
    for name, own in runs.items():
        tree = study.worktree(name)
        now = worktree.diff_sha256(worktree.diff(tree, contract.baseline.commit, root=study.root))
        for run in own:
            if (run.metadata.get("lineage") or {}).get("diff_sha256") != now:
                yield f"the worktree of {name} is other than when {run.name} was launched"
            yield from record.elsewhere(record.record_of(run), tree, study.root, in_scope)


def _files_in_scope(study: Study) -> tuple[str, ...]:
    """Return the source files that candidates may change, as paths in the tree."""
    contract = study.contract()
    if contract.scope is None:
        return ()
    wanted = [patterns.split(one)[0] for one in allowed(contract.scope, study.task()).paths]
    present = [path.relative_to(study.evaluator).as_posix() for path in study.evaluator.rglob("*.py")]
    return tuple(path for path in present if any(patterns.covers_path(one, path) for one in wanted))


def _budgets(runs: Mapping[str, list[Run]]) -> Iterator[str]:
    planned = {name: sorted({run.planned_steps for run in own}) for name, own in runs.items()}
    if len({tuple(steps) for steps in planned.values()}) > 1:
        told = ", ".join(f"{name} {' and '.join(map(str, steps))}" for name, steps in planned.items())
        yield f"the sides were trained for different numbers of steps: {told}"
