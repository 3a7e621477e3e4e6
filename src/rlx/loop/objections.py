"""What makes a candidate's evidence invalid, whatever its scores: other code, other budgets, a changed run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlx.launch import governed, record, worktree
from rlx.launch.examined import LONGER
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
    meant = {event["run"]: event.get("identity") for event in study.ledger.events() if event.kind == "intent"}
    for run in (run for own in runs.values() for run in own):
        if governed.identity_of(run) != meant.get(run.name):
            yield f"the identity of {run.name} is other than when it was launched"
            continue
        tree = governed.tree_of(run)
        now = worktree.diff_sha256(worktree.diff(tree, contract.baseline.commit, root=study.root))
        if run.metadata["lineage"]["diff_sha256"] != now:
            yield f"the code that {run.name} ran is other than when it was launched"
        yield from record.problems(run, worktree=tree, root=study.root, contract=contract, task=task)


def _budgets(runs: Mapping[str, list[Run]]) -> Iterator[str]:
    planned = {name: sorted({run.planned_steps for run in own}) for name, own in runs.items()}
    if len({tuple(steps) for steps in planned.values()}) > 1:
        told = ", ".join(f"{name} {' and '.join(map(str, steps))}" for name, steps in planned.items())
        yield f"the sides were trained for different numbers of steps: {told}"
    trained = {name: max((seed.step for run in own if not run.is_opaque for seed in run.seeds), default=0)
               for name, own in runs.items()}  # fmt: skip
    (ours, before), (theirs, after) = next(iter(trained.items())), list(trained.items())[-1]
    if before and after > LONGER * before:
        yield f"{theirs} was trained for {after:,} steps, {ours} for {before:,}: its last round was too long"
