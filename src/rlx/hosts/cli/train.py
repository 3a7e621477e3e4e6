"""Train a config on one or more seeds, side by side, and show live progress.

The run has a supervisor of its own: with --detach it outlives the shell. Ctrl-C saves `latest` and stops.

Example: rlx train configs/cartpole.yaml --seeds 5 -s algo.learning_rate=1e-3
         rlx train --more cartpole_ppo_001 --seeds 4
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import UsageError
from rlx.hosts.cli import attach
from rlx.hosts.cli.attach import render as render
from rlx.hosts.cli.output import say
from rlx.hosts.cli.seeds import parse_seeds
from rlx.launch import launch
from rlx.runs import project
from rlx.runs.run import Run, find

if TYPE_CHECKING:
    from rlx.config.schema import Experiment


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="?", help="a YAML config, or catalog:NAME")
    parser.add_argument("--seeds", help="a count (5) or a list (0,7 or 0,)")
    parser.add_argument("-s", "--set", action="append", default=[], metavar="KEY=VALUE", help="override a config key")
    parser.add_argument("--more", metavar="RUN", help="add seeds to this run instead of starting a new one")
    parser.add_argument("--anyway", action="store_true", help="with --more: although the code or versions changed")
    parser.add_argument("--detach", action="store_true", help="return at once; see rlx watch, rlx wait, rlx stop")


def run(args: argparse.Namespace) -> dict[str, Any]:
    started = _more(args) if args.more else _new(args)
    if args.detach:
        return attach.outcome(started)
    return attach.outcome(attach.attach(started))


def _new(args: argparse.Namespace) -> Run:
    if not args.config:
        raise UsageError("no config given", hint="rlx train configs/NAME.yaml, or rlx init NAME to make one")
    root, experiment = read(args.config, overrides=args.set, seeds=args.seeds)
    with launch.prepared() as supervisor:
        choice = launch.check(experiment, root=root)
        for problem in choice.problems:
            say(f"note: {problem.message}")
        say(str(choice))
        started = launch.launch(choice.experiment, root=root, supervisor=supervisor)
    seeds = ", ".join(str(seed) for seed in experiment.training_seeds())
    say(f"{started.name}: {experiment.algo.name} on {experiment.env.id}, seeds {seeds}")
    return started


def read(config: str, *, overrides: list[str], seeds: str | None) -> tuple[Path, Experiment]:
    """Return the project's root and the experiment a config and its overrides describe."""
    from rlx.config.load import load

    path = Path(config)
    project.refuse_worktree(path)
    experiment = load(path, overrides=overrides)
    return project.root_of(path), experiment.model_copy(update={"seeds": parse_seeds(seeds)} if seeds else {})


def _more(args: argparse.Namespace) -> Run:
    if args.config or args.set:
        raise UsageError("--more trains further seeds of a run as it is", hint="a changed config is a new run")
    if not args.seeds:
        raise UsageError("--more needs --seeds", hint=f"rlx train --more {args.more} --seeds 4")
    return launch.more(find(args.more, root=project.root()), parse_seeds(args.seeds), is_anyway=args.anyway)
