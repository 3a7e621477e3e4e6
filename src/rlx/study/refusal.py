"""A refusal: a stable code, a message for people, and the command that fixes it.

Code reads `code`, `point` and `fix`; nothing reads the message.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlx.command import Command

LAUNCH_CODES = {
    "LEDGER": "the ledger has rows that are not legal moves",
    "STOPPED": "the study has stopped, or a stop rule ended the search",
    "ESCALATED": "the study waits for a person",
    "BLOCKED": "a point of the contract is not settled",
    "NOT_APPROVED": "the contract has no approval",
    "APPROVAL_VOID": "the contract changed after it was approved",
    "APPROVAL_EXPIRED": "the approval has expired",
    "APPROVAL_LEVEL": "the approval is weaker than the contract requires",
    "APPROVAL": "the approval is not valid",
    "UNATTENDED": "the contract does not allow jobs without a person",
    "REHEARSAL": "a rehearsal before the approval would take too long",
    "TASK_STALE": "the task no longer matches the repository",
    "CANDIDATE": "the candidate is unknown or has a problem",
    "DUPLICATE": "another candidate has made the same change on the same head",
    "NO_CHANGE": "the candidate changes nothing",
    "SEED_ONLY": "only a seed changes: another replicate is not a candidate",
    "RECORD_MISSING": "the kind of change needs a record that is missing",
    "KIND": "the change is of another kind than the candidate says",
    "KEY": "there is no such config key",
    "VALUE": "a value is not valid for its key",
    "SIZE": "the change is larger than one bounded change may be",
    "SCOPE": "the change touches something that the contract does not allow",
    "PLAN": "the code or config differs from the checked one",
    "STATE": "the candidate is in the wrong state",
    "PHASE": "the study is not at this point",
    "CLAIMS": "all claims of the contract are used",
    "SEEDS_RANGE": "a training seed does not belong to this phase",
    "SEEDS_USED": "a training seed was already used",
    "RESERVE": "the job reserves less than it needs",
    "BUDGET_SEEDS": "the training seeds are used up",
    "BUDGET_HOURS": "the hours are used up",
    "BUDGET_CANDIDATES": "the candidates are used up",
    "DEADLINE": "the contract's time is over",
    "PARALLEL": "as many seeds train as the contract allows",
    "CORES": "too few cores are free",
    "GPUS": "too few GPUs are free",
    "MEMORY": "too little memory is free",
    "DISK": "too little disk is free",
    "SANDBOX": "the required sandbox is not available",
}
"""What can refuse a launch, in the order in which rlx reports it."""
OTHER_CODES = {
    "UNCHANGED": "the candidate failed and nothing has changed since",
    "PATCH": "the patch does not apply to the candidate's worktree",
    "WITHDRAW": "the candidate has been tried, so it cannot be withdrawn",
    "EVIDENCE": "the evidence is invalid, so the candidate goes to debug or, as a claimed head, is rejected",
    "SETTLED": "the idea was tried before, and its result stands",
    "EVALUATOR": "the candidate's environment fails a check of the lab's evaluator, or its code imports the evaluator",
    "SESSION": "an agent's session ended without an attempt",
    "LESSON": "a lesson contradicts the evidence that it names",
    "RUNG": "scores of different rungs are not comparable, or the lab is at another rung",
    "MEASURED": "the contract changes the metric or evaluation although scores exist",
}
"""What can refuse another command than a launch."""
CODES = {**LAUNCH_CODES, **OTHER_CODES}
FINAL_CODES = frozenset({"CANDIDATE", "DUPLICATE", "NO_CHANGE", "SEED_ONLY", "RECORD_MISSING", "KIND", "KEY",
                         "VALUE", "SIZE", "SCOPE", "PLAN", "STATE", "PHASE", "CLAIMS", "SEEDS_RANGE", "SEEDS_USED",
                         "RESERVE", "BUDGET_SEEDS", "BUDGET_HOURS", "BUDGET_CANDIDATES", "DEADLINE"})  # fmt: skip
"""The codes that refuse a job for good. A person can lift the others, or they pass when other jobs end."""


@dataclass(frozen=True)
class Refusal:
    """Why rlx refuses something, and the command that fixes it, if there is one."""

    code: str
    message: str
    fix: Command | None = None
    point: str = ""
    """The point of the contract that is not settled, if that is the reason."""

    @property
    def hint(self) -> str:
        """The fix as it is typed; empty if there is none."""
        return str(self.fix or "")

    def document(self) -> dict[str, str]:
        """Return this as JSON-able data."""
        return {"code": self.code, "says": self.message, "hint": self.hint}
