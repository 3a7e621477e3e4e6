"""Is B better than A? The first run is the baseline; the others are judged against it, on their training seeds.

Compares the evaluations of the final policies that training (or rlx eval) left; evaluates nothing itself.
Exit code 6 where the evidence cannot be compared.

Example: rlx compare cartpole_ppo_001 cartpole_ppo_002
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli.output import paint, table
from rlx.runs import project

_COLOURS = {"better": "green", "worse": "red", "inconclusive": "yellow", "invalid": "red"}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("baseline", metavar="A", help="the baseline run")
    parser.add_argument("candidates", metavar="B", nargs="+", help="runs to judge against it")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.compare.comparison import compare
    from rlx.errors import EvidenceInvalid
    from rlx.runs.run import find

    root = project.root()
    comparison = compare([find(name, root=root) for name in (args.baseline, *args.candidates)])
    return {**comparison.document(), "exit_code": EvidenceInvalid.exit_code if comparison.is_invalid else 0}


def render(data: dict[str, Any]) -> str:
    blocks = []
    if data["runs"]:
        header = ["run", "n", "mean", "sd", "median", "min", "max", "steps", "seeds"]
        blocks.append(table(header, [_row(side) for side in data["runs"]], right=range(1, 8)))
        blocks.append(f"final policies, report episodes, protocol {data['fingerprint']}")
    blocks += [_candidate(data["baseline"], candidate) for candidate in data["candidates"]]
    if len(data["candidates"]) > 1:
        blocks.append(f"note: {len(data['candidates'])} verdicts, each with its own 5 % error")
    return "\n\n".join(blocks)


def _row(side: dict[str, Any]) -> list[str]:
    figures = ["–" if side[key] is None else f"{side[key]:.4g}" for key in ("mean", "sd", "median", "min", "max")]
    steps = "–".join(f"{step:,}" for step in dict.fromkeys((side["steps"][0], side["steps"][-1])))
    return [side["run"], str(side["n"]), *figures, steps, " ".join(side["seeds"])]


def _candidate(baseline: str, candidate: dict[str, Any]) -> str:
    lines = [f"{candidate['run']} against {baseline}:"]
    lines += [f"  {one['key']}: {_value(one['before'])} → {_value(one['after'])}" for one in candidate["changes"]]
    if not candidate["changes"]:
        lines.append("  the configs are equal")
    lines += [f"note: {note}" for note in candidate["notes"]]
    lines.append(paint(f"verdict: {candidate['line']}", _COLOURS[candidate["verdict"]]))
    if candidate["settle"]:
        lines.append(f"settle: {candidate['settle']}")
    return "\n".join(lines + [f"next: {command}" for command in candidate["commands"]])


def _value(value: object) -> str:
    return "absent" if value is None else str(value)
