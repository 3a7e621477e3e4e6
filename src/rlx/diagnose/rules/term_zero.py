"""A reward term that was never paid."""

from collections.abc import Iterator

from rlx.diagnose.finding import Evidence
from rlx.diagnose.reward_terms.term_stats import is_solved
from rlx.diagnose.rule import Sighting
from rlx.diagnose.run_case import TERMS, RunCase
from rlx.diagnose.run_rule import RunRule


def look(case: RunCase) -> Iterator[Sighting]:
    """Find each term that was zero in every step on every seed, if the task is not learned."""
    history = case.reward_history
    if all(seed.task is None or is_solved(seed, history.metric) for seed in history.seeds):
        return
    for term in dict.fromkeys(name for seed in history.seeds for name in seed.size):
        series = [seed.size[term].values for seed in history.seeds if term in seed.size]
        if all(len(values) and not values.any() for values in series):
            tries = (f"make `{term}` reachable (an easier start, shaping towards it), or drop it",)
            evidence = Evidence(f"largest size of {term}", 0.0)
            yield Sighting((evidence,), f"`{term}` was zero in every step of training", tries=tries, term=term)


RULE = RunRule(
    id="term_zero",
    severity="low",
    summary="a reward term was never paid",
    look=look,
    needs=(TERMS,),
    source="a term that is never paid teaches nothing",
    cannot_see="whether the term can be reached at all",
)
