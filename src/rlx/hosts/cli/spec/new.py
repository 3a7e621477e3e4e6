"""Measure an environment and write spec.yaml: spaces, step cost, horizon, reward, algorithm and architecture.

Example: rlx spec new --env CartPole-v1
         rlx spec new --env envs/boss.py:BossFight --task 'beat the boss' -o specs/boss.yaml
"""

from __future__ import annotations

import shlex
from pathlib import Path

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, env_name
from rlx.hosts.cli.format import timespan
from rlx.hosts.cli.output import labelled


def arguments(parser: Parser) -> None:
    parser.add_argument("--env", required=True, metavar="ENV", help="an id, module:Class or file.py:Class")
    parser.add_argument("--task", default="", metavar="TEXT", help="one sentence; its words select cards")
    parser.add_argument("--seconds", default="3", metavar="TIME", help="play at most this long (default: %(default)s)")
    parser.add_argument("-o", "--out", type=Path, default=Path("spec.yaml"), metavar="FILE", help="default: spec.yaml")


def run(args: Args) -> Data:
    from rlx import files
    from rlx.config.schema import Env
    from rlx.design.problem_spec import dump_spec, refuse_existing
    from rlx.design.spec_draft import draft_spec
    from rlx.runs import project

    refuse_existing(args.out)
    seconds = timespan(args.seconds)
    if seconds <= 0:
        raise UsageError(f"--seconds {args.seconds}: must be above 0", hint="--seconds 3")
    spec = draft_spec(Env(id=env_name(args.env)), root=project.tree(), task=args.task, seconds=seconds)
    text = dump_spec(
        spec, head=f"Measured on {args.env} by rlx spec new. Change the plan; `rlx check spec` compares it."
    )
    args.out.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomic(args.out, text.encode())
    if ":" in args.env:  # whoever names code and plans with it may play it again: `rlx check spec` does
        project.mark_own(project.root())
    return {
        "spec": str(args.out),
        "env": args.env,
        "algorithm": spec.strategy.algorithm,
        "horizon": spec.mdp.horizon,
        "document": spec.model_dump(mode="json", by_alias=True, exclude_none=True),
        "next": f"rlx check spec {shlex.quote(str(args.out))}",
    }


def render(data: Data) -> str:
    why = data["document"]["strategy"]["because"]
    return labelled({
        "wrote": data["spec"],
        "algorithm": f"{data['algorithm']} ({why})",
        "horizon": data["horizon"] or "not known: no episode ended in play (--seconds 60 plays longer)",
        "next": data["next"],
    })  # fmt: skip
