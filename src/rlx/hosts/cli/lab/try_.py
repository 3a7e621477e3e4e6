"""Try what candidate/env.py and candidate/train.py change against the head, at the current rung.

rlx trains and measures; the study's race decides. The attempt is one row, also if it is refused (exit code 4). If the
time is up, rlx ends with exit code 1 and the training goes on: `rlx lab try CANDIDATE` continues. In the lab's own
folder, the two files are set back to the head's after their change is recorded. --tree names another folder that holds
the changed files.

Example: rlx lab try --description "a larger learning rate" --predicts 20
         rlx lab try c003 --seconds 60
"""

from __future__ import annotations

from pathlib import Path

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, add_executor
from rlx.hosts.cli.format import counted, figure, signed
from rlx.hosts.cli.output import labelled, say
from rlx.hosts.cli.progress import follow


def arguments(parser: Parser) -> None:
    parser.add_argument("candidate", nargs="?", metavar="CANDIDATE", help="go on with a candidate of this rung")
    parser.add_argument("--description", metavar="TEXT", default="", help="the claim: what changes, and why it helps")
    parser.add_argument("--predicts", type=float, metavar="GAIN", help="the expected change of the score")
    parser.add_argument("--again", metavar="WHY", default="", help="try a settled idea again, for this reason")
    parser.add_argument("--tree", type=Path, metavar="DIR", help="the folder with the changed files (default: the lab)")
    parser.add_argument("--seconds", type=float, default=600.0, metavar="N", help="wait at most so long (%(default)s)")
    add_executor(parser)


def run(args: Args) -> Data:
    from rlx.launch import launch
    from rlx.loop.lab.attempt_figures import attempt_figures
    from rlx.loop.lab.lab_folder import Lab
    from rlx.loop.lab.try_attempt import LabIdea, continue_attempt, try_attempt

    lab = Lab.open()
    wait = launch.wait if args.json else follow
    if not args.seconds >= 0:
        raise UsageError(f"--seconds {args.seconds}: not a time", hint="--seconds 600")
    if args.candidate:
        attempt = continue_attempt(lab, args.candidate, say=say, seconds=args.seconds, follow=wait)
    else:
        if not args.description.strip():
            raise UsageError("an attempt needs its claim", hint='rlx lab try --description "what changes, and why"')
        idea = LabIdea(args.description, args.predicts, args.again)
        attempt = try_attempt(lab, args.tree or lab.root, idea, say=say, seconds=args.seconds, follow=wait)
    return {
        "lab": lab.name,
        **attempt.document(),
        "prediction": lab.study.candidate(attempt.candidate).predicts,
        "figures": attempt_figures(lab, attempt),
        "exit_code": int(attempt.status == "open"),
    }


def render(data: Data) -> str:
    figures = data["figures"]
    score = ""
    if data["score"] is not None:
        score = f"{figure(data['score'])}{_interval(figures)}"
    return labelled({
        "attempt": f"{data['row']} at rung {data['rung']}",
        "claim": data["description"],
        "score": score,
        "effect": effect_words(data),
        **_figure_lines(figures),
        "status": data["status"],
        "ideas": f"{len(data.get('parts', ()))} in one diff: combined" if data["combined"] else "",
        "next": f"rlx lab {'try' if data['status'] == 'open' else 'show'} {data['candidate']}",
    })  # fmt: skip


def effect_words(data: Data) -> str:
    """Return the effect of an attempt with its interval, what it was compared with, and what was predicted."""
    if data["effect"] is None:
        return ""
    text = signed(data["effect"])
    if data["interval"] is not None:
        low, high = data["interval"]
        text += f" [{signed(low)}, {signed(high)}]"
    text += f" against {data['against']}"
    if data.get("prediction") is not None:
        text += f"; predicted {signed(data['prediction'])}"
    return text


def _interval(figures: Data) -> str:
    if not figures or not figures["interval"]:
        return ""
    low, high = figures["interval"]
    return f" [{figure(low)}, {figure(high)}] over {figures['seeds']} seeds"


def _figure_lines(figures: Data) -> dict[str, str]:
    """Return the comparable figures, one per line."""
    if not figures:
        return {}
    named = {"solve rate": "solve_rate", "learning gain": "learning_gain", "stability": "stability",
             "steps per second": "steps_per_second"}  # fmt: skip
    lines = {label: figure(figures[key]) for label, key in named.items() if figures[key] is not None}
    complexity = figures["complexity"]
    lines["complexity"] = (
        f"{counted(complexity['diff_lines'] or 0, 'line')} changed, {_whole(complexity['parameters'])} weights"
    )
    proof = figures["proof"]
    moved = "the weights moved" if proof["weights_moved"] else "the weights did not move"
    trained = f"rlx counted {proof['steps']:,} steps ({proof['planned']:,} planned), {moved}"
    lines["proof of training"] = "; ".join([trained, *proof["problems"]])
    lines["level"] = str(figures["level"])
    return lines


def _whole(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"
