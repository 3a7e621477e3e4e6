"""Approve a contract byte for byte: rlx prints its permissions and who could have given this approval.

There are three levels. asserted: anyone on this account. signed: --key, an ssh key that a signers file outside the
project lists. other user: --document, a file that another account owns. Without a terminal, --yes confirms that you
have read the contract. One changed byte voids an approval, and approvals expire.
The exit code is 4 if the level is below the contract's minimum, if a stronger approval is in place, or if the study
has stopped. --go-on lets a stopped study continue.

Example: rlx study approve
         rlx study approve --key ~/.ssh/id_ed25519_sk
"""

import getpass
import sys
from pathlib import Path

from rlx.errors import Refused, UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, add_study, find_study
from rlx.hosts.cli.format import when
from rlx.hosts.cli.output import labelled, plain, say
from rlx.hosts.cli.study import show


def arguments(parser: Parser) -> None:
    add_study(parser)
    parser.add_argument("--key", type=Path, metavar="FILE", help="sign with this ssh key")
    parser.add_argument("--document", type=Path, metavar="FILE", help="an approval that another user has written")
    parser.add_argument("--by", metavar="NAME", help="who approves, for an asserted approval (default: this account)")
    parser.add_argument("--go-on", action="store_true", help="let a stopped study continue")
    parser.add_argument("--yes", action="store_true", help="confirm that you have read the contract; do not ask")


def run(args: Args) -> Data:
    from rlx.loop.study.approve import approve
    from rlx.loop.study.study_status import notice_amendment

    if args.key and args.document:
        raise UsageError("--key and --document exclude each other", hint="leave out one of them")
    study = find_study(args.study)
    shown_hash = None
    if not args.yes:
        shown_hash = _ask(notice_amendment(study))
    by = args.by or getpass.getuser()
    return approve(study, by=by, key=args.key, document=args.document, goes_on=args.go_on, shown=shown_hash)


def _ask(overview: Data) -> str:
    """Show the contract, ask for the study's name, and return the hash of the contract."""
    if not sys.stdin.isatty():
        hint = "read it with rlx study show, then run the same command with --yes"
        raise Refused("no person at a terminal has read the contract", hint=hint)
    say(show.screen(plain(overview)))
    say(f"\ntype the study's name ({overview['study']}) to approve all of this")
    if sys.stdin.readline().strip() != overview["study"]:
        raise Refused("not approved", hint="rlx study show, then run the same command again")
    return str(overview["sha256"])


def render(data: Data) -> str:
    level = f"{data['level']} by {data['by']}"
    if not data["human"]:
        level += " (not proven to be a human)"
    scope = [line for point in data["points"] if point["point"] == "scope" for line in point["lines"]]
    fields = {
        "approved": f"{data['task']}/{data['study']} until {when(data['expires'])}",
        "level": level,
        "continues after": data["goes_on_after"],
        "scope": scope,
        "note": [note for point in data["points"] for note in point["notes"]],
        "rehearsal": data["rehearsal"],
        "not ruled out": data["forgeable"],
        "affords": data["affords"],
        "next": data["command"],
    }
    return labelled(fields)
