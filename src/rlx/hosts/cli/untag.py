"""Remove tags from a run, or from every run that a pattern matches.

Example: rlx untag cartpole_ppo_001 paper
"""

from rlx.hosts.cli.arguments import Args, Data, for_each_run
from rlx.hosts.cli.tag import arguments as arguments
from rlx.hosts.cli.tag import render as render
from rlx.hosts.cli.tag import tags_of


def run(args: Args) -> Data:
    from rlx.runs import store

    return for_each_run(args.run, lambda run: tags_of(store.untag(run, *args.tags)))
