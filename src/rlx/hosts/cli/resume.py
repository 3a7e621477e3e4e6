"""Continue a run in place, every unfinished seed from its newest valid checkpoint.

Each seed says how faithful that is: exact (bit-identical to a run that was never interrupted), boundary (the
environment was reset) or warm (something else is missing, and is named). --prove trains a stretch once in one go and
once with a break, and compares every weight. --fork continues in a new run, with other settings where you like.

Example: rlx resume cartpole_ppo_001
         rlx resume cartpole_ppo_001 --fork -s algo.total_timesteps=200000
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.errors import UsageError
from rlx.hosts.cli import attach
from rlx.hosts.cli.output import say
from rlx.launch import launch
from rlx.runs import project
from rlx.runs.run import Run, find


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run's name")
    parser.add_argument("--fork", action="store_true", help="continue in a new run that names this one as its origin")
    parser.add_argument("-s", "--set", action="append", default=[], metavar="KEY=VALUE", help="with --fork: a key")
    parser.add_argument("--prove", action="store_true", help="train from one checkpoint to the next again and compare")
    parser.add_argument("--detach", action="store_true", help="return at once")


def run(args: argparse.Namespace) -> dict[str, Any]:
    found = find(args.run, root=project.root())
    if args.prove:
        return _prove(found)
    if args.set and not args.fork:
        raise UsageError("-s changes the experiment", hint=f"rlx resume {found.name} --fork -s {args.set[0]}")
    if not args.fork:
        _warn(found)
    started = _fork(found, args.set) if args.fork else launch.resume(found)
    say(f"{started.name}: resuming seeds {', '.join(str(seed.number) for seed in started.seeds)}")
    ended = started if args.detach else attach.attach(started)
    labels = {seed.number: label for seed in ended.seeds if (label := _label(seed.events))}
    return {**attach.outcome(ended), "resumed": labels}


def _warn(found: Run) -> None:
    from rlx.compare.ground import Ground

    changes = Ground(project.root()).changes(found)
    if changes:
        say(f"note: {', '.join(changes)} changed since: the seeds of {found.name} will be no replicates of each other")


def _fork(found: Run, overrides: list[str]) -> Run:
    from rlx.launch.fork import fork

    return fork(found, overrides=overrides)


def _prove(found: Run) -> dict[str, Any]:
    from rlx.launch.prove import prove

    say("training a stretch in one go, and again with a break …")
    proof = prove(found, found.seeds[0])
    return {"run": found.name, "proof": proof, "exit_code": 0 if proof["is_equal"] or proof["label"] != "exact" else 6}


def _label(events: list[dict[str, Any]]) -> str:
    resumed = [event for event in events if event.get("event") == "resumed"]
    if not resumed:
        return ""
    last = resumed[-1]
    missing = f" ({last['missing']})" if last.get("missing") else ""
    return f"{last.get('label')} from step {last['step']:,}{missing}"


def render(data: dict[str, Any]) -> str:
    if "proof" in data:
        return _spell(data["proof"])
    labels = [f"seed {seed}: resumed {label}" for seed, label in data["resumed"].items()]
    return "\n".join([*labels, attach.render(data)])


def _spell(proof: dict[str, Any]) -> str:
    outcome = "every weight and optimizer value is equal" if proof["is_equal"] else f"differs: {proof['difference']}"
    label = proof["label"] + (f" ({proof['missing']})" if proof["missing"] else "")
    return (
        f"seed {proof['seed']}: steps {proof['from']:,} → {proof['to']:,} in one go, and with a break at "
        f"{proof['break']:,}: {outcome}\nlabel: {label}"
    )
