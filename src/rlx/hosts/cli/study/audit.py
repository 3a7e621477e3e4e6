"""Verify a study's ledger: an unbroken hash chain, only legal moves, and every anchored head in it.

--anchor stores the ledger's head in git under refs/rlx/, so that a later rewrite of the ledger is visible. If the
ledger is not sound, the exit code is 6. rlx also prints what somebody on this account could still forge.

Example: rlx study audit
         rlx study audit --anchor
"""

from rlx.errors import EvidenceInvalid
from rlx.hosts.cli.arguments import Args, Data, Parser, add_study, find_study
from rlx.hosts.cli.output import exit_code_if, labelled


def arguments(parser: Parser) -> None:
    add_study(parser)
    parser.add_argument("--anchor", action="store_true", help="store the ledger's head in git")


def run(args: Args) -> Data:
    from rlx.loop.study.verify import audit

    data = audit(find_study(args.study), is_anchored=args.anchor)
    return {**data, "exit_code": exit_code_if(not data["is_sound"], EvidenceInvalid)}


def render(data: Data) -> str:
    ledger = f"{data['rows']} rows, sound"
    if not data["is_sound"]:
        ledger = f"{data['rows']} rows, NOT sound"
    return labelled({
        "ledger": ledger,
        "head": data["head"],
        "anchored": data["anchor"] or "no; a rewritten ledger would not be noticed (use --anchor)",
        "wrong": data["problems"],
        "note": data["notes"],
        "next": data["command"],
    })  # fmt: skip
