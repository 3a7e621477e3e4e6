"""Plan one bounded improvement round for a run: its findings propose variants; train, race and confirm them.

Every variant names the finding behind it, the reason and the rule of `rlx diagnose`. Without --execute, rlx prints the
plan and its cost. With it, the variants and the present config are trained as a sweep, the best race on more seeds, and
the winner is confirmed on fresh seeds. --planner llm asks a language model for at most 30 % of the variants.

Example: rlx advisor cartpole_ppo_001
         rlx advisor cartpole_ppo_001 --budget 40seeds --execute
         rlx advisor cartpole_ppo_001 --planner llm --llm ollama:qwen3
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rlx.errors import Interrupted, UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, add_executor, add_trust, find_run, obey_trust
from rlx.hosts.cli.format import NOTHING, figure, setting
from rlx.hosts.cli.output import labelled, table
from rlx.runs import project

if TYPE_CHECKING:
    from rlx.loop.advisor.advise import RoundPlan

BUDGET = "40seeds"


def arguments(parser: Parser) -> None:
    parser.add_argument("words", nargs="+", metavar="RUN", help="the name of a run; `run RUN` is the same")
    help_text = "seeds in all with the confirmation (40seeds), or time (2h); default: %(default)s"
    parser.add_argument("--budget", default=BUDGET, metavar="N", help=help_text)
    add_planner(parser)
    parser.add_argument("--variants", type=int, metavar="N", help="at most N variants")
    parser.add_argument("--execute", action="store_true", help="train, race and confirm the plan")
    add_executor(parser)
    add_trust(parser)


def add_planner(parser: Parser) -> None:
    """Add the options that choose where proposals come from."""
    help_text = "where variants come from: rules, llm or sampler (default: %(default)s)"
    parser.add_argument("--planner", default="rules", metavar="NAME", help=help_text)
    help_text = "with --planner llm: a URL, openai:MODEL, anthropic:MODEL, ollama:MODEL or cmd:PROGRAM"
    parser.add_argument("--llm", default="", metavar="ENDPOINT", help=help_text)
    parser.add_argument("--strict", action="store_true", help="fail if the language model gives no usable answer")


def run_name(words: list[str]) -> str:
    """Return the run of `RUN` or `run RUN`."""
    if len(words) > 1 and words[0] == "run":
        words = words[1:]
    if len(words) != 1:
        raise UsageError(f"one run, not `{' '.join(words)}`", hint="rlx advisor RUN")
    return words[0]


def run(args: Args) -> Data:
    from rlx.loop.advisor.advise import AdvisorRequest, advise

    obey_trust(args)
    if args.variants is not None and args.variants < 1:
        raise UsageError(f"--variants {args.variants}: at least 1", hint="--variants 4")
    root = project.root()
    name = run_name(args.words)
    request = AdvisorRequest(args.budget, args.planner, args.llm, args.strict, args.variants)
    advice = advise(find_run(name), request, root=root)
    data = {**advice.document(), "budget": args.budget, "planner": args.planner, "result": None}
    words = ["rlx", "advisor", name, "--budget", args.budget]
    if args.planner != "rules":
        words += ["--planner", args.planner]
    if args.llm:
        words += ["--llm", args.llm]
    data["next"] = shlex.join([*words, "--execute"])
    if advice.sweep is None:
        data["next"] = f"rlx diagnose {name}"
        return data
    if args.execute:
        data["result"] = _execute(advice, root)
        data["next"] = _next(data["result"])
    return data


def _execute(advice: RoundPlan, root: Path) -> Data:
    from rlx.hosts.cli import attach
    from rlx.hosts.cli.sweep import SweepDisplay
    from rlx.loop.advisor.execute_advice import execute

    attach.hear_signals()
    display = SweepDisplay()
    try:
        return execute(advice, root=root, report=display, say=display.say)
    except KeyboardInterrupt:
        assert advice.sweep is not None
        hint = f"continue with: rlx sweep resume {advice.sweep.name}"
        raise Interrupted("stopped; every run saved `latest`", hint=hint) from None


def _next(result: Data) -> str:
    if result["is_confirmed"]:
        return f"rlx train {result['best_config']} --seeds 5"
    return f"rlx sweep show {result['sweep']}"


def render(data: Data) -> str:
    blocks = [labelled({"run": data["run"], "health": data["health"], "planner": data["planner"]})]
    for number, variant in enumerate(data["variants"], start=1):
        changes = ", ".join(f"{key}={setting(value)}" for key, value in variant["changes"].items())
        text = labelled({"signal": variant["signal"], "based on": variant["reason"], "expected": variant["expected"]})
        indented = "\n".join(f"   {line}" for line in text.splitlines())
        blocks.append(f"{number}. {changes}  [{variant['rule']}]\n{indented}")
    if not data["variants"]:
        blocks.append("nothing to try: no finding proposes a change that can be tried at the same budget")
    left_out = [f"{_changes(row)} [{row['rule']}]: {row['reason']}" for row in data["left_out"]]
    audit = [f"{row['accepted']} accepted, {len(row['rejected'])} rejected in {row['rounds']} rounds"
             + (f"; {row['failure']}" if row["failure"] else "") for row in data["audit"]]  # fmt: skip
    blocks.append(labelled({"left out": left_out, "language model": audit}))
    if data["result"]:
        blocks.append(_render_result(data["result"]))
    elif data["full_trainings"] is not None:
        blocks.append(
            labelled({"cost": f"at most {figure(data['full_trainings'])} full trainings; nothing is trained yet"})
        )
    blocks.append(f"next: {data['next']}")
    return "\n\n".join(block for block in blocks if block)


def _changes(row: Data) -> str:
    return ", ".join(f"{key}={setting(value)}" for key, value in row["changes"].items())


def _render_result(result: Data) -> str:
    rows = []
    for row in result["tried"]:
        score = NOTHING if row["score"] is None else figure(row["score"])
        rows.append([row["what"], score, str(row["seeds"]), row["helped"], row["run"] or NOTHING])
    head = labelled({"result": result["line"], "sweep": result["sweep"], "config": result["best_config"]})
    return f"{head}\n\n{table(['tried', 'score', 'seeds', 'against the present config', 'run'], rows)}"
