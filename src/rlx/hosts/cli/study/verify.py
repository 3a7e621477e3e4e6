"""Recompute every number of a study from raw episodes and hashes: scores, weights, decisions, the evaluator's copy.

If a number differs from the ledger, the exit code is 6.

Example: rlx study verify
"""

from rlx.errors import EvidenceInvalid
from rlx.hosts.cli.arguments import Args, Data, add_study, find_study
from rlx.hosts.cli.output import exit_code_if, labelled

arguments = add_study


def run(args: Args) -> Data:
    from rlx.loop.study.verify import verify

    data = verify(find_study(args.study))
    return {**data, "exit_code": exit_code_if(data["problems"], EvidenceInvalid)}


def render(data: Data) -> str:
    result = "every number agrees with its files"
    if data["problems"]:
        result = "some numbers differ from their files"
    return labelled({
        "checked": [f"{count} {what}" for what, count in data["checked"].items()],
        "wrong": data["problems"],
        "result": result,
        "next": data["command"],
    })  # fmt: skip
