"""Run a study: one campaign on a task, under a contract that a person approves and that code enforces.

new · show · amend · rehearse · approve · baseline · queue · loop · log · report · verify · audit · revert · use. In
between, the loop itself: rlx next, propose, check candidate, launch, wait, verdict, decide.

Example: rlx study new faster --config configs/cartpole.yaml
         rlx study rehearse
         rlx study approve
         rlx study baseline
         rlx study report
"""

from __future__ import annotations

from rlx.hosts.cli.verbs import Verbs

_VERBS = Verbs(
    __name__,
    {
        "new": "write a contract, pre-filled: eight points to confirm",
        "use": "make a study the one that commands mean",
        "show": "show the contract's eight points, settled or not",
        "amend": "change the contract; voids its approval",
        "rehearse": "walk the whole path once with a candidate that changes nothing",
        "approve": "approve the contract as it is, byte for byte",
        "baseline": "train and measure the seeds that candidates are compared with",
        "queue": "list, add and work off jobs that wait",
        "loop": "do what is next until a person is needed",
        "log": "list what was tried: commit, budget, seeds, score, status, description",
        "report": "write the report, with a picture, negative results included",
        "verify": "recompute every number from raw episodes and hashes",
        "audit": "prove the ledger's chain; anchor its head in git",
        "revert": "take a candidate back that advanced or was confirmed",
    },
)
arguments, run, render = _VERBS.arguments, _VERBS.run, _VERBS.render
