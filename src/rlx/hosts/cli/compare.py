"""Is B better than A? The first run is the baseline; the others are judged against it, on their training seeds.

Compares the evaluations of the final policies that training (or rlx eval) left; evaluates nothing itself. A pair is
decided at 10, 16 or 24 seeds a side and never in between; looks are recorded, so looking again changes nothing.
Several candidates are corrected for their number. Exit code 6 where the evidence cannot be compared.
Guards watch other metrics that were evaluated (length, success_rate, reward terms): harm that is shown blocks a
`better`, and so does safety that is required and not shown. Higher is better unless `lower` is said.
Every pair is judged under the protocol its trainings reported by; where both runs were also evaluated under another
one, --protocol chooses that.

Example: rlx compare cartpole_ppo_001 cartpole_ppo_002
         rlx compare base_001 wide_001 deep_001 --min-effect 10
         rlx compare base_001 wide_001 --guard success_rate --require-safe energy:0.5:lower
         rlx compare base_001 wide_001 --protocol 3616
         rlx compare base_001 wide_001 --latex
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from rlx.hosts.cli.output import paint, table
from rlx.hosts.cli.words import figure, guarded, setting
from rlx.runs import project

if TYPE_CHECKING:
    from rlx.compare.guardrails import Guard

_COLOURS = {"better": "green", "worse": "red", "inconclusive": "yellow", "invalid": "red"}
MOST_CHANGES = 12
_FIGURES = ("mean", "sd", "median", "min", "max")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("baseline", metavar="A", help="the baseline run")
    parser.add_argument("candidates", metavar="B", nargs="+", help="runs to judge against it")
    parser.add_argument("--min-effect", type=float, default=0.0, metavar="X", help="gain below which nothing is better")
    parser.add_argument(
        "--guard", action="append", default=[], metavar="METRIC[:MARGIN]", help="block a gain that harms this metric"
    )
    parser.add_argument(
        "--require-safe", action="append", default=[], metavar="METRIC:MARGIN", help="ask that it be shown unharmed"
    )
    parser.add_argument("--protocol", metavar="FINGERPRINT", help="judge under this shared protocol (its beginning)")
    parser.add_argument("--all", action="store_true", help="show every config difference")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--csv", dest="shape", action="store_const", const="csv", help="a row a run, for spreadsheets")
    shape.add_argument("--latex", dest="shape", action="store_const", const="latex", help="a booktabs table")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.compare.comparison import compare
    from rlx.errors import EvidenceInvalid, UsageError
    from rlx.runs.run import find

    if not 0 <= args.min_effect < float("inf"):
        raise UsageError(f"--min-effect {args.min_effect:g}: a gain of zero or more")
    root = project.root()
    runs = [find(name, root=root) for name in (args.baseline, *args.candidates)]
    guards = [_guard(text) for text in args.guard] + [_guard(text, must_be_shown=True) for text in args.require_safe]
    comparison = compare(runs, minimum_effect=args.min_effect, guards=guards, protocol=args.protocol)
    data = {**comparison.document(), "exit_code": EvidenceInvalid.exit_code if comparison.is_invalid else 0}
    shape = "all" if args.all and not args.json else args.shape
    return {**data, "shape": shape} if shape else data


def _guard(text: str, *, must_be_shown: bool = False) -> Guard:
    """Read METRIC, METRIC:margin or METRIC:margin:lower."""
    from rlx.compare.guardrails import Guard
    from rlx.errors import UsageError

    metric, *rest = text.split(":")
    numbers = [part for part in rest if part not in ("lower", "higher")]
    try:
        margin = float(numbers[0]) if numbers else 0.0
    except ValueError:
        margin = float("nan")
    flag = "--require-safe" if must_be_shown else "--guard"
    if not metric or len(numbers) > 1 or not 0 <= margin < float("inf") or (must_be_shown and not numbers):
        raise UsageError(f"{flag} {text}: not a metric and a margin", hint=f"{flag} success_rate:0.05")
    return Guard(metric, margin, "lower" if "lower" in rest else "higher", must_be_shown)


def render(data: dict[str, Any]) -> str:
    shape = data.get("shape")
    if shape in ("csv", "latex"):
        return _csv(data) if shape == "csv" else _latex(data)
    blocks = ["\n".join(_answer(data["baseline"], candidate) for candidate in data["candidates"])]
    judged = sum(candidate["verdict"] != "invalid" for candidate in data["candidates"])
    if judged > 1:
        blocks.append(f"note: {judged} candidates, corrected for their number (Holm)")
    blocks += _tables(data["runs"])
    most = len(data["candidates"][0]["changes"]) if shape == "all" else MOST_CHANGES
    blocks += [_candidate(data["baseline"], candidate, most=max(most, 1)) for candidate in data["candidates"]]
    return "\n\n".join(blocks)


def _answer(baseline: str, candidate: dict[str, Any]) -> str:
    """Return the verdict first: the line, why, and what guards say."""
    lines = [
        paint(f"verdict: {candidate['line']}", _COLOURS[candidate["verdict"]]),
        f"  {candidate['run']} against {baseline}",
    ]
    if candidate["verdict"] != "invalid" and candidate["reason"] not in candidate["line"]:
        lines.append(f"reason: {candidate['reason']}")
    return "\n".join(lines + [f"guard: {name} {guarded(one)}" for name, one in candidate["guardrails"].items()])


def _tables(sides: list[dict[str, Any]]) -> list[str]:
    """Return the scores of the runs, a table for each protocol."""
    blocks = []
    for fingerprint in dict.fromkeys(side["fingerprint"] for side in sides):
        alike = [side for side in sides if side["fingerprint"] == fingerprint]
        header = ["run", "n", *_FIGURES, "steps", "seeds"]
        blocks += [table(header, [_row(side) for side in alike], right=range(1, 8)), *_metrics(alike)]
        blocks.append(f"{alike[0]['metric']} of the final policies, report episodes, protocol {fingerprint}")
    return blocks


def _row(side: dict[str, Any]) -> list[str]:
    steps = "–".join(f"{step:,}" for step in dict.fromkeys((*side["steps"][:1], *side["steps"][-1:])))
    seeds = [*side["seeds"], *(f"{seed}:crashed" for seed in side["crashed"])]
    seeds += [f"{seed}:{'not evaluated' if state == 'completed' else state}" for seed, state in side["pending"].items()]
    return [side["run"], str(side["n"]), *(figure(side[key]) for key in _FIGURES), steps or "–", " ".join(seeds)]


def _metrics(sides: list[dict[str, Any]]) -> list[str]:
    """Return a table of what was measured beside the return."""
    rows = [
        [side["run"], name, str(one["n"]), *(figure(one[key]) for key in ("mean", "sd", "min", "max"))]
        for name in dict.fromkeys(name for side in sides for name in side["metrics"])
        for side in sides
        if (one := side["metrics"].get(name))
    ]
    return [table(["run", "metric", "n", "mean", "sd", "min", "max"], rows, right=range(2, 7))] if rows else []


def _candidate(baseline: str, candidate: dict[str, Any], *, most: int) -> str:
    """Return what differs, what else to know, and what to do."""
    lines = [f"{candidate['run']} against {baseline}:"]
    changes = [f"  {one['key']}: {setting(one['before'])} → {setting(one['after'])}" for one in candidate["changes"]]
    lines += changes[:most] or ["  the configs are equal"]
    if len(changes) > most:
        lines.append(f"  and {len(changes) - most} more (--all)")
    lines += [f"note: {note}" for note in candidate["notes"]]
    if candidate["settle"]:
        lines.append(f"settle: {candidate['settle']}")
    return "\n".join(lines + [f"next: {command}" for command in candidate["commands"]])


def _verdicts(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {candidate["run"]: candidate for candidate in data["candidates"]}


def _first_sides(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return each run's side; the baseline's under the first protocol."""
    return {side["run"]: side for side in reversed(data["runs"])}


def _csv(data: dict[str, Any]) -> str:
    import csv
    import io

    sides, verdicts = _first_sides(data), _verdicts(data)
    keys = ("verdict", "leaning", "low", "high", "p", "reason")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["run", "n", *_FIGURES, *keys])
    for name in (data["baseline"], *verdicts):
        side, judged = sides.get(name, {}), verdicts.get(name)
        values: list[object] = ["baseline", "", "", "", "", ""]
        if judged:
            low, high = judged["interval"]
            values = [judged["verdict"], judged["leaning"], low, high, judged["p"], judged["reason"]]
        writer.writerow([name, side.get("n", ""), *(side.get(key, "") for key in _FIGURES), *values])
    return out.getvalue()


def _latex(data: dict[str, Any]) -> str:
    """Return a booktabs table: mean ± sd over seeds, the difference with its interval, the verdict."""
    sides, verdicts = _first_sides(data), _verdicts(data)
    metrics = dict.fromkeys(side["metric"] for side in data["runs"])
    rows = []
    for name in (data["baseline"], *verdicts):
        side, judged = sides.get(name, {"n": "--", "mean": None}), verdicts.get(name)
        spread = f"${_plain(side['mean'])} \\pm {_plain(side['sd'])}$" if side["mean"] is not None else "--"
        effect = f"${_interval(judged)}$" if judged and judged["leaning"] is not None else "--"
        answer = judged["line"] if judged and judged["verdict"] == "invalid" else (judged or {}).get("verdict")
        rows.append([_escape(name), str(side["n"]), spread, effect, _escape(answer or "baseline")])
    body = "\n".join(f"    {' & '.join(row)} \\\\" for row in rows)
    head = f"    run & seeds & {_escape(' '.join(metrics) or 'score')} & difference & verdict \\\\"
    return "\n".join(
        [r"\begin{tabular}{lrrrl}", r"    \toprule", head, r"    \midrule", body, r"    \bottomrule", r"\end{tabular}"]
    )


def _interval(judged: dict[str, Any]) -> str:
    low, high = judged["interval"]
    ends = (r"-\infty" if low is None else _plain(low, "+"), r"+\infty" if high is None else _plain(high, "+"))
    return f"{_plain(judged['leaning'], '+')}\\ [{ends[0]}, {ends[1]}]"


def _plain(value: float | None, sign: str = "") -> str:
    """Return a number with four digits as LaTeX reads it."""
    return r"\text{--}" if value is None else f"{value:{sign}.4g}"


def _escape(text: str) -> str:
    return text.replace("\\", r"\textbackslash{}").replace("_", r"\_").replace("%", r"\%").replace("&", r"\&")
