"""Why something is refused: a code that stays, what is wrong, and the step that mends it."""

from __future__ import annotations

from dataclasses import dataclass

CODES = {
    "LEDGER": "the ledger has rows that are no legal moves",
    "STOPPED": "the study has stopped",
    "ESCALATED": "the study waits for a person",
    "BLOCKED": "a point of the contract is not settled",
    "NOT_APPROVED": "nobody approved the contract",
    "APPROVAL_VOID": "the contract is not the one that was approved",
    "APPROVAL_EXPIRED": "the approval has run out",
    "APPROVAL_LEVEL": "the approval is weaker than the contract asks for",
    "APPROVAL": "the approval does not hold",
    "UNATTENDED": "the contract does not allow jobs without a person",
    "REHEARSAL": "a rehearsal before the approval is too long",
    "TASK_STALE": "the task no longer says what is in the repository",
    "CANDIDATE": "the candidate is unknown, or not one that may run",
    "SCOPE": "the change touches what the contract does not allow",
    "PLAN": "what would run is not what was checked",
    "STATE": "the candidate is not in a state for this",
    "PHASE": "the study is not at the point for this",
    "CLAIMS": "the contract's claims are used up",
    "SEEDS_RANGE": "a training seed is not one for this phase",
    "SEEDS_USED": "a training seed was used before",
    "RESERVE": "the job does not reserve what it may use",
    "BUDGET_SEEDS": "the training seeds are used up",
    "BUDGET_HOURS": "the hours are used up",
    "BUDGET_CANDIDATES": "the candidates are used up",
    "DEADLINE": "the contract's time is over",
    "PARALLEL": "as many seeds train as the contract allows",
    "CORES": "too few cores are free",
    "GPUS": "too few GPUs are free",
    "MEMORY": "too little memory is free",
    "DISK": "too little disk is free",
    "SANDBOX": "the sandbox that the contract requires is not there",
}
"""What can refuse a launch, in the order it is reported."""
OF_THE_JOB = frozenset({"CANDIDATE", "SCOPE", "PLAN", "STATE", "PHASE", "CLAIMS", "SEEDS_RANGE", "SEEDS_USED",
                        "RESERVE", "BUDGET_SEEDS", "BUDGET_HOURS", "BUDGET_CANDIDATES", "DEADLINE"})  # fmt: skip
"""What refuses a job for good; the rest is for a person to lift, or passes when others have ended."""


@dataclass(frozen=True)
class Reason:
    """Why a launch is refused; `code` is stable, `hint` the next step."""

    code: str
    says: str
    hint: str = ""

    def document(self) -> dict[str, str]:
        """Return this as a `refused` row holds it."""
        return {"code": self.code, "says": self.says, "hint": self.hint}
