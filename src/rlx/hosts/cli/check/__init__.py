"""Check an environment, a spec, a candidate of a study, or a contract before you rely on it.

Example: rlx check env CartPole-v1
         rlx check spec spec.yaml
         rlx check candidate c001
         rlx check contract
"""

from rlx.hosts.cli.subcommands import Subcommands

_SUBCOMMANDS = Subcommands(__name__, {
    "env": "play an environment and list its defects",
    "spec": "check a spec against the real environment",
    "candidate": "check a candidate's real diff and print the plan hash that launch needs",
    "contract": "list the open points of a contract and what its budget can detect",
})  # fmt: skip
arguments = _SUBCOMMANDS.arguments
run = _SUBCOMMANDS.run
render = _SUBCOMMANDS.render
