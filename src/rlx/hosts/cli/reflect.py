"""Show what each reward term paid over training, and whether one is exploited while the task suffers.

Terms are what the environment reports in info["reward_terms"] (or under other names that the wrapper `reward_terms`
declares). rlx stores the answer as reward_reflection.json in the run; you may delete that file.

Example: rlx reflect hopper_ppo_002
         rlx reflect hopper_ppo_002 --against hopper_ppo_001
"""

import shlex
from collections.abc import Sequence
from typing import Any

from rlx.hosts.cli.arguments import Args, Data, Parser, add_run, find_run
from rlx.hosts.cli.format import NOTHING, counted, figure, signed, sparkline
from rlx.hosts.cli.output import labelled, table
from rlx.hosts.cli.render_findings import finding_lines
from rlx.runs import project

MARKS = {"dominates": "dominates", "is_saturated": "saturated", "is_flat": "flat"}


def arguments(parser: Parser) -> None:
    add_run(parser)
    parser.add_argument("--against", metavar="RUN", help="show what changed since this run")


def run(args: Args) -> Data:
    from rlx.diagnose.reward_terms.reflection import reflect

    document, path = reflect(find_run(args.run), against=args.against and find_run(args.against))
    return {**document, "file": path and str(path.relative_to(project.root())), "next": _next(document)}


def _next(document: Data) -> str:
    """Return the command that draws the largest term if training logged it, otherwise the return."""
    command = f"rlx plot {document['run']}"
    if document["source"] == "training" and document["terms"]:
        largest = max(document["terms"], key=lambda term: float(term["share"]))["name"]
        command += f" --metric {shlex.quote(f'reward/term/{largest}')}"
    return command


def render(data: Data) -> str:
    title = f"{data['run']}, {counted(len(data['seeds']), 'seed')}, {data['steps'][-1]:,} steps"
    if data["is_training"]:
        title += " (still training)"
    head = labelled({
        "run": title,
        "terms": _source(data),
        "return": _ends(data["returns"]),
        "task metric": _task(data["task"]),
        "hacking risk": data["hacking_risk"],
    })  # fmt: skip
    terms = "\n".join(filter(None, [_term_table(data["terms"]), labelled({"note": data["notes"]})]))
    findings = "\n".join(finding_lines(data["findings"]))
    tail = {"stored": data["file"] or "no: rlx cannot write to the run's folder", "next": data["next"]}
    return "\n\n".join(filter(None, [head, terms, findings, _against(data.get("against")), labelled(tail)]))


def _source(data: Data) -> str:
    if not data["terms"]:
        return 'none (report them in info["reward_terms"] to see what each one pays)'
    return f"from {data['source']}"


def _ends(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return NOTHING
    return f"{figure(known[0])} → {figure(known[-1])}  {_curve(values)}"


def _task(task: Data | None) -> str:
    if task is None:
        return "none"
    known = [value for value in task["series"] if value is not None]
    return f"{task['metric']} {figure(known[0])} → {figure(task['end'])}  {_curve(task['series'])}"


def _term_table(terms: Sequence[Data]) -> str:
    if not terms:
        return ""
    header = ["term", "share", "min", "mean", "max", "with task", "per episode", ""]
    rows = []
    for term in terms:
        agreement = NOTHING
        if term["correlation"] is not None:
            agreement = signed(round(term["correlation"], 2))
        figures = [figure(term[key]) for key in ("min", "mean", "max")]
        marks = " ".join(mark for key, mark in MARKS.items() if term[key])
        rows.append([term["name"], f"{term['share']:.0%}", *figures, agreement, _curve(term["series"]), marks])
    return table(header, rows, right=range(1, 6))


def _curve(values: Sequence[float | None]) -> str:
    return sparkline([float("nan") if value is None else value for value in values])


def _arrow(values: Sequence[Any]) -> str:
    return " → ".join(figure(value) for value in values)


def _against(against: Data | None) -> str:
    if against is None:
        return ""
    lines = [f"against {against['run']}:"]
    if against["task"]:
        lines.append(f"  task metric at the end: {_arrow(against['task'])}")
    for name, change in against["terms"].items():
        shares = " → ".join(f"{value:.0%}" for value in change["share"])
        lines.append(f"  {name}: share {shares}, mean {_arrow(change['mean'])} per episode")
    lines += [f"  {name}: new" for name in against["appeared"]] + [f"  {name}: gone" for name in against["gone"]]
    lines += [f"  finding gone: {rule}" for rule in against["findings"]["gone"]]
    return "\n".join(lines + [f"  finding new: {rule}" for rule in against["findings"]["new"]])
