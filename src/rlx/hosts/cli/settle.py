"""Train and look until it is decided whether B is better than A, or not worth going on.

A and B are runs, which get further seeds, or configs (a file, catalog:NAME). A config goes on with the first run of
the project that has the same config, code and versions; else a new run is made. Looks are taken by the declared plan
(3 and 6 candidate seeds against ten: futile or not; 10, 16 and 24 a side: decided or not), so nothing is trained that
leads to no look. Ctrl-C and the deadline stop both runs cleanly; the same command goes on where it stopped.
Exit code 6 where the two cannot be compared, 5 where seeds cannot be trained.

Example: rlx settle configs/base.yaml configs/wide.yaml
         rlx settle base_001 wide_001 --max-seeds 16 --deadline 2h
"""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from rlx.errors import Interrupted, UsageError
from rlx.hosts.cli.output import paint, say
from rlx.hosts.cli.words import duration, timespan
from rlx.runs import project

_COLOURS = {"better": "green", "worse": "red", "inconclusive": "yellow", "invalid": "red"}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("baseline", metavar="A", help="the baseline: a run, a YAML config or catalog:NAME")
    parser.add_argument("candidate", metavar="B", help="what is judged against it: the same")
    parser.add_argument("--max-seeds", type=int, default=24, metavar="N", help="seeds a side, at most (24)")
    parser.add_argument("--deadline", metavar="TIME", help="stop after this long: 90m, 2h, 1h30m")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.hosts.cli import attach
    from rlx.hosts.cli.ticker import Ticker
    from rlx.loop.settle import Limits, settle
    from rlx.loop.step import cap

    most = cap(args.max_seeds)
    if not most:
        raise UsageError(f"--max-seeds {args.max_seeds}: no decision is possible on so few", hint="--max-seeds 10")
    if most != args.max_seeds:
        say(f"note: nothing is decided between the looks of the plan: at most {most} seeds a side")
    limits = Limits(most, timespan(args.deadline) if args.deadline else float("inf"))
    attach.hear_signals()
    ticker = Ticker()
    try:
        ended = settle(args.baseline, args.candidate, root=project.root(), limits=limits, report=ticker, say=say)
    except KeyboardInterrupt:
        again = _again(args.baseline, args.candidate, most=most, deadline=args.deadline)
        raise Interrupted("stopped; every seed saved `latest`", hint=f"it goes on where it was: {again}") from None
    finally:
        ticker.close()
    return {**ended.document(), "deadline": args.deadline, "exit_code": ended.exit_code}


def _again(base: str, new: str, *, most: int, deadline: str | None) -> str:
    """Return the command that goes on, within the same limits."""
    limits = [*(["--max-seeds", str(most)] if most < 24 else []), *(["--deadline", deadline] if deadline else [])]
    return shlex.join(["rlx", "settle", base, new, *limits])


def render(data: dict[str, Any]) -> str:
    lines = [paint(f"verdict: {data['line']}", _COLOURS[data["verdict"]]), f"stopped: {_stopped(data)}"]
    lines += [f"note: {note}" for note in data["notes"]]
    trained, counted = data["trained"], data["seeds"]
    for role, name in (("baseline", data["baseline"]), ("candidate", data["run"])):
        lines.append(f"seeds: {name} {counted[role]} ({trained[role]} trained now)")
    lines.append(
        f"cost: {duration(data['cpu_seconds'])} CPU for all of them, {duration(data['wall_seconds'])} wall now"
    )
    return "\n".join([*lines, f"next: {_next(data)}"])


def _stopped(data: dict[str, Any]) -> str:
    stuck = ", ".join(f"seed {seed}" for seeds in data["stuck"].values() for seed in seeds)
    told = {
        "decided": data["reason"],
        "futile": data["settle"],
        "spent": f"{data['max_seeds']} seeds a side and undecided: {data['reason']}",
        "deadline": "the time is up; nothing is lost",
        "invalid": "the two cannot be compared",
        "stuck": f"{stuck} ends again and again before it is trained",
        "crashing": f"{data['baseline']} crashes on too many seeds to be a baseline",
    }
    return str(told[data["stopped"]])


def _next(data: dict[str, Any]) -> str:
    base, new, why = data["baseline"], data["run"], data["stopped"]
    if why == "deadline":
        return _again(base, new, most=data["max_seeds"], deadline=data["deadline"])
    if why == "spent" and data["max_seeds"] < 24:
        return f"{_again(base, new, most=24, deadline=data['deadline'])} --max-seeds 24"
    if why in ("stuck", "crashing"):
        return f"rlx info {new if data['stuck']['candidate'] else base} --traceback"
    commands: list[str] = data["commands"] if why == "invalid" else []
    return commands[0] if commands else f"rlx compare {base} {new}"
