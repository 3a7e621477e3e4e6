"""Run a study: a campaign on a task, under a contract that a person approves and rlx enforces.

Between `baseline` and `report`, these commands run the search: rlx next, propose, check candidate, launch, wait,
verdict, decide.

Example: rlx study new faster --config configs/cartpole.yaml
         rlx study rehearse
         rlx study approve
         rlx study baseline
         rlx study report
"""

from rlx.hosts.cli.subcommands import Subcommands

_SUBCOMMANDS = Subcommands(__name__, {
    "new": "write a pre-filled contract with eight points to confirm",
    "use": "make a study the active one",
    "show": "show the contract's eight points, settled or open",
    "amend": "change the contract; this voids its approval",
    "rehearse": "try the whole path once with a candidate that changes nothing",
    "approve": "approve the contract, byte for byte",
    "baseline": "train and measure the seeds that candidates are compared with",
    "queue": "list, add and run waiting jobs",
    "loop": "take the next step again and again until a person is needed",
    "log": "list all candidates: commit, budget, seeds, score, status, description",
    "report": "write the report with a picture, including negative results",
    "verify": "recompute every number from raw episodes and hashes",
    "audit": "verify the ledger's hash chain; anchor its head in git",
    "revert": "withdraw a candidate that advanced or was confirmed",
})  # fmt: skip
arguments = _SUBCOMMANDS.arguments
run = _SUBCOMMANDS.run
render = _SUBCOMMANDS.render
