"""Is B better than A? The first run is the baseline; the others are judged against it, on their training seeds.

Compares the evaluations of the final policies that training (or rlx eval) left; evaluates nothing itself. A pair is
decided at 10, 16 or 24 seeds a side and never in between; looks are recorded, so looking again changes nothing.
Several candidates are corrected for their number. Exit code 6 where the evidence cannot be compared.

Example: rlx compare cartpole_ppo_001 cartpole_ppo_002
         rlx compare base_001 wide_001 deep_001 --min-effect 10
         rlx compare base_001 wide_001 --latex
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli.output import paint, table
from rlx.runs import project

_COLOURS = {"better": "green", "worse": "red", "inconclusive": "yellow", "invalid": "red"}
_FIGURES = ("mean", "sd", "median", "min", "max")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("baseline", metavar="A", help="the baseline run")
    parser.add_argument("candidates", metavar="B", nargs="+", help="runs to judge against it")
    parser.add_argument("--min-effect", type=float, default=0.0, metavar="X", help="gain below which nothing is better")
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
    comparison = compare(runs, minimum_effect=args.min_effect)
    data = {**comparison.document(), "exit_code": EvidenceInvalid.exit_code if comparison.is_invalid else 0}
    return {**data, "shape": args.shape} if args.shape else data


def render(data: dict[str, Any]) -> str:
    if "shape" in data:
        return _csv(data) if data["shape"] == "csv" else _latex(data)
    blocks = []
    if data["runs"]:
        header = ["run", "n", *_FIGURES, "steps", "seeds"]
        blocks.append(table(header, [_row(side) for side in data["runs"]], right=range(1, 8)))
        blocks += _metrics(data["runs"])
        blocks.append(f"final policies, report episodes, protocol {data['fingerprint']}")
    blocks += [_candidate(data["baseline"], candidate) for candidate in data["candidates"]]
    if len(data["candidates"]) > 1:
        blocks.append(f"note: {len(data['candidates'])} candidates, corrected for their number (Holm)")
    return "\n\n".join(blocks)


def _row(side: dict[str, Any]) -> list[str]:
    steps = "–".join(f"{step:,}" for step in dict.fromkeys((*side["steps"][:1], *side["steps"][-1:])))
    seeds = [*side["seeds"], *(f"{seed}:crashed" for seed in side["crashed"])]
    seeds += [f"{seed}:{state}" for seed, state in side["pending"].items()]
    return [side["run"], str(side["n"]), *(_figure(side[key]) for key in _FIGURES), steps or "–", " ".join(seeds)]


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _metrics(sides: list[dict[str, Any]]) -> list[str]:
    """Return a table of what was measured beside the return."""
    rows = [
        [side["run"], name, str(one["n"]), *(_figure(one[key]) for key in ("mean", "sd", "min", "max"))]
        for name in dict.fromkeys(name for side in sides for name in side["metrics"])
        for side in sides
        if (one := side["metrics"].get(name))
    ]
    return [table(["run", "metric", "n", "mean", "sd", "min", "max"], rows, right=range(2, 7))] if rows else []


def _candidate(baseline: str, candidate: dict[str, Any]) -> str:
    lines = [f"{candidate['run']} against {baseline}:"]
    lines += [f"  {one['key']}: {_value(one['before'])} → {_value(one['after'])}" for one in candidate["changes"]]
    if not candidate["changes"]:
        lines.append("  the configs are equal")
    lines += [f"note: {note}" for note in candidate["notes"]]
    lines.append(paint(f"verdict: {candidate['line']}", _COLOURS[candidate["verdict"]]))
    if candidate["verdict"] != "invalid" and candidate["reason"] not in candidate["line"]:
        lines.append(f"reason: {candidate['reason']}")
    if candidate["settle"]:
        lines.append(f"settle: {candidate['settle']}")
    return "\n".join(lines + [f"next: {command}" for command in candidate["commands"]])


def _value(value: object) -> str:
    return "absent" if value is None else str(value)


def _verdicts(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {candidate["run"]: candidate for candidate in data["candidates"]}


def _csv(data: dict[str, Any]) -> str:
    import csv
    import io

    sides = {side["run"]: side for side in data["runs"]}
    verdicts = _verdicts(data)
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
    verdicts = _verdicts(data)
    rows = []
    for side in data["runs"]:
        spread = f"${_plain(side['mean'])} \\pm {_plain(side['sd'])}$" if side["mean"] is not None else "--"
        judged = verdicts.get(side["run"])
        effect = f"${_interval(judged)}$" if judged and judged["verdict"] != "invalid" else "--"
        rows.append([_escape(side["run"]), str(side["n"]), spread, effect, judged["verdict"] if judged else "baseline"])
    body = "\n".join(f"    {' & '.join(row)} \\\\" for row in rows)
    head = "    run & seeds & return & difference & verdict \\\\"
    return "\n".join(
        [r"\begin{tabular}{lrrrl}", r"    \toprule", head, r"    \midrule", body, r"    \bottomrule", r"\end{tabular}"]
    )


def _interval(judged: dict[str, Any]) -> str:
    low, high = judged["interval"]
    return f"{_plain(judged['leaning'], '+')}\\ [{_plain(low, '+')}, {_plain(high, '+')}]"


def _plain(value: float | None, sign: str = "") -> str:
    """Return a number with four digits as LaTeX reads it."""
    if value is None:
        return r"\text{--}"
    return rf"{'-' if value < 0 else sign}\infty" if abs(value) == float("inf") else f"{value:{sign}.4g}"


def _escape(text: str) -> str:
    return text.replace("\\", r"\textbackslash{}").replace("_", r"\_").replace("%", r"\%").replace("&", r"\&")
