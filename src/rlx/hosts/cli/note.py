"""Write a note on a run, or on every run that a pattern matches.

It replaces the note before it; an empty text removes it.

Example: rlx note cartpole_ppo_001 "clip range 0.1 was too small"
"""

from rlx.hosts.cli.arguments import Args, Data, Parser, add_runs, for_each_run, render_each
from rlx.runs.run import Run


def arguments(parser: Parser) -> None:
    add_runs(parser)
    parser.add_argument("text", nargs="+", help="the text of the note")


def run(args: Args) -> Data:
    from rlx.runs import store

    text = " ".join(args.text).strip()
    return for_each_run(args.run, lambda run: _note(store.note(run, text)))


def _note(run: Run) -> Data:
    return {"run": run.name, "note": run.note}


def render(data: Data) -> str:
    return render_each(lambda row: f"{row['run']}: {row['note'] or 'no note'}", data, between="\n")
