"""Go on with the last drive of a lab, with its options and what is left of them, after a reboot, a kill or a stop.

rlx first finishes the session and the attempt that were under way: each gets its one row.

Trainings use the executor of the drive, unless --executor names another one.

Example: rlx lab resume
"""

from __future__ import annotations

import os

from rlx.hosts.cli.arguments import EXECUTOR_VARIABLE, Args, Data, Parser, add_executor, executor_named
from rlx.hosts.cli.lab.run_ import drive
from rlx.hosts.cli.lab.run_ import render as render
from rlx.hosts.cli.output import say


def arguments(parser: Parser) -> None:
    """The other options of the drive are in the ledger."""
    add_executor(parser)


def run(args: Args) -> Data:
    from rlx.hosts.cli.progress import follow
    from rlx.launch import launch
    from rlx.loop.lab import driver
    from rlx.loop.lab.lab_folder import Lab

    lab = Lab.open()
    wait = launch.wait if args.json else follow
    executor = None
    options = driver.last_options(lab)
    if options is not None and not os.environ.get(EXECUTOR_VARIABLE):  # neither --executor nor the shell names one
        executor = options.executor
    with executor_named(executor):
        return drive(lab, lambda: driver.resume(lab, say=say, follow=wait))
