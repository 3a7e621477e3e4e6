"""Train and measure the seeds that every candidate is compared with, and print how noisy they are.

Example: rlx study baseline
         rlx study baseline --executor slurm
"""

from rlx.errors import Interrupted
from rlx.hosts.cli.arguments import Args, Data, Parser, add_executor, add_study, find_study
from rlx.hosts.cli.format import figure
from rlx.hosts.cli.output import labelled, say


def arguments(parser: Parser) -> None:
    add_study(parser)
    add_executor(parser)


def run(args: Args) -> Data:
    from rlx.hosts.cli import attach
    from rlx.hosts.cli.progress import follow
    from rlx.loop.study.baseline import fill

    attach.hear_signals()
    try:
        return fill(find_study(args.study), say=say, follow=follow)
    except KeyboardInterrupt:
        raise Interrupted("rlx stopped waiting; the training continues", hint="rlx next") from None


def render(data: Data) -> str:
    detectable = ""
    if data["finds"] and not data["warnings"]:
        seeds, effect = next(iter(data["finds"].items()))
        detectable = f"{figure(effect)} with {seeds} seeds per side"
    score = f"{data['metric']} {figure(data['mean'])} ± {figure(data['sd'])}"
    return labelled({
        "baseline": f"{score} over {data['n']} seeds ({data['level']})",
        "seeds": ", ".join(figure(score) for score in data["seeds"].values()),
        "warning": data["warnings"],
        "smallest difference found 4 times in 5": detectable,
        "next": data["command"],
    })  # fmt: skip
