"""Check what a training or a study stands on: an environment, a candidate, a contract.

Example: rlx check env CartPole-v1
         rlx check candidate c001
         rlx check contract
"""

from __future__ import annotations

from rlx.hosts.cli.verbs import Verbs

_VERBS = Verbs(__name__, {
    "env": "play an environment and say what is wrong with it",
    "candidate": "check a study's candidate on its real diff; its hash is what may be launched",
    "contract": "say which of a contract's points are open, and what its budget affords",
})  # fmt: skip
arguments, run, render = _VERBS.arguments, _VERBS.run, _VERBS.render
