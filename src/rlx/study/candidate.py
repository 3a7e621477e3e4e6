"""A candidate: one bounded change with a hypothesis, of one kind, with the records that kind asks for."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from rlx.config.schema import Number, Section, Text

SCHEMA: Literal[1] = 1
BASELINE = "baseline"
"""The candidate that changes nothing: what every study starts from."""
Id = Annotated[str, Field(strict=True, pattern=r"^(c\d{3,}|baseline|rehearsal)$")]
Kind = Literal[
    "hyperparameter",
    "reward tuning",
    "reward engineering",
    "curriculum sampling",
    "curriculum schedule",
    "environment generation",
    "randomisation probe",
    "randomisation tuning",
    "code",
]


class Records(Section):
    """What a kind of change must bring along."""

    reflection: Text | None = None
    reason: Text | None = None
    probe: Text | None = None
    learnability: Text | None = None
    difficulty_bridge: Text | None = None
    diversity: Text | None = None
    held_out_invariant: Text | None = None
    rollback_rule: Text | None = None


class Candidate(Section):
    """One change as `candidates/<id>.json` holds it; a code change lives in the worktree and is kept as a patch.

    `changes` are config keys with their new values, on top of what `builds_on` has; `predicts` is the expected change
    of the primary metric.
    """

    schema_: Literal[1] = Field(SCHEMA, alias="schema")
    id: Id
    kind: Kind
    hypothesis: Text
    predicts: Number | None = None
    builds_on: Id = BASELINE
    changes: dict[str, Any] = Field(default_factory=dict)
    records: Records = Records()
