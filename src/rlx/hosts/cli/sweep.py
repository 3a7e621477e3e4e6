"""Search for a better config: wide on one seed, then a race on more seeds, then a confirmation on fresh seeds.

TARGET is a config (with -p parameters), a sweep file, or show | ls | stop | resume. Halving trains many configs briefly
and continues only the better ones from their checkpoints. The best few race on 3, 6 and 10 seeds. The winner is
confirmed against the base config by the verdict of `rlx settle`, and written as a config that extends the base.
Every trial is an ordinary run. Ctrl-C stops cleanly; `rlx sweep resume NAME` continues, also after kill -9.
A parameter is key=low:high, log:low:high, int:1:8 or values with commas; `… if KEY=value` makes it conditional.

Example: rlx sweep configs/cartpole.yaml -p algo.learning_rate=log:1e-5:1e-2 -p algo.gamma=0.98,0.99 --trials 32
         rlx sweep sweeps/lr.yaml --dry-run
         rlx sweep show cartpole_sweep_001 --plot
         rlx sweep resume cartpole_sweep_001
         rlx sweep sweeps/lr.yaml --executor slurm
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import Interrupted, UsageError, did_you_mean
from rlx.hosts.cli.arguments import (
    EXECUTOR_VARIABLE,
    Args,
    Data,
    Parser,
    add_executor,
    add_settings,
    add_trust,
    executor_named,
    obey_trust,
)
from rlx.hosts.cli.format import NOTHING, counted, duration, figure, percent, setting, signed
from rlx.hosts.cli.output import labelled, paint, say, table
from rlx.runs import project

if TYPE_CHECKING:
    from rlx.loop.sweep.run_sweep import SweepProgress
    from rlx.loop.sweep.sweep_file import SweepRequest
    from rlx.loop.sweep.sweep_plan import SweepPlan
    from rlx.search.minority_vote import Vote

VERBS = ("show", "ls", "stop", "resume")
MOST_ROWS = 15


def arguments(parser: Parser) -> None:
    parser.add_argument("target", metavar="TARGET", help=f"a config, a sweep file, or {', '.join(VERBS)}")
    parser.add_argument("name_of", nargs="?", metavar="NAME", help="with show, stop and resume: the sweep")
    help_text = "a parameter: key=log:1e-5:1e-2 or key=a,b,c; may be repeated"
    parser.add_argument("-p", "--param", action="append", default=[], metavar="KEY=RANGE", help=help_text)
    parser.add_argument("--trials", type=int, metavar="N", help="how many configs to try (default: 32)")
    parser.add_argument("--seeds", type=int, metavar="N", help="instead: how many full trainings in all")
    parser.add_argument("--hours", type=float, metavar="H", help="instead: how long")
    parser.add_argument("--sampler", metavar="NAME", help="auto, model, random, sobol, grid, tpe, cmaes")
    parser.add_argument("--name", metavar="NAME", help="the name of the sweep (default: CONFIG_sweep_001)")
    add_settings(parser)
    add_executor(parser)
    add_trust(parser)
    help_text = "the rungs as shares of the training (default: 0.3,0.6,1, fewer with few trials; 1: no halving)"
    parser.add_argument("--halving", metavar="SHARES", help=help_text)
    parser.add_argument("--race", metavar="SIZES", help="seeds per config in the race (default: 3,6,10; 0: no race)")
    parser.add_argument("--confirm", type=int, metavar="N", help="fresh seeds to confirm on (default: 10; 0: none)")
    parser.add_argument("--seed", type=int, metavar="N", help="the seed of the sampler (default: 0)")
    parser.add_argument("--warm", action="store_true", help="reuse earlier runs of the same protocol and code")
    help_text = "train a tenth of the dropped trials to the end, and print what halving lost"
    parser.add_argument("--audit-pruning", action="store_true", help=help_text)
    parser.add_argument("--metric", metavar="TAG[:lower]", help="judge the last logged value of this metric instead")
    help_text = "let a language model propose up to 30 %% of the trials: a URL, ollama:MODEL, or cmd:PROGRAM"
    parser.add_argument("--planner", metavar="ENDPOINT", help=help_text)
    parser.add_argument("--strict", action="store_true", help="with --planner: fail if it gives no usable answer")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and the first trials; train nothing")
    parser.add_argument("--plot", action="store_true", help="with show: write parallel coordinates and importance")


def run(args: Args) -> Data:
    obey_trust(args)
    if args.target not in VERBS:
        if args.name_of:
            verb = did_you_mean(args.target, list(VERBS))
            if verb:
                raise UsageError(f"unknown verb `{args.target}`", hint=f"rlx sweep {verb} {args.name_of}")
            raise UsageError(f"`{args.name_of}` is one word too many", hint="rlx sweep CONFIG -p KEY=RANGE")
        return _start(args)
    root = project.root()
    if args.target == "ls":
        from rlx.loop.sweep.sweep_log import all_sweeps
        from rlx.loop.sweep.sweep_report import summary

        return {"verb": "ls", "sweeps": [summary(log) for log in all_sweeps(root)]}
    if not args.name_of:
        raise UsageError(f"rlx sweep {args.target}: which sweep?", hint="rlx sweep ls")
    if args.target == "stop":
        from rlx.loop.sweep.run_sweep import stop

        return {"verb": "stop", "sweep": args.name_of, "stopped": stop(args.name_of, root=root)}
    if args.target == "resume":
        return _finish(args.name_of, root)
    return _show(args.name_of, root, with_plots=args.plot)


def _start(args: Args) -> Data:
    from rlx.loop.sweep import run_sweep
    from rlx.loop.sweep.check_plan import check_plan, left_out
    from rlx.loop.sweep.sweep_file import plan_for

    root = project.root_of(Path(args.target))
    request = _request(args)
    for note in request.notes:
        say(f"note: {note}")
    plan = plan_for(request, root=root)
    if args.dry_run:
        check_plan(plan, root=root)
        return {"verb": "dry-run", "note": left_out(plan) or None, **_preview(plan)}
    return _follow(plan.name, root, lambda report, say_line, vote: run_sweep.start(
        plan, root=root, report=report, say=say_line, vote=vote), plan.planner)  # fmt: skip


def _request(args: Args) -> SweepRequest:
    """Return what the command line asks for; its options stand above those of a sweep file."""
    from dataclasses import replace

    from rlx.compare.question import ComparisonQuestion
    from rlx.loop.sweep.sweep_file import SweepRequest, is_sweep_file, read_file, read_parameters
    from rlx.loop.sweep.sweep_plan import SweepBudget

    path = Path(args.target)
    if is_sweep_file(path):
        if args.param:
            raise UsageError("a sweep file has its own space", hint=f"add the parameters to {path}")
        request = read_file(path)
    else:
        if not args.param:
            hint = f"rlx sweep {args.target} -p algo.learning_rate=log:1e-5:1e-2"
            raise UsageError(f"{args.target} is a config, and no parameter is given", hint=hint)
        request = SweepRequest(args.target, read_parameters(args.param))
    budget = SweepBudget(args.trials, args.seeds, args.hours)
    if budget != SweepBudget():
        request = replace(request, budget=budget)
    if args.metric:
        metric = str(args.metric)
        question = ComparisonQuestion(metric.removesuffix(":lower"), metric.endswith(":lower"))
        request = replace(request, question=question)
    return replace(
        request,
        name=args.name or request.name,
        settings=args.set,
        options={**request.options, **_options(args)},
    )


def _options(args: Args) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name in ("sampler", "confirm", "seed", "planner"):
        if getattr(args, name) is not None:
            options[name] = getattr(args, name)
    for name in ("warm", "audit_pruning"):
        if getattr(args, name):
            options[name] = True
    if args.strict and args.planner:
        options["planner"] = f"strict:{args.planner}"
    if args.halving is not None:
        options["halving"] = _shares(args.halving)
    if args.race is not None:
        options["race"] = _race(args.race)
    return options


def _shares(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--halving {text}: expected shares of the training", hint="--halving 0.3,0.6,1") from None


def _race(text: str) -> Any:
    parts = [part.strip() for part in text.split(",")]
    if parts == ["0"]:
        return False
    if not all(part.isdigit() for part in parts):
        raise UsageError(f"--race {text}: expected numbers of seeds", hint="--race 3,6,10")
    return [int(part) for part in parts]


def _preview(plan: SweepPlan) -> Data:
    from rlx.loop.sweep.run_sweep import described, first_trials, planned_cost

    return {
        "sweep": plan.name,
        "plan": {key: value for key, value in plan.document().items() if key not in ("data", "name")},
        "described": described(plan),
        "full_trainings": round(planned_cost(plan), 1),
        "planned": plan.planned_trials,
        "first": first_trials(plan),
    }


def _finish(name: str, root: Path) -> Data:
    from rlx.loop.sweep import run_sweep, sweep_log

    state = sweep_log.find(name, root=root).state()
    executor = None
    if not os.environ.get(EXECUTOR_VARIABLE):  # neither --executor nor the shell names one
        executor = state.executor
    with executor_named(executor):
        return _follow(name, root, lambda report, _say, vote: run_sweep.resume(
            name, root=root, report=report, vote=vote), state.plan.planner)  # fmt: skip


def _follow(name: str, root: Path, action: Any, planner: str) -> Data:
    """Run a sweep with its display; Ctrl-C leaves a sweep that can be resumed."""
    from rlx.hosts.cli import attach

    attach.hear_signals()
    display = SweepDisplay()
    try:
        action(display, display.say, _vote(planner, root, name))
    except KeyboardInterrupt:
        command = f"rlx sweep resume {name}"
        raise Interrupted("stopped; every run saved `latest`", hint=f"continue with: {command}") from None
    return _show(name, root, with_plots=False)


def _vote(planner: str, root: Path, name: str) -> Vote | None:
    if not planner:
        return None
    from rlx.loop.advisor.llm_vote import sweep_vote

    return sweep_vote(planner, root=root, sweep=name)


def _show(name: str, root: Path, *, with_plots: bool) -> Data:
    from rlx.loop.sweep.sweep_log import find
    from rlx.loop.sweep.sweep_report import describe, result_line

    log = find(name, root=root)
    data = {"verb": "show", **describe(log, root=root)}
    data["result"] = result_line(data["confirmation"])
    data["pictures"] = []
    if with_plots:
        from rlx.hosts.plots import sweep_pictures
        from rlx.loop.sweep.sweep_report import axis_labels, coordinates

        space = log.state().plan.space
        lines = [
            {"score": row["score"], "state": row["state"], "places": coordinates(space, row["values"])}
            for row in data["trials"]
        ]
        sweep_pictures.parallel(lines, space.keys, axis_labels(space), out=log.folder / "parallel.png")
        sweep_pictures.bars(data["importance"], out=log.folder / "importance.png")
        data["pictures"] = [os.path.relpath(log.folder / name) for name in ("parallel.png", "importance.png")]
    return data


class SweepDisplay:
    """Show the stage of a sweep, how far it is, its best score and the time left."""

    def __init__(self) -> None:
        from rlx.hosts.cli.progress import Display

        self._display = Display()

    def __call__(self, progress: SweepProgress) -> None:
        from rlx.hosts.cli.progress import Line

        parts = [progress.stage, f"{progress.trials}/{progress.planned} trials", f"{progress.share:.0%}"]
        if progress.doing:
            parts = [progress.stage, progress.doing, f"{progress.share:.0%}"]
        if progress.best:
            parts.append(f"best {progress.best}")
        if progress.eta_seconds is not None:
            parts.append(f"ETA {duration(progress.eta_seconds)}")
        self._display.draw([Line("sweep", " · ".join(parts), news=f"{progress.stage}{progress.doing}")])

    def say(self, text: str) -> None:
        """Print a message above the display."""
        self._display.clear()
        say(text)


def render(data: Data) -> str:
    if data["verb"] == "ls":
        return _render_list(data["sweeps"])
    if data["verb"] == "stop":
        ended = "stopped" if data["stopped"] else "was not running"
        return f"{data['sweep']} {ended}\nnext: rlx sweep {'resume' if data['stopped'] else 'show'} {data['sweep']}"
    if data["verb"] == "dry-run":
        return _render_preview(data)
    return _render_sweep(data)


def _render_list(sweeps: list[Data]) -> str:
    if not sweeps:
        return "no sweep yet\nnext: rlx sweep configs/NAME.yaml -p algo.learning_rate=log:1e-5:1e-2"
    rows = []
    for row in sweeps:
        best = NOTHING if row["best"] is None else figure(row["best"])
        trials = f"{row['trials']}/{row['planned']}"
        rows.append([row["sweep"], row["state"], trials, best, row["result"] or NOTHING])
    return table(["sweep", "state", "trials", "best", "result"], rows)


def _render_preview(data: Data) -> str:
    rows = [[str(number), _values(values)] for number, values in enumerate(data["first"])]
    blocks = [f"{data['sweep']}: {data['described']}", table(["trial", "values"], rows)]
    if data["note"]:
        blocks.append(f"note: {data['note']}")
    later = data["planned"] - len(rows)
    if later > 0:
        blocks.append(f"the other {counted(later, 'trial')} depend on the scores of these")
    return "\n\n".join(blocks)


def _render_sweep(data: Data) -> str:
    blocks = [_head(data), _trials(data)]
    if data["importance"]:
        ordered = sorted(data["importance"].items(), key=lambda pair: -pair[1])
        rows = [[key, percent(share)] for key, share in ordered]
        blocks.append(table(["importance (share of the ranks that it explains alone)", ""], rows))
    blocks.append(_foot(data))
    return "\n\n".join(block for block in blocks if block)


def _head(data: Data) -> str:
    winner = data["winner"]
    confirmation = data["confirmation"]
    values = {"sweep": data["sweep"], "state": data["state"]}
    if data["result"]:
        colour = "green" if confirmation["is_confirmed"] else "yellow"
        values["result"] = paint(data["result"], colour)
    if winner:
        seeds = counted(winner["seeds"], "seed")
        values["winner"] = f"trial {winner['trial']}: {_values(data['winner_values'])}"
        values["claimed"] = f"{figure(winner['score'])} on {seeds} of the search"
    if confirmation.get("optimism") is not None:
        fresh = figure(confirmation["score"])
        values["optimism"] = f"{signed(confirmation['optimism'])} (claimed minus {fresh} on fresh seeds)"
    audit = winner.get("audit") if winner else None
    if audit:
        values["pruning"] = (
            f"{counted(len(audit['trials']), 'dropped trial')} finished, regret {figure(audit['regret'])}"
        )
    return labelled(values)


def _trials(data: Data) -> str:
    front = set(data["pareto"])
    rows = []
    for row in data["trials"][:MOST_ROWS]:
        score = NOTHING if row["score"] is None else figure(row["score"])
        mark = "*" if row["trial"] in front else ""
        cost = NOTHING if row["cpu_seconds"] is None else duration(row["cpu_seconds"])
        seeds = str(row["seeds"] or NOTHING)
        rows.append([str(row["trial"]), row["state"], score, seeds, percent(row["share"]), cost + mark,
                     row["run"] or NOTHING, row["reason"] or _values(row["values"])])  # fmt: skip
    if not rows:
        return ""
    text = table(["trial", "state", "score", "seeds", "trained", "CPU", "run", "values"], rows)
    more = len(data["trials"]) - MOST_ROWS
    if more > 0:
        text += f"\n… {more} more: rlx sweep show {data['sweep']} --json"
    if front:
        text += "\n* no other trial has a higher score for less CPU time"
    return text


def _foot(data: Data) -> str:
    name = data["sweep"]
    following = f"rlx sweep resume {name}"
    if data["state"] == "running":
        following = f"rlx sweep stop {name}"
    elif data["confirmation"].get("is_confirmed"):
        following = f"rlx train {data['best_config']} --seeds 5"
    elif data["best_config"] and data["confirmation"] and not data["pictures"]:
        following = f"rlx sweep show {name} --plot"
    elif data["state"] == "completed":
        following = "rlx sweep ls"
    runs = data["confirmation"].get("runs")
    check = None
    if runs:
        check = f"rlx compare {' '.join(runs)}"
    return labelled({
        "cost": f"{figure(data['cost'])} full trainings in the search, {duration(data['seconds'])}",
        "failed": counted(data["failed"], "trial") if data["failed"] else None,
        "planner": _votes(data["votes"]),
        "pictures": data["pictures"],
        "config": data["best_config"],
        "check": check,
        "next": following,
    })  # fmt: skip


def _votes(votes: list[Data]) -> str | None:
    if not votes:
        return None
    accepted = sum(vote.get("accepted", 0) for vote in votes)
    rejected = sum(len(vote.get("rejected", ())) for vote in votes)
    return f"{accepted} proposals accepted, {rejected} rejected"


def _values(values: Data) -> str:
    return ", ".join(f"{key}={setting(value)}" for key, value in values.items())
