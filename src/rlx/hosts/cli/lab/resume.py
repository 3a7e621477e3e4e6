"""Go on with the last drive of a lab, with its options and what is left of them, after a reboot, a kill or a stop.

rlx first finishes the session and the attempt that were under way: each gets its one row.

Example: rlx lab resume
"""

from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.lab.run_ import drive
from rlx.hosts.cli.lab.run_ import render as render
from rlx.hosts.cli.output import say


def arguments(_parser: Parser) -> None:
    """It has no options: those of the drive stand in the ledger."""


def run(args: Args) -> Data:
    from rlx.hosts.cli.progress import follow
    from rlx.launch import launch
    from rlx.loop.lab import driver
    from rlx.loop.lab.lab_folder import Lab

    lab = Lab.open()
    wait = launch.wait if args.json else follow
    return drive(lab, lambda: driver.resume(lab, say=say, follow=wait))
