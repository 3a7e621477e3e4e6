"""One reward term drowns the others."""

import math
from collections.abc import Iterator

import numpy as np

from rlx.diagnose.finding import Evidence
from rlx.diagnose.reward_terms.term_stats import DOMINATION, is_penalty, is_solved, mean_shares, task_correlation
from rlx.diagnose.rule import Sighting
from rlx.diagnose.run_case import TERMS, RunCase
from rlx.diagnose.run_rule import LATE, Advice, Limit, RunRule
from rlx.number_format import signed

SHARE = Limit("reward/term_abs/*", above=DOMINATION, part=LATE, over="all terms together")


def look(case: RunCase) -> Iterator[Sighting]:
    """Find a term that is most of |reward| at the end and either does not go with the task, or comes with bad returns.

    If the returns are fine, the term must be most of |reward| over the whole run, and it must be a bonus: a large
    penalty that shrinks is the reward at work.
    """
    history = case.reward_history
    shares = mean_shares(history.seeds)
    for term, share in mean_shares(history.seeds, is_late=True).items():
        if not SHARE.is_crossed(share):
            continue
        correlations = [task_correlation(seed, term, history.metric) for seed in history.seeds]
        known = [value for value in correlations if value is not None]
        correlation = float(np.median(known)) if known else math.inf
        is_solved_everywhere = all(is_solved(seed, history.metric) for seed in history.seeds)
        harmed = sum(case.is_harmed(case.seed(seed.seed)) for seed in history.seeds)
        evidence = [Evidence(f"share of |reward| of `{term}`", share, SHARE.value)]
        claim = f"`{term}` is {share:.0%} of |reward|"
        is_against_task = correlation <= 0 and not is_solved_everywhere and not is_penalty(history.seeds, term)
        if SHARE.is_crossed(shares[term]) and is_against_task:
            what = f"rank correlation of `{term}` with {history.metric}"
            evidence.append(Evidence(what, correlation, 0.0))
            claim += f" and does not go with {history.metric} (rank correlation {signed(round(correlation, 2))})"
        elif 2 * harmed >= len(history.seeds):
            claim += f", and the returns of {harmed} of {len(history.seeds)} seeds are bad"
        else:
            continue
        tries = [f"scale `{term}` down until no term is more than two thirds of |reward|"]
        if not is_penalty(history.seeds, term):
            tries.append(f"drop `{term}`")
        yield Sighting(tuple(evidence), claim, tries=tuple(tries), term=term)


RULE = RunRule(
    id="term_domination",
    severity="medium",
    summary="one reward term drowns the others",
    look=look,
    limits=(SHARE,),
    needs=(TERMS,),
    source="Ma et al. 2023 (Eureka, tip 3); 80 % of |reward|",
    cannot_see="whether the large term is the task itself, so the task metric or the returns must be bad too",
    advice=(Advice("see what each term paid", "reflect {run}", "reward terms"),),
)
