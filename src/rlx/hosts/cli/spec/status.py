"""Show the steps of the five workflows for a spec, checked against the environment, and the next command.

Example: rlx spec status
         rlx spec status specs/boss.yaml
"""

from __future__ import annotations

from pathlib import Path

from rlx.hosts.cli.arguments import Args, Data, Parser, add_trust, obey_trust
from rlx.hosts.cli.output import table


def arguments(parser: Parser) -> None:
    parser.add_argument("spec", nargs="?", type=Path, default=Path("spec.yaml"), metavar="SPEC", help="spec.yaml")
    add_trust(parser)


def run(args: Args) -> Data:
    from rlx.design.check_spec import check_spec
    from rlx.design.problem_spec import read_playable_spec
    from rlx.design.spec_draft import config_name
    from rlx.design.spec_status import next_command, steps_of
    from rlx.runs import project
    from rlx.runs.run import names

    obey_trust(args)
    spec = read_playable_spec(args.spec, root=project.tree())
    checked = check_spec(spec, root=project.tree())
    name = config_name(spec)
    config = Path("configs") / f"{name}.yaml"
    runs = sorted(run for run in names(project.root()) if run.startswith(f"{name}_"))
    command = next_command(spec, checked, path=args.spec, config=config, runs=runs)
    steps = [step.document() for step in steps_of(spec, checked)]
    return {"spec": str(args.spec), "is_sound": checked.is_sound, "steps": steps, "runs": runs, "next": command}


def render(data: Data) -> str:
    rows = [[step["workflow"], step["section"], step["state"], step["why"]] for step in data["steps"]]
    return f"{table(['workflow', 'section', 'state', 'why'], rows)}\nnext: {data['next']}"
