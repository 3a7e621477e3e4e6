"""A reward term that has reached its bound and tells good from better no more."""

from __future__ import annotations

from rlx.diagnose.case import NOTHING, RETURN, Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Rule, by_seed
from rlx.diagnose.terms import SATURATED_POINTS, SATURATION, SeedTerms, is_stuck

PREFIX = "reward/term/"
SUCCESS = "rollout/success_rate"


def see(seed: SeedCase, case: Case) -> list[Evidence]:
    """Return the terms at their bound while the task, not learned yet, stands still."""
    per_step = {name.removeprefix(PREFIX): series for name, series in seed.series.items() if name.startswith(PREFIX)}
    returns, task = seed.series.get(RETURN, NOTHING), seed.series.get(SUCCESS)
    terms = SeedTerms(seed.seed, per_step, {}, {}, returns, task)
    last = f"per step at its bound for the last {SATURATED_POINTS}0 % of the run"
    return [
        Evidence(f"`{name}` {last}", float(series.values[-1]), SATURATION)
        for name, series in per_step.items()
        if is_stuck(terms, name, "success_rate")
    ]


RULE = Rule(
    id="term_saturation",
    kind="cause",
    severity="low",
    says="a reward term has nothing more to tell",
    look=by_seed(see),
    needs=(f"{PREFIX}*", SUCCESS),
    source="Ma et al. 2023 (Eureka, tip 2), within a hundredth of the term's range; as rlx reflect judges it",
    cannot_see="tasks without a measure of success: set info['is_success']",
    tries=("rescale the term so that it still tells good from better", "see how the terms went: rlx reflect RUN"),
)
