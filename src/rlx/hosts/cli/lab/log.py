"""Print every attempt of a lab, one row each: tried, refused, crashed or ended without a change.

--tsv prints the columns of the original results file: commit, train_episodes, eval_episodes, max_steps, score,
solve_rate, eval_return, status, description. Rows of different rungs are not comparable.

Example: rlx lab log
         rlx lab log --tsv > results.tsv
"""

from __future__ import annotations

from typing import Any

from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.format import NOTHING, figure
from rlx.hosts.cli.output import table


def arguments(parser: Parser) -> None:
    parser.add_argument("--tsv", action="store_true", help="print tab-separated values")


def run(args: Args) -> Data:
    from rlx.loop.lab.lab_folder import Lab
    from rlx.loop.lab.lab_log import COLUMNS, log_rows

    lab = Lab.open()
    return {"lab": lab.name, "columns": list(COLUMNS), "rows": log_rows(lab), "tsv": args.tsv}


def render(data: Data) -> str:
    if data["tsv"]:
        lines = [data["columns"], *([_cell(row[name]) for name in data["columns"]] for row in data["rows"])]
        return "\n".join("\t".join(line) for line in lines)
    if not data["rows"]:
        return "no attempt yet\nnext: rlx lab run --agent claude"
    rows = []
    for row in data["rows"]:
        score = NOTHING if row["score"] is None else figure(row["score"])
        rows.append([row["row"], row["rung"], score, row["status"], row["session"] or NOTHING, row["description"][:60]])
    return table(["row", "rung", "score", "status", "session", "description"], rows)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return " ".join(str(value).split())
