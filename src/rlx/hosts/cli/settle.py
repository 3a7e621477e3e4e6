"""Train and compare until it is decided whether B is better than A, or until more training is not worth it.

A and B are runs, which get more seeds, or configs (a file or catalog:NAME). A config continues the first run of the
project with the same config, code and versions; if there is none, rlx creates a run. rlx looks only at the planned
sizes: at 3 and 6 candidate seeds against ten (futile or not), and at 10, 16 and 24 per side (decided or not). Ctrl-C
and the deadline stop both runs cleanly, and the same command continues. The exit code is 6 if the two cannot be
compared, and 5 if seeds cannot be trained.
--metric judges a metric that training logs, for example of your own command; the verdict then says `reported`.
--budget-question allows different budgets, and the verdict names them.
-s changes a key of B's config. So one config is enough to settle a setting.

Example: rlx settle configs/base.yaml configs/wide.yaml
         rlx settle configs/base.yaml configs/base.yaml -s algo.learning_rate=1e-3
         rlx settle configs/trot.yaml configs/trot_wide.yaml --metric success
         rlx settle configs/short.yaml configs/long.yaml --budget-question
         rlx settle base_001 wide_001 --max-seeds 16 --deadline 2h
"""

import shlex

from rlx.errors import Interrupted, UsageError
from rlx.hosts.cli.arguments import (
    Args,
    Data,
    Parser,
    add_executor,
    add_question,
    add_settings,
    add_trust,
    obey_trust,
    read_question,
)
from rlx.hosts.cli.format import duration, timespan
from rlx.hosts.cli.output import VERDICT_COLOURS, labelled, paint, say
from rlx.runs import project

MOST_SEEDS = 24


def arguments(parser: Parser) -> None:
    parser.add_argument("baseline", metavar="A", help="the baseline: a run, a YAML config or catalog:NAME")
    parser.add_argument("candidate", metavar="B", help="the candidate: the same")
    help_text = f"at most N seeds per side (default: {MOST_SEEDS})"
    parser.add_argument("--max-seeds", type=int, default=MOST_SEEDS, metavar="N", help=help_text)
    parser.add_argument("--deadline", metavar="TIME", help="stop after this long: 90m, 2h, 1h30m")
    add_question(parser)
    add_settings(parser, of="B's config")
    add_executor(parser)
    add_trust(parser)


def run(args: Args) -> Data:
    from rlx.hosts.cli import attach
    from rlx.hosts.cli.progress import SettleDisplay
    from rlx.loop.settle.plan import cap
    from rlx.loop.settle.settle import Limits, settle

    obey_trust(args)
    most = cap(args.max_seeds)
    if not most:
        raise UsageError(f"--max-seeds {args.max_seeds}: too few for a decision", hint="--max-seeds 10")
    if most != args.max_seeds:
        say(f"note: the plan has no look between its sizes: at most {most} seeds per side")
    question = read_question(args)
    limits = Limits(most, timespan(args.deadline) if args.deadline else float("inf"), question, tuple(args.set))
    attach.hear_signals()
    progress = SettleDisplay()
    try:
        ended = settle(
            args.baseline, args.candidate, root=project.root(), limits=limits, report=progress, say=progress.say
        )
    except KeyboardInterrupt:
        command = _continue(args.baseline, args.candidate, most=most, deadline=args.deadline) + question.options
        command += "".join(f" -s {shlex.quote(setting)}" for setting in args.set)
        raise Interrupted("stopped; every seed saved `latest`", hint=f"continue with: {command}") from None
    document = ended.document()
    return {**document, "deadline": args.deadline, "options": question.options, "exit_code": ended.exit_code}


def _continue(baseline: str, candidate: str, *, most: int, deadline: str | None) -> str:
    """Return the command that continues within the same limits."""
    words = ["rlx", "settle", baseline, candidate]
    if most < MOST_SEEDS:
        words += ["--max-seeds", str(most)]
    if deadline:
        words += ["--deadline", deadline]
    return shlex.join(words)


def render(data: Data) -> str:
    verdict = paint(f"verdict: {data['line']}", VERDICT_COLOURS[data["verdict"]])
    names = {"baseline": data["baseline"], "candidate": data["run"]}
    fields = labelled({
        "stopped": _why_stopped(data),
        "note": data["notes"],
        "seeds": [f"{names[role]} {data['seeds'][role]} ({data['trained'][role]} trained now)" for role in names],
        "cost": f"{duration(data['cpu_seconds'])} CPU for all of them, {duration(data['wall_seconds'])} wall now",
        "next": _next(data),
    })  # fmt: skip
    return f"{verdict}\n{fields}"


def _why_stopped(data: Data) -> str:
    stuck = ", ".join(f"seed {seed}" for seeds in data["stuck"].values() for seed in seeds)
    reasons = {
        "decided": data["reason"],
        "futile": data["settle"],
        "spent": f"{data['max_seeds']} seeds per side and undecided: {data['reason']}",
        "deadline": "the time is up; nothing is lost",
        "invalid": "the two cannot be compared",
        "stuck": f"{stuck} ended again and again before its training was complete",
        "crashing": f"{data['baseline']} crashes on too many seeds to be a baseline",
    }
    return str(reasons[data["stopped"]])


def _next(data: Data) -> str:
    baseline = data["baseline"]
    candidate = data["run"]
    stopped = data["stopped"]
    if stopped == "deadline":
        command = _continue(baseline, candidate, most=data["max_seeds"], deadline=data["deadline"])
        return f"{command}{data.get('options', '')}"
    if stopped == "spent" and data["max_seeds"] < MOST_SEEDS:
        command = _continue(baseline, candidate, most=MOST_SEEDS, deadline=data["deadline"])
        return f"{command} --max-seeds {MOST_SEEDS}{data.get('options', '')}"
    if stopped in ("stuck", "crashing"):
        return f"rlx info {candidate if data['stuck']['candidate'] else baseline} --traceback"
    if stopped == "invalid" and data["commands"]:
        return str(data["commands"][0])
    return f"rlx compare {baseline} {candidate}{data.get('options', '')}"
