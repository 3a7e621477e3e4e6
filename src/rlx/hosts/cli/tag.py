"""Tag a run, or every run that a pattern matches.

Example: rlx tag cartpole_ppo_001 baseline paper
         rlx tag 'cartpole_*' paper
"""

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, add_runs, for_each_run, render_each
from rlx.runs.run import Run


def arguments(parser: Parser) -> None:
    add_runs(parser)
    parser.add_argument("tags", nargs="+", metavar="TAG", help="one or more tags")


def run(args: Args) -> Data:
    from rlx.runs import store

    for tag in args.tags:
        if not tag.strip() or not tag.isprintable():
            raise UsageError(f"{tag!r} is not a tag", hint="a tag is one or more words on one line")
    return for_each_run(args.run, lambda run: tags_of(store.tag(run, *args.tags)))


def tags_of(run: Run) -> Data:
    """Return the tags of a run."""
    return {"run": run.name, "tags": list(run.tags)}


def render(data: Data) -> str:
    return render_each(lambda row: f"{row['run']}: {' '.join(row['tags']) or 'no tags'}", data, between="\n")
