"""Describe an RL problem in one typed file, spec.yaml, and keep it true to the environment.

`rlx check spec` compares every section with the real environment.

Example: rlx spec new --env CartPole-v1
         rlx spec status
         rlx spec config --write configs/cartpole.yaml
"""

from rlx.hosts.cli.subcommands import Subcommands

_SUBCOMMANDS = Subcommands(__name__, {
    "new": "measure an environment and write spec.yaml",
    "status": "show the steps of the five workflows and the next one",
    "config": "print or write the config that follows from a spec",
})  # fmt: skip
arguments = _SUBCOMMANDS.arguments
run = _SUBCOMMANDS.run
render = _SUBCOMMANDS.render
