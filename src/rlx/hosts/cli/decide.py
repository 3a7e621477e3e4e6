"""Apply the contract's decision rule to a candidate and write the decision to the ledger.

The rule decides, not the caller. `advanced` moves the head, `confirmed` moves the incumbent.

Example: rlx decide c001
"""

from rlx.hosts.cli.arguments import Args, Data, add_candidate, find_study
from rlx.hosts.cli.output import labelled, say
from rlx.hosts.cli.verdict import verdict_fields

arguments = add_candidate


def run(args: Args) -> Data:
    from rlx.loop.study.decide import decide

    return decide(find_study(args.study), args.candidate, say=say)


def render(data: Data) -> str:
    decision = data["decision"]
    if data["recorded"]:
        decision += f" (recorded as {data['recorded']})"
    study = data["study_decision"]
    if data["stop_rule"]:
        study = f"the search ends by {data['stop_rule']}"
    fields = {**verdict_fields(data), "decision": decision, "study": study, "next": data["command"]}
    return labelled(fields)
