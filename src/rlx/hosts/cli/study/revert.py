"""Withdraw a candidate that advanced or was confirmed. Head and incumbent return to those before it.

Example: rlx study revert c004 --why "it limps on gravel"
"""

from rlx.hosts.cli.arguments import Args, Data, Parser, add_candidate, find_study
from rlx.hosts.cli.format import NOTHING
from rlx.hosts.cli.output import labelled


def arguments(parser: Parser) -> None:
    add_candidate(parser)
    parser.add_argument("--why", required=True, metavar="TEXT", help="the reason, which the ledger records")


def run(args: Args) -> Data:
    from rlx.loop.study.propose import revert

    return revert(find_study(args.study), args.candidate, why=args.why)


def render(data: Data) -> str:
    return labelled({
        "withdrawn": f"{data['candidate']}, {data['was']} ({data['says']}): {data['hypothesis']}",
        "why": data["why"],
        "head": _change(data["head_before"], data["head"]),
        "incumbent": _change(data["incumbent_before"], data["incumbent"]),
        "next": "rlx next",
    })  # fmt: skip


def _change(before: str | None, after: str | None) -> str:
    names = dict.fromkeys([before or NOTHING, after or NOTHING])
    return " → ".join(names)
