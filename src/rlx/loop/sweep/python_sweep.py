"""`rlx.sweep`: a sweep from Python, with the same plan, log and result as the command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlx.loop.sweep import run_sweep, sweep_log
from rlx.loop.sweep.sweep_file import SweepRequest, plan_for, read_value
from rlx.loop.sweep.sweep_plan import SweepBudget
from rlx.loop.sweep.sweep_report import describe
from rlx.runs import project
from rlx.search.parse_space import space_of


def sweep(
    config: str | Path | Mapping[str, Any],
    space: Mapping[str, Any],
    *,
    trials: int | None = None,
    seeds: int | None = None,
    name: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Search a space, race and confirm the winner, and return what `rlx sweep show --json` prints.

    `space` maps a key to `"log:1e-5:1e-2"`, a list of values or a mapping. `options` are keys of a sweep file:
    sampler, halving, race, confirm, seed, warm, audit_pruning, fixed. A name that exists continues that sweep.
    """
    root = project.root()
    if name is not None and name in sweep_log.names(root):
        run_sweep.resume(name, root=root, report=_silent)
        return describe(sweep_log.find(name, root=root), root=root)
    base: str | Mapping[str, Any] = str(config)
    if isinstance(config, Mapping):
        base = config
    fixed = options.pop("fixed", {})
    request = SweepRequest(
        base,
        space_of(space, read=read_value),
        name=name,
        fixed=fixed,
        budget=SweepBudget(trials, seeds, options.pop("hours", None)),
        options=options,
    )
    plan = plan_for(request, root=root)
    run_sweep.start(plan, root=root, report=_silent, say=lambda _text: None)
    return describe(sweep_log.find(plan.name, root=root), root=root)


def _silent(_progress: run_sweep.SweepProgress) -> None:
    """Report nothing."""
