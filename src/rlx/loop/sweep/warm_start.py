"""What earlier runs of the project say about a sweep's space: their configs and scores under the same protocol."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from rlx.compare.code_version import CurrentCode
from rlx.config.diff import diff
from rlx.config.labels import value_at
from rlx.errors import RlxError
from rlx.loop.settle.run_or_config import readable_runs
from rlx.loop.sweep.sweep_plan import SweepPlan
from rlx.loop.sweep.trial_runs import final_score
from rlx.runs.run import Run
from rlx.search.observation import Observation
from rlx.search.space import Values

IGNORED = ("run_name", "seed", "seeds", "schema", "backend")


MOST_REUSED = 3
"""The best earlier configs become trials, so that they can win the race."""


def earlier_results(plan: SweepPlan, *, root: Path, ground: CurrentCode) -> list[tuple[str, Observation]]:
    """Return run and observation of every earlier config that differs from the base only in the space, best first.

    Only runs of the present code count.
    """
    from rlx.config.load import document

    base = document(plan.experiment({}))
    found: dict[tuple[object, ...], tuple[str, Observation]] = {}
    for run in readable_runs(root):
        try:
            values = _values(plan, base, run)
            if values is None or ground.changes(run):
                continue
            scores = [final_score(run, seed, plan.question) for seed in run.seeds]
        except (RlxError, OSError, ValueError):  # a damaged run says nothing
            continue
        known = [score for score in scores if score is not None]
        if known:
            found.setdefault(plan.space.identity(values), (run.name, Observation(values, fmean(known))))
    return sorted(found.values(), key=lambda pair: -(pair[1].score or 0.0))


def _values(plan: SweepPlan, base: dict[str, object], run: Run) -> Values | None:
    """Return a run's config as values of the space; None if it differs from the base in anything else."""
    from rlx.config.load import document, parse

    config = document(parse(run.config, source=run.name))
    changed = {change.key for change in diff(base, config)}
    keys = plan.space.keys
    if any(key.split(".")[0] not in IGNORED and not _is_in(key, keys) for key in changed):
        return None
    values: Values = {}
    for parameter in plan.space.parameters:
        value = value_at(config, parameter.key)
        if value is not None and plan.space.counts(parameter, values):
            values[parameter.key] = value
    if plan.space.point(values) is None:
        return None
    return values


def _is_in(key: str, keys: tuple[str, ...]) -> bool:
    return any(key == known or key.startswith(f"{known}.") for known in keys)
