"""Check a candidate of a study: its records, its config keys, and its real diff against the contract's scope.

If it passes, rlx prints a plan hash over contract, candidate and diff, which `rlx launch` needs. If it does not pass,
rlx prints every reason and ends with exit code 4.

Example: rlx check candidate c001
"""

from rlx.hosts.cli.arguments import Args, Data, Parser, add_candidate, add_trust, find_study, obey_trust
from rlx.hosts.cli.output import labelled


def arguments(parser: Parser) -> None:
    add_candidate(parser)
    add_trust(parser)
    parser.add_argument("--dry-run", action="store_true", help="check without writing to the ledger")


def run(args: Args) -> Data:
    from rlx.launch.study_jobs.launch_candidate import check
    from rlx.loop.study.step_commands import next_step_of
    from rlx.loop.study.verdict_notes import other_base

    obey_trust(args)
    study = find_study(args.study)
    checked = check(study, args.candidate, is_dry=args.dry_run)
    notes = [other_base(study, args.candidate, study.state().head)]
    notes += [f"it holds data; weights belong into no code: {data}" for data in checked.large_literals]
    return {
        "candidate": args.candidate,
        "ok": True,
        "plan": checked.plan,
        "changes": dict(checked.candidate.changes),
        "files": [change.path for change in checked.changes],
        "lines": checked.lines,
        "notes": list(filter(None, notes)),
        "command": str(next_step_of(study, args.candidate).command),
    }


def render(data: Data) -> str:
    return labelled({
        data["candidate"]: "within the contract",
        "plan": data["plan"],
        "key": [f"{key} = {value}" for key, value in data["changes"].items()],
        "file": data["files"],
        "changed lines": data["files"] and data["lines"],
        "note": data["notes"],
        "next": data["command"],
    })  # fmt: skip
