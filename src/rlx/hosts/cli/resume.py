"""Continue a run in place: every unfinished seed continues from its newest valid checkpoint.

rlx prints for each seed how faithful that is: exact (bit-identical to an uninterrupted run), boundary (the environment
was reset) or warm (something else is missing, and rlx names it). --prove trains a stretch once without and once with an
interruption, and compares every weight. --fork continues in a new run, whose settings you may change. A run that this
project sent to a cluster continues there, unless --executor says otherwise.

Example: rlx resume cartpole_ppo_001
         rlx resume cartpole_ppo_001 --fork -s algo.total_timesteps=200000
"""

from rlx.errors import UsageError
from rlx.hosts.cli import attach
from rlx.hosts.cli.arguments import (
    Args,
    Data,
    Parser,
    add_executor,
    add_run,
    add_settings,
    add_trust,
    find_run,
    obey_trust,
)
from rlx.hosts.cli.format import in_brackets
from rlx.hosts.cli.output import labelled, say
from rlx.launch import launch
from rlx.runs import project
from rlx.runs.job_folder import LOCAL
from rlx.runs.run import Run
from rlx.runs.status import COMPLETED, RUNNING


def arguments(parser: Parser) -> None:
    add_run(parser)
    parser.add_argument("--fork", action="store_true", help="continue in a new run that names this one as its origin")
    add_settings(parser, of="the config (with --fork)")
    parser.add_argument("--prove", action="store_true", help="train from one checkpoint to the next again and compare")
    add_executor(parser)
    parser.add_argument("--detach", action="store_true", help="return at once")
    add_trust(parser)


def run(args: Args) -> Data:
    from rlx.launch.branch_run import branch_run

    obey_trust(args)
    run = find_run(args.run)
    if args.prove:
        return _prove(run)
    if args.set and not args.fork:
        raise UsageError("-s changes the experiment", hint=f"rlx resume {run.name} --fork -s {args.set[0]}")
    started = branch_run(run, overrides=args.set) if args.fork else _resume(run)
    say(f"{started.name}: resuming seeds {', '.join(str(seed.number) for seed in started.seeds)}{_place(started)}")
    if args.detach:
        return {**_resuming(attach.outcome(started)), "resumed": {}}
    ended = attach.attach(started)
    labels = {seed.number: label for seed in ended.seeds if (label := _label(seed.events))}
    return {**attach.outcome(ended), "resumed": labels}


def _place(run: Run) -> str:
    """Name the executor, if it is not this machine."""
    executor = launch.executor_for(run)
    if executor == LOCAL:
        return ""
    return f" on {executor} (to train here: --executor {LOCAL})"


def _resuming(data: Data) -> Data:
    """Describe a run whose supervisor has just started: how its seeds ended before no longer counts."""
    seeds = [row if row["state"] in (COMPLETED, RUNNING) else {**row, "state": "resuming", "reason": ""}
             for row in data["seeds"]]  # fmt: skip
    return {**data, "seeds": seeds}


def _resume(run: Run) -> Run:
    from rlx.compare.code_version import CurrentCode

    changes = CurrentCode(project.root()).changes(run)
    if changes:
        say(f"note: {', '.join(changes)} changed since; the seeds of {run.name} are no longer replicates of each other")
    return launch.resume(run, notice=say)


def _prove(run: Run) -> Data:
    from rlx.launch.prove_resume import prove

    say("training a stretch without an interruption, and again with one …")
    proof = prove(run, run.seeds[0])
    is_broken = proof["label"] == "exact" and not proof["is_equal"]
    return {"run": run.name, "proof": proof, "exit_code": 6 * is_broken}


def _label(events: list[Data]) -> str:
    for event in reversed(events):
        if event.get("event") == "resumed":
            return f"{event.get('label')} from step {event['step']:,}{in_brackets(event.get('missing'))}"
    return ""


def render(data: Data) -> str:
    if "proof" in data:
        return _proof(data["proof"])
    resumes = [f"seed {seed}: resumed {label}" for seed, label in data["resumed"].items()]
    return "\n".join([*resumes, attach.render(data)])


def _proof(proof: Data) -> str:
    stretch = f"steps {proof['from']:,} → {proof['to']:,}, with an interruption at {proof['break']:,}"
    result = "every weight and optimizer value is equal"
    if not proof["is_equal"]:
        result = f"differs: {proof['difference']}"
    label = proof["label"] + in_brackets(proof["missing"])
    return labelled({f"seed {proof['seed']}": f"{stretch}: {result}", "label": label})
