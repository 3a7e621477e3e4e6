"""The question that a comparison asks: which score, and whether the budgets may differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Evidence = Literal["measured", "reported"]
"""Who made a score: rlx measured the policy, or the training itself logged a number."""


@dataclass(frozen=True)
class ComparisonQuestion:
    """By default: which run's final policies score higher, at equal budgets?

    With `metric`, the score of a seed is the last value of that metric that its training logged. With
    `budgets_may_differ`, the budget is part of the question: does training longer help? With `is_reuse`, seeds of one
    config count together although the code changed in between: the user says that the change does not matter.
    """

    metric: str | None = None
    is_lower_better: bool = False
    budgets_may_differ: bool = False
    is_reuse: bool = False

    @property
    def score_name(self) -> str:
        """The name of the logged score; a minus marks a metric that counts negated, because lower is better."""
        return f"-{self.metric}" if self.is_lower_better else str(self.metric)

    @property
    def fingerprint(self) -> str:
        """The name that stands for the protocol of a logged score."""
        return f"reported:{self.score_name}"

    @property
    def options(self) -> str:
        """The options of `rlx compare` and `rlx settle` that ask this question."""
        text = ""
        if self.metric is not None:
            text += f" --metric {self.metric}"
            if self.is_lower_better:
                text += ":lower"
        if self.budgets_may_differ:
            text += " --budget-question"
        if self.is_reuse:
            text += " --reuse"
        return text


STANDARD = ComparisonQuestion()
"""Which run's final policies score higher, at equal budgets?"""
