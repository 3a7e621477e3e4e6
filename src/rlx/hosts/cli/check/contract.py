"""List the open points of a study's contract, and what its budget can pay for and detect.

If a point is open, the exit code is 4.

Example: rlx check contract
"""

from rlx.errors import Refused
from rlx.hosts.cli.arguments import Args, Data, add_study, find_study
from rlx.hosts.cli.output import exit_code_if, labelled

arguments = add_study


def run(args: Args) -> Data:
    from rlx.loop.study.study_status import overview

    data = overview(find_study(args.study))
    return {**data, "exit_code": exit_code_if(data["status"] == "blocked", Refused)}


def render(data: Data) -> str:
    return labelled({
        data["study"]: data["status"],
        "open": data["missing"],
        "note": data["notes"],
        "affords": data["affords"],
        "next": data["command"],
    })  # fmt: skip
