"""Run a lab: an agent works on two files for hours, and a study decides what counts.

A person writes the mission (program.md), the evaluator and the rules (lab.yaml), and approves them. An agent may change
only candidate/env.py and candidate/train.py. Every attempt is one row.

Example: rlx lab new hop --env CartPole-v1
         rlx lab approve
         rlx lab brief
         rlx lab try --description "a larger learning rate" --predicts 20
         rlx lab run --agent claude --until 07:00
"""

from rlx.hosts.cli.subcommands import Subcommands

_SUBCOMMANDS = Subcommands(__name__, {
    "new": "write a lab: mission, candidate, evaluator, rules and study",
    "approve": "approve the lab as its files are now",
    "brief": "print everything an agent needs, in at most 8 kB",
    "try": "try what the two files change, at the current rung",
    "climb": "go to the next rung and run both sides again there",
    "lesson": "record what an attempt taught, with its evidence",
    "show": "show the tree of ideas, one attempt, or two attempts of one rung",
    "run": "drive the lab: a fresh agent session per iteration",
    "resume": "go on with the last drive after a reboot, a kill or a stop",
    "status": "print where the lab and its driver stand",
    "stop": "ask the driver to stop",
    "log": "print every attempt, one row each",
    "report": "write the morning page",
})  # fmt: skip
arguments = _SUBCOMMANDS.arguments
run = _SUBCOMMANDS.run
render = _SUBCOMMANDS.render
