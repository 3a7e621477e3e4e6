"""List all candidates in order: commit, budget, seeds, score, status, description. Negative results are included.

The score is the mean over the raced seeds, and `seeds` is their number. A claim uses other seeds and episodes, so its
effect against the baseline has a column of its own.

Example: rlx study log
         rlx study log --tsv > results.tsv
"""

from rlx.hosts.cli.arguments import Args, Data, Parser, add_study, find_study
from rlx.hosts.cli.format import NOTHING, figure
from rlx.hosts.cli.output import table

COLUMNS = ("commit", "candidate", "budget", "seeds", "score", "status", "description", "claim")
SHOWN = ("commit", "candidate", "budget", "seeds", "score", "status", "claim", "description")
"""The columns of the table for people: the description is long, so it comes last."""


def arguments(parser: Parser) -> None:
    add_study(parser)
    parser.add_argument("--tsv", action="store_true", help="print tab-separated values for other tools")


def run(args: Args) -> Data:
    from rlx.loop.study.write_report import log

    return {**log(find_study(args.study)), "is_tsv": args.tsv}


def render(data: Data) -> str:
    if data["is_tsv"]:
        rows = [[_cell(row[name]) for name in COLUMNS] for row in data["rows"]]
        return "\n".join("\t".join(row) for row in [COLUMNS, *rows])
    keys = [name.replace("status", "standing") for name in SHOWN]
    rows = [[_cell(row[key]) for key in keys] for row in data["rows"]]
    return f"{table(SHOWN, rows, right=(3, 4))}\nnext: rlx study report {data['study']}"


def _cell(value: object) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, float):
        return figure(value)
    return " ".join(str(value).split())
