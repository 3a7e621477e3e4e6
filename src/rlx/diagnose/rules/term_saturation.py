"""A reward term that has reached its bound and no longer separates good from better."""

from collections.abc import Iterator

from rlx.diagnose.finding import Evidence
from rlx.diagnose.reward_terms.proxy_divergence import end_level, known_part
from rlx.diagnose.reward_terms.term_stats import SATURATED_POINTS, WORTH, find_hack, is_stuck, mean_shares
from rlx.diagnose.rule import Sighting
from rlx.diagnose.run_case import SUCCESS, TERMS, RunCase
from rlx.diagnose.run_rule import Advice, RunRule
from rlx.number_format import figure


def look(case: RunCase) -> Iterator[Sighting]:
    """Find terms that matter and stay at their bound while the task metric stands still, on most seeds."""
    history = case.reward_history
    hacks = [find_hack(seed, history.metric) for seed in history.seeds]
    farmed = [hack.term for hack in hacks if hack]
    shares = mean_shares(history.seeds)
    for term in history.names:
        stuck = [seed for seed in history.seeds if term in seed.per_step and is_stuck(seed, term, history.metric)]
        if term in farmed or 2 * len(stuck) <= len(history.seeds) or shares.get(term, 1.0) < WORTH:
            continue
        level = end_level(known_part(stuck[0].points(stuck[0].per_step[term])))
        late = f"the last {SATURATED_POINTS}0% of training"
        claim = f"`{term}` stays at {figure(level)} per step for {late}, and {history.metric} does not move either"
        evidence = Evidence(f"{term} per step", level, seeds=tuple(seed.seed for seed in stuck))
        yield Sighting(
            (evidence,), claim, tries=(f"rescale `{term}` so that it separates good from better, or drop it",)
        )


RULE = RunRule(
    id="term_saturation",
    severity="low",
    summary="a reward term stays at its bound",
    look=look,
    needs=(TERMS, f"{SUCCESS}|evaluations"),
    source="Ma et al. 2023 (Eureka, tip 2), within a hundredth of the term's range",
    cannot_see="tasks without a measure of success: set info['is_success']",
    advice=(Advice("see what each term paid", "reflect {run}", "reward terms"),),
)
