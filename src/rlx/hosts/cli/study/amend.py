"""Change the contract: an approval is void from then on, and every changed byte is in the ledger.

Without -s it takes in what was edited by hand in contract.yaml.

Example: rlx study amend -s budget.seeds=80 -s metric.min_effect=5
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli.study.show import render as render
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="another study than the one in use")
    parser.add_argument("-s", "--set", action="append", default=[], metavar="KEY=VALUE", help="a key of the contract")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.amending import amend
    from rlx.loop.overview import noticed
    from rlx.study.study import find

    study = find(project.root(), args.study)
    return amend(study, args.set) if args.set else noticed(study)
