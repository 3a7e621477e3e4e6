"""Print the config that follows from a spec, or write it. rlx never overwrites a file.

Example: rlx spec config
         rlx spec config spec.yaml --write configs/cartpole.yaml
"""

from __future__ import annotations

import shlex
from pathlib import Path

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser


def arguments(parser: Parser) -> None:
    parser.add_argument("spec", nargs="?", type=Path, default=Path("spec.yaml"), metavar="SPEC", help="spec.yaml")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the config to this file")


def run(args: Args) -> Data:
    from rlx import files
    from rlx.config.load import dump_data, parse
    from rlx.design.problem_spec import read_spec
    from rlx.design.spec_draft import config_name, experiment_data

    spec = read_spec(args.spec)
    config = experiment_data(spec)
    parse(config, source=str(args.spec))
    text = f"# From {args.spec.name}: {spec.strategy.because or spec.strategy.algorithm}\n{dump_data(config)}"
    command = f"rlx spec config {shlex.quote(str(args.spec))} --write configs/{config_name(spec)}.yaml"
    if args.write is not None:
        if args.write.exists():
            hint = "name another file with --write"
            raise UsageError(f"`{args.write}` already exists, and rlx does not overwrite it", hint=hint)
        args.write.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomic(args.write, text.encode())
        command = f"rlx train {shlex.quote(str(args.write))} --seeds {spec.evaluation.training_seeds}"
    written = str(args.write) if args.write else None
    return {"spec": str(args.spec), "config": config, "text": text, "written": written, "next": command}


def render(data: Data) -> str:
    if data["written"]:
        return f"wrote: {data['written']}\nnext: {data['next']}"
    return f"{data['text']}next: {data['next']}"
