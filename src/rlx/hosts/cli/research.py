"""Improve a run over several rounds: race variants of its config, build on the head, and claim once at the end.

Each round proposes up to four variants of the head: from the findings of `rlx diagnose`, from an optimiser that knows
all scores so far, and with --planner llm from a language model. Environment, evaluation and training steps are locked.
The race and the claim are those of a study; all seeds of the claim are counted in the budget. `resume` continues.

Example: rlx research cartpole_ppo_001 --rounds 3 --budget 80
         rlx research show research_cartpole_ppo_001_001
         rlx research resume research_cartpole_ppo_001_001
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import Interrupted, UsageError
from rlx.hosts.cli.advisor import add_planner
from rlx.hosts.cli.arguments import Args, Data, Parser, add_executor, add_trust, find_run, obey_trust
from rlx.hosts.cli.format import NOTHING, figure, setting
from rlx.hosts.cli.output import labelled, paint, table
from rlx.runs import project

if TYPE_CHECKING:
    from rlx.loop.research.run_research import ResearchProgress

VERBS = ("resume", "show", "ls")
BUDGET = "80seeds"


def arguments(parser: Parser) -> None:
    parser.add_argument("words", nargs="+", metavar="RUN", help=f"the name of a run; or {', '.join(VERBS)} and a name")
    parser.add_argument("--rounds", type=int, default=3, metavar="R", help="at most R rounds (default: %(default)s)")
    help_text = "seeds in all, with the claim (default: %(default)s)"
    parser.add_argument("--budget", default=BUDGET, metavar="N", help=help_text)
    add_planner(parser)
    parser.add_argument("--name", metavar="NAME", help="the name of the campaign")
    add_executor(parser)
    add_trust(parser)
    parser.add_argument("--resume", metavar="NAME", help="the same as `rlx research resume NAME`")


def run(args: Args) -> Data:
    from rlx.loop.research.run_research import names

    obey_trust(args)
    root = project.root()
    words = list(args.words)
    if args.resume:
        words = ["resume", args.resume]
    if words == ["ls"]:
        return {"verb": "ls", "campaigns": [_describe(name, root) for name in names(root)]}
    if len(words) == 2 and words[0] in VERBS:
        if words[0] == "resume":
            _follow(words[1], None, args, root)
        return _report(words[1], root)
    if len(words) != 1:
        raise UsageError(f"one run, not `{' '.join(words)}`", hint="rlx research RUN --rounds 3 --budget 80")
    return _report(_follow(words[0], _request(args), args, root), root)


def _request(args: Args) -> Any:
    from rlx.loop.advisor.advise import PLANNERS, read_budget
    from rlx.loop.research.run_research import ResearchRequest

    if args.planner not in PLANNERS:
        raise UsageError(f"unknown planner `{args.planner}`", hint=f"--planner {'|'.join(PLANNERS)}")
    budget = read_budget(str(args.budget))
    if budget.seeds is None:
        raise UsageError(f"--budget {args.budget}: a campaign counts seeds", hint="--budget 80")
    return ResearchRequest(args.rounds, budget.seeds, args.planner, args.llm, args.strict)


def _follow(name: str, request: Any, args: Args, root: Path) -> str:
    """Start a campaign on a run, or resume one, and show its progress; return its name."""
    from rlx.hosts.cli import attach
    from rlx.loop.research import run_research

    attach.hear_signals()
    display = ResearchDisplay()
    try:
        if request is None:
            return run_research.resume(name, root=root, report=display).name
        run = find_run(name)
        return run_research.start(run, request, root=root, report=display, name=args.name).name
    except KeyboardInterrupt:
        known = run_research.names(root)
        newest = max(known, key=lambda each: (root / run_research.FOLDER / each).stat().st_mtime, default=name)
        hint = f"continue with: rlx research resume {newest}"
        raise Interrupted("stopped; every run saved `latest`", hint=hint) from None


class ResearchDisplay:
    """Show the round of a campaign, the seeds spent, the head and the present trainings."""

    def __init__(self) -> None:
        from rlx.hosts.cli.progress import Display

        self._display = Display()

    def __call__(self, progress: ResearchProgress) -> None:
        from rlx.hosts.cli.progress import Line

        parts = [
            f"round {progress.round}/{progress.rounds}",
            f"{progress.spent} of {progress.budget} seeds",
            f"head: {progress.head}",
            progress.doing,
        ]
        if progress.eta_seconds is not None:
            from rlx.hosts.cli.format import duration

            parts.append(f"ETA at most {duration(progress.eta_seconds)}")
        text = " · ".join(part for part in parts if part)
        self._display.draw([Line("research", text, news=f"{progress.round}{progress.head}")])


def _describe(name: str, root: Path) -> Data:
    from rlx.loop.research.research_report import describe_research
    from rlx.loop.research.run_research import find

    return describe_research(find(name, root=root), root=root)


def _report(name: str, root: Path) -> Data:
    """Write the report with its picture, and return the campaign."""
    from rlx.hosts.plots.study_progress import draw
    from rlx.loop.research.research_report import markdown
    from rlx.loop.research.run_research import FOLDER

    data = {"verb": "show", **_describe(name, root)}
    folder = root / FOLDER / name
    picture = None
    rows = [_picture_row(row, data) for row in data["configs"]]
    if any(row["scores"] for row in rows):
        head = "baseline" if data["head"] == 0 else f"config {data['head']}"
        incumbent = head if (data["claim"] or {}).get("answer") == "confirmed" else None
        draw(rows, folder / "progress.png", metric="score", head=head, incumbent=incumbent, title=data["line"] or name)
        picture = "progress.png"
    text = markdown(data, picture=picture)
    _write(folder / "report.md", text)
    _write(folder / "report.html", page(text, folder / "progress.png" if picture else None))
    data["report"] = os.path.relpath(folder / "report.md")
    return data


def _write(path: Path, text: str) -> None:
    from rlx import files

    files.write_atomic(path, text.encode("utf-8", "backslashreplace"))


def page(text: str, picture: Path | None) -> str:
    """Return the report as one HTML file, with its picture inside."""
    import base64
    import html

    image = ""
    if picture is not None:
        content = base64.b64encode(picture.read_bytes()).decode()
        image = f'<img alt="progress" style="max-width:100%" src="data:image/png;base64,{content}">'
    body = html.escape(text)
    style = "body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}pre{white-space:pre-wrap}"
    head = f"<!doctype html><meta charset=utf-8><title>research</title><style>{style}</style>"
    return f"{head}{image}<pre>{body}</pre>\n"


def _picture_row(row: Data, data: Data) -> Data:
    name = "baseline" if row["config"] == 0 else f"config {row['config']}"
    statuses = {"advance": "advanced", "drop": "rejected", "invalid": "debug"}
    status = statuses.get(row["step"] or "", "validated")
    if row["config"] == 0:
        status = "baseline"
    elif row["config"] == data["head"] and (data["claim"] or {}).get("answer") == "confirmed":
        status = "confirmed"
    scores = [score for score in row["scores"] if score is not None]
    claimed = [score for score in row["claimed"] if score is not None]
    return {"candidate": name, "status": status, "scores": scores, "claimed": claimed, "test": "race"}


def render(data: Data) -> str:
    if data["verb"] == "ls":
        if not data["campaigns"]:
            return "no campaign yet\nnext: rlx research RUN --rounds 3 --budget 80"
        rows = [
            [row["research"], row["state"], f"{row['rounds_done']}/{row['rounds']}", f"{row['spent']}/{row['budget']}",
             row["line"] or NOTHING]
            for row in data["campaigns"]
        ]  # fmt: skip
        return table(["research", "state", "rounds", "seeds", "result"], rows)
    answer = (data["claim"] or {}).get("answer")
    colour = "green" if answer == "confirmed" else "yellow"
    head = labelled({
        "research": data["research"],
        "state": data["state"],
        "result": paint(data["line"], colour) if data["line"] else None,
        "stopped": data["stop"],
        "seeds": f"{data['spent']} of {data['budget']}",
    })  # fmt: skip
    rows = []
    for row in data["configs"]:
        mean = NOTHING if row["mean"] is None else figure(row["mean"])
        changes = ", ".join(f"{key}={setting(value)}" for key, value in row["changes"].items()) or "the original config"
        rows.append([str(row["config"]), str(row["round"]), mean, str(len(row["scores"])), changes, row["outcome"]])
    scoreboard = table(["config", "round", "mean", "seeds", "changes to the head", "outcome"], rows)
    following = f"rlx research resume {data['research']}"
    if data["state"] == "completed":
        is_confirmed = answer == "confirmed" and data["best_config"]
        following = f"rlx train {data['best_config']} --seeds 5" if is_confirmed else f"rlx advisor {data['run']}"
    foot = labelled({"report": data["report"], "config": data["best_config"], "next": following})
    return "\n\n".join([head, scoreboard, foot])
