"""Train a config on one or more seeds in parallel, and show live progress.

The run has its own supervisor; with --detach it outlives the shell. Ctrl-C saves `latest` and stops.
A config with a `grid` stands for several configs. rlx trains them one after the other, and the same command continues
where it stopped: what is trained already is not trained again.
--notify runs a command of yours at the end, without a shell; {run} and {state} are filled in.

Example: rlx train configs/cartpole.yaml --seeds 5 -s algo.learning_rate=1e-3
         rlx train --more cartpole_ppo_001 --seeds 4
         rlx train configs/bench.yaml --seeds 3
         rlx train configs/cartpole.yaml --notify 'notify-send "{run} is {state}"'
         rlx train configs/cartpole.yaml --seeds 10 --executor slurm
         rlx train configs/cartpole.yaml -s algo.gamma=0.95 --name short_sighted
"""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlx.errors import UsageError
from rlx.hosts.cli import attach
from rlx.hosts.cli.arguments import (
    Args,
    Data,
    Parser,
    add_executor,
    add_settings,
    add_trust,
    find_run,
    obey_trust,
    parse_seeds,
)
from rlx.hosts.cli.format import NOTHING, spread
from rlx.hosts.cli.notify import add_notify, notified, notify
from rlx.hosts.cli.output import say, table
from rlx.launch import launch
from rlx.runs import project
from rlx.runs.job_folder import LOCAL
from rlx.runs.run import Run
from rlx.runs.status import COMPLETED

if TYPE_CHECKING:
    from rlx.compare.code_version import CurrentCode
    from rlx.config.config_grid import GridCell
    from rlx.config.schema import Experiment


def arguments(parser: Parser) -> None:
    parser.add_argument("config", nargs="?", help="a YAML config, or catalog:NAME")
    parser.add_argument("--seeds", help="a count (5) or a list (0,7 or 0,)")
    add_settings(parser)
    parser.add_argument("--name", help="name of the run: NAME_001 and on (default: from environment and algorithm)")
    parser.add_argument("--more", metavar="RUN", help="add seeds to this run instead of starting a new one")
    parser.add_argument("--anyway", action="store_true", help="with --more: even if the code or versions changed")
    add_executor(parser)
    parser.add_argument("--detach", action="store_true", help="return at once; see rlx watch, rlx wait, rlx stop")
    add_notify(parser)
    add_trust(parser)


def run(args: Args) -> Data:
    obey_trust(args)
    if args.config and not args.more:
        from rlx.config.config_grid import cells

        grid = cells(Path(args.config))
        if grid:
            return _train_grid(args, grid)
    if args.detach and args.notify:
        hint = "rlx train CONFIG --detach, then rlx wait RUN --notify CMD"
        raise UsageError("--notify needs a command that waits, and --detach does not", hint=hint)
    run = _more(args) if args.more else _new(args)
    if not args.detach:
        with notified(args.notify, run.path):
            run = attach.attach(run)
    return attach.outcome(run)


def _train_grid(args: Args, cells: Sequence[GridCell]) -> Data:
    """Train every cell of a grid that is not trained yet, one after the other."""
    from rlx.compare.code_version import CurrentCode
    from rlx.config.defaults import default_name, slug

    if args.detach:
        hint = f"nohup rlx train {args.config} & trains it in the background"
        raise UsageError("a grid trains its configs one after the other, so --detach cannot return at once", hint=hint)
    path = Path(args.config)
    prefix = args.name or path.stem
    root = project.root_of(path)
    ground = CurrentCode(root)
    rows = []
    for number, cell in enumerate(cells, start=1):
        overrides = [*cell.overrides, *args.set]
        _, experiment = read(args.config, overrides=overrides, seeds=args.seeds)
        title = ", ".join(str(value) for value in (experiment.env.id, experiment.algo.name))
        say(f"config {number} of {len(cells)}: {title}")
        experiment = experiment.model_copy(
            update={"run_name": slug(f"{prefix}_{default_name(experiment.env, experiment.algo)}")}
        )
        run = _continue_cell(experiment, root=root, ground=ground)
        rows.append(attach.outcome(run))
    if args.notify:
        notify(args.notify, Run(Path(rows[-1]["path"])))
    return {"config": args.config, "runs": rows, "next": f"rlx compare --tasks {shlex.quote(f'{slug(prefix)}_*')}"}


def _continue_cell(experiment: Experiment, *, root: Path, ground: CurrentCode) -> Run:
    """Return the trained run of a cell: the first run of this config and code, continued, or else a new one."""
    from rlx.loop.settle.run_or_config import run_to_continue

    choice = launch.check(experiment, root=root)
    for problem in choice.problems:
        say(f"note: {problem.message}")
    run = run_to_continue(choice.experiment, root=root, ground=ground)
    if run is None:
        say(str(choice))
        return attach.attach(launch.launch(choice.experiment, root=root))
    if any(seed.status.state != COMPLETED for seed in run.seeds):
        run = attach.attach(launch.resume(run))
    missing = sorted(set(experiment.training_seeds()) - {seed.number for seed in run.seeds})
    if missing:
        return attach.attach(launch.add_seeds(run, missing))
    say(f"{run.name} is trained already")
    return run


def _new(args: Args) -> Run:
    if not args.config:
        raise UsageError("no config given", hint="rlx train configs/NAME.yaml, or rlx init NAME to make one")
    root, experiment = read(args.config, overrides=[*args.set, *_name_override(args.name)], seeds=args.seeds)
    with contextlib.ExitStack() as stack:
        supervisor = None
        if launch.default_executor(root) == LOCAL:
            supervisor = stack.enter_context(launch.prepared_supervisor())
        choice = launch.check(experiment, root=root)
        for problem in choice.problems:
            say(f"note: {problem.message}")
        say(str(choice))
        run = launch.launch(choice.experiment, root=root, supervisor=supervisor)
    seeds = ", ".join(str(seed) for seed in experiment.training_seeds())
    say(f"{run.name}: {experiment.algo.name} on {experiment.env.id}, seeds {seeds}")
    return run


def _name_override(name: str | None) -> list[str]:
    """Return the override that names a run, or nothing."""
    if name is None:
        return []
    return [f"run_name={json.dumps(name)}"]


def read(config: str, *, overrides: list[str], seeds: str | None) -> tuple[Path, Experiment]:
    """Return the project's root and the experiment of a config with its overrides."""
    from rlx.config.load import check, load
    from rlx.evaluate.stored_code import refuse_stored_code

    path = Path(config)
    project.refuse_worktree(path)
    refuse_stored_code(path, root=project.root_of(path))
    experiment = load(path, overrides=overrides)
    for located in check(path, overrides=overrides).notes:
        if located.problem.key == "algo.name":  # the others come with the choice of the backend
            say(f"note: {located.problem.message}")
    if seeds:
        experiment = experiment.model_copy(update={"seeds": parse_seeds(seeds)})
    return project.root_of(path), experiment


def _more(args: Args) -> Run:
    if args.config or args.set or args.name:
        raise UsageError("--more trains more seeds of the same config", hint="for another config, start a new run")
    if not args.seeds:
        raise UsageError("--more needs --seeds", hint=f"rlx train --more {args.more} --seeds 4")
    return launch.add_seeds(find_run(args.more), parse_seeds(args.seeds), is_anyway=args.anyway)


def render(data: Data) -> str:
    if "runs" not in data:
        return attach.render(data)
    rows = [[row["run"], row["state"], str(len(row["seeds"])), _score(row)] for row in data["runs"]]
    return f"{table(['run', 'state', 'seeds', 'return'], rows, right=(2, 3))}\n\nnext: {data['next']}"


def _score(row: Data) -> str:
    if not row["return"]:
        return NOTHING
    return spread(row["return"])
