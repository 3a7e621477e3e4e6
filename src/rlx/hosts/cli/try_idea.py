"""Try one idea in one call: propose, check, launch, wait, measure and decide. The contract's rule decides.

The answer says what was measured, the decision, why, what is left and what to do next. If the time is up, rlx ends
with exit code 1 and the training goes on: the same call, or `rlx try CANDIDATE`, continues. A code change gets its own
worktree first; edit the files there, then `rlx try CANDIDATE`, or give --patch.

Example: rlx try -f candidate.json
         rlx try --idea term_domination-alive
         rlx try c001 --seconds 60
         rlx try --claim
"""

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, find_study
from rlx.hosts.cli.format import counted, figure
from rlx.hosts.cli.output import labelled, say
from rlx.hosts.cli.progress import follow
from rlx.hosts.cli.propose import add_proposal, read_proposal

SECONDS = 600.0
"""How long a call waits if nobody says otherwise."""


def arguments(parser: Parser) -> None:
    parser.add_argument("candidate", nargs="?", metavar="CANDIDATE", help="a candidate that was proposed before")
    add_proposal(parser)
    parser.add_argument("--claim", action="store_true", help="claim the head: both sides on fresh seeds, then decide")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, metavar="N", help="wait at most so long (%(default)s)"
    )


def run(args: Args) -> Data:
    from rlx.launch import launch
    from rlx.loop.study.agent.try_candidate import try_candidate, try_claim, try_proposal

    study = find_study(args.study)
    wait = launch.wait if args.json else follow
    if not args.seconds >= 0:
        raise UsageError(f"--seconds {args.seconds}: not a time", hint="--seconds 600")
    if args.claim:
        data = try_claim(study, seconds=args.seconds, say=say, follow=wait)
    elif args.candidate:
        if args.file or args.idea or args.kind:
            raise UsageError("name a candidate or a proposal, not both", hint=f"rlx try {args.candidate}")
        data = try_candidate(study, args.candidate, seconds=args.seconds, say=say, follow=wait)
    else:
        proposal = read_proposal(args, study)
        data = try_proposal(study, proposal, seconds=args.seconds, say=say, patch=args.patch, follow=wait)
    return {**data, "exit_code": int(data["is_running"])}


def render(data: Data) -> str:
    measured = ""
    if data["measured"]:
        scores = " → ".join(figure(score) for score in data["measured"]["scores"].values())
        names = " → ".join(data["measured"]["scores"])
        measured = f"{data['measured']['metric']} {scores} ({names})"
    left = data["left"]
    return labelled({
        "candidate": f"{data['candidate']}: {data['change']} (builds on {data['builds_on']})",
        "measured": measured,
        "decision": f"{data['decision']}, still training" if data["is_running"] else data["decision"],
        "why": data["why"],
        "note": data["notes"],
        "left": f"{counted(left['seeds'], 'seed')}, {counted(left['candidates'], 'candidate')}",
        "next": data["command"],
    })  # fmt: skip
