"""A reward term that never changes."""

from collections.abc import Iterator

from rlx.diagnose.finding import Evidence
from rlx.diagnose.reward_terms.term_stats import SATURATION
from rlx.diagnose.rule import Sighting
from rlx.diagnose.run_case import TERMS, RunCase
from rlx.diagnose.run_rule import Advice, Limit, RunRule
from rlx.number_format import figure

SPREAD = Limit(TERMS, below=SATURATION, statistic="spread", over="its size")


def look(case: RunCase) -> Iterator[Sighting]:
    """Find terms that stay within a hundredth of their size, on at least half of the seeds and with bad returns."""
    history = case.reward_history
    harmed = [seed for seed in history.seeds if case.is_harmed(case.seed(seed.seed))]
    constant = {seed.seed: seed.constant_terms() for seed in harmed}
    seeds = tuple(number for number, terms in constant.items() if terms)
    if seeds and 2 * len(seeds) >= len(history.seeds):
        for term in dict.fromkeys(term for terms in constant.values() for term in terms):
            affected = tuple(number for number in seeds if term in constant[number])
            spread = max(constant[number][term] for number in affected)
            evidence = Evidence(f"spread of `{term}` / its size", spread, SPREAD.value, seeds=affected)
            claim = f"`{term}` never changes: its spread is {figure(spread)} of its size (limit {SPREAD.value:g})"
            yield Sighting((evidence,), claim, tries=(f"rescale `{term}`, rewrite it, or drop it",))


RULE = RunRule(
    id="term_constant",
    severity="low",
    summary="a reward term never changes",
    look=look,
    limits=(SPREAD,),
    needs=(TERMS,),
    source="Ma et al. 2023 (Eureka, tip 2: nearly identical values mean that it is not optimised)",
    cannot_see="terms that change within an episode but not between episodes",
    advice=(Advice("see what each term paid", "reflect {run}", "reward terms"),),
)
