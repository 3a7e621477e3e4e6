"""A discount that does not see as far as an episode lasts."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import LATE, Change, Limit, Rule, by_seed, evidence

SEEN = Limit("rollout/length_mean", above=33.0, strong=60.0, part=LATE, over="steps the discount sees: 1 / (1 − γ)")


BLIND, SEEN_BLINDLY = 0.5, 5.0
"""Below any tuned config's γ far shorter episodes will do, where returns are bad."""


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return how many times longer than the discount sees an episode lasts."""
    gamma, length = case.setting("algo.gamma"), SEEN.measure(seed, case)
    if not isinstance(gamma, (int, float)) or gamma >= 1 or not length:
        return None
    times = length * (1 - gamma)
    is_blind = gamma < BLIND and times > SEEN_BLINDLY and case.is_harmed(seed)
    return evidence(SEEN, seed, times) if is_blind else SEEN.judge(times, seed, case)


RULE = Rule(
    id="short_sighted",
    kind="cause",
    severity="medium",
    says="the discount sees only a small part of an episode",
    look=by_seed(see),
    limits=(SEEN,),
    needs=("rollout/length_mean",),
    source="γ ≈ 1 − 1 / horizon; RL Baselines3 Zoo's episodes last up to 20 times as long as γ sees",
    cannot_see="tasks in which only the next steps matter; below 60 times it speaks only where returns are bad",
    tries=("raise algo.gamma to 0.99",),
    changes=(Change("algo.gamma", to=0.99),),
)
