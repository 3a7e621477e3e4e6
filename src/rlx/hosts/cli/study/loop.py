"""Take the next step of a study again and again, until a person is needed, the budget is spent or a stop rule holds.

With --agent, rlx starts the command whenever a candidate has to be proposed or fixed. The command reads
`rlx next --json` and acts through rlx. rlx waits longer after each start that fails. After three starts that leave no
row in the ledger, or only refusals, rlx asks for a person. If the head can be claimed with its seeds, rlx claims it
first.
The contract must allow jobs without a person (`automation.unattended`).

Example: rlx study loop
         rlx study loop --agent "claude -p 'Read rlx next --json, take one step.'"
"""

from rlx.hosts.cli.arguments import Args, Data, Parser, add_executor, add_study, find_study
from rlx.hosts.cli.format import command_words, counted
from rlx.hosts.cli.output import labelled, say


def arguments(parser: Parser) -> None:
    add_study(parser)
    parser.add_argument("--agent", metavar="COMMAND", help="the command that proposes and fixes candidates")
    add_executor(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the first step and stop")


def run(args: Args) -> Data:
    from rlx.hosts.cli.progress import follow
    from rlx.hosts.cli.study.report import write_report
    from rlx.loop.study.agent.autoloop import Drive

    study = find_study(args.study)
    agent = command_words(args.agent or "", option="--agent")
    drive = Drive(study, say=say, agent=agent, follow=follow, report=write_report)
    if not args.dry_run:
        return drive.go()
    drive.refuse_unattended()
    step = drive.next_step()
    return {"study": study.name, "ended": f"dry run: {step.why}", "did": [], "command": step.command}


def render(data: Data) -> str:
    return labelled({"did": counted(len(data["did"]), "step"), "ended": data["ended"], "next": data["command"]})
