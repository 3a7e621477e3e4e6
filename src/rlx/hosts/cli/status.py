"""Show the state of a study: approval, budget, head and incumbent, open jobs, and every candidate.

Example: rlx status
"""

from rlx.errors import EvidenceInvalid
from rlx.hosts.cli.arguments import Args, Data, add_study, find_study
from rlx.hosts.cli.format import NOTHING, duration, in_brackets
from rlx.hosts.cli.next import candidate_table, seeds_left
from rlx.hosts.cli.output import exit_code_if, labelled

arguments = add_study


def run(args: Args) -> Data:
    from rlx.loop.study.study_status import status

    data = status(find_study(args.study))
    return {**data, "exit_code": exit_code_if(data["integrity"], EvidenceInvalid)}


def render(data: Data) -> str:
    left = data["left"]
    budget = [_amount(data["spent"])]
    if data["jobs"]:
        budget.append(f"reserved by jobs: {_amount(data['reserved'])}")
    budget.append(f"left: {seeds_left(left)}, {duration(left['seconds'])}")
    head = labelled({
        "NOT sound": data["integrity"],
        "study": f"{data['task']}/{data['study']}",
        "contract": data["status"] + in_brackets("; ".join(data["missing"])),
        "approval": data["approval"],
        "metric": data["metric"],
        "head": f"{data['head']}   incumbent: {data['incumbent'] or NOTHING}",
        "spent": "; ".join(budget),
        "job": [f"{job['run']} ({job['candidate']}, {job['phase']}, {job['state']})" for job in data["jobs"]],
        "ledger": data["violations"],
        "warning": data["warnings"],
    })  # fmt: skip
    following = f"next: {data['command']}"
    if not data["candidates"]:
        return f"{head}\n{following}"
    return f"{head}\n\n{candidate_table(data['candidates'])}\n\n{following}"


def _amount(budget: Data) -> str:
    return f"{budget['seeds']} seeds, {duration(budget['seconds'])}"
