"""Do what is next in a study until a person is needed, the budget is spent or a stop rule holds.

With --agent the command is started whenever somebody must propose or mend something: it reads `rlx next --json` and
acts through rlx. It is backed off from, and after three starts that leave no row in the ledger, or only refusals, a
person is called for; a head that may be claimed is claimed first, if its seeds are there.
What runs without a person must be allowed by the contract (`automation.unattended`).

Example: rlx study loop
         rlx study loop --agent "claude -p 'Read rlx next --json, take one step.'"
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli.output import say
from rlx.hosts.cli.words import command_words, plural
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="another study than the one in use")
    parser.add_argument("--agent", metavar="COMMAND", help="who proposes and mends; started again and again")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done first, do nothing")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.hosts.cli.progress import follow
    from rlx.hosts.cli.study.report import written
    from rlx.loop.drive import Drive
    from rlx.study.study import find

    study = find(project.root(), args.study)
    agent = command_words(args.agent or "", option="--agent")
    drive = Drive(study, say=say, agent=agent, follow=follow, report=written)
    if args.dry_run:
        drive.refuse_unattended()
        step = drive.next_step()
        return {"study": study.name, "ended": f"dry run: {step.why}", "did": [], "command": step.command}
    return drive.go()


def render(data: dict[str, Any]) -> str:
    did = plural(len(data["did"]), "step")
    return "\n".join([f"did: {did}", f"ended: {data['ended']}", f"next: {data['command']}"])
