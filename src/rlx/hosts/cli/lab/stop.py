"""Ask the driver of a lab to stop after its present iteration; with --now, stop it at once.

A session that is stopped at once gets its row, and a training goes on in the background. `rlx lab resume` continues.

Example: rlx lab stop
         rlx lab stop --now
"""

from __future__ import annotations

import getpass

from rlx.errors import NotFound
from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.output import labelled


def arguments(parser: Parser) -> None:
    parser.add_argument("--now", action="store_true", help="end the session under way")


def run(args: Args) -> Data:
    from rlx.loop.lab import driver
    from rlx.loop.lab.lab_folder import Lab

    lab = Lab.open()
    if not driver.is_running(lab):
        raise NotFound(f"no driver runs lab {lab.name}", hint="rlx lab status")
    driver.ask_to_stop(lab, by=getpass.getuser())
    if args.now:
        driver.interrupt(lab)
    return {"lab": lab.name, "now": args.now}


def render(data: Data) -> str:
    when = "now" if data["now"] else "after the present iteration"
    return labelled({"stop": f"lab {data['lab']} stops {when}", "next": "rlx lab status"})
