"""Change the contract. This voids its approval, and the ledger records every change.

Without -s, rlx records the changes that you made in contract.yaml by hand.

Example: rlx study amend -s budget.seeds=80 -s metric.min_effect=5
"""

from rlx.hosts.cli.arguments import Args, Data, Parser, add_settings, add_study, find_study
from rlx.hosts.cli.study.show import render as render


def arguments(parser: Parser) -> None:
    add_study(parser)
    add_settings(parser, of="the contract")


def run(args: Args) -> Data:
    from rlx.loop.study.amend import amend
    from rlx.loop.study.study_status import notice_amendment

    study = find_study(args.study)
    if args.set:
        return amend(study, args.set)
    return notice_amendment(study)
