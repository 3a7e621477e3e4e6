"""Some seeds learn, others do not."""

from collections.abc import Iterator

from rlx.compare.seed_noise import FAILING
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Sighting
from rlx.diagnose.run_case import RunCase
from rlx.diagnose.run_rule import Advice, RunRule
from rlx.diagnose.seed_outcomes import STUCK, seed_outcomes
from rlx.number_format import figure

FEWEST_SEEDS = 3
SEVERAL = 2  # one seed among many may be bad luck
SHARE = 0.4  # of the seeds


def look(case: RunCase) -> Iterator[Sighting]:
    """Find the seeds that gain less than half, or less than a quarter, of what the best seed gains."""
    outcomes = seed_outcomes(case)
    count = len(outcomes.scores)
    if count < FEWEST_SEEDS:
        return
    limit = STUCK
    lower = outcomes.stuck
    if len(lower) < SEVERAL and len(outcomes.failing) >= max(SEVERAL, SHARE * count):
        limit = FAILING
        lower = outcomes.failing
    if not lower:
        return
    upper = tuple(seed for seed in outcomes.scores if seed not in lower)
    means = [sum(outcomes.scores[seed] for seed in seeds) / len(seeds) for seeds in (lower, upper)]
    evidence = (
        Evidence(f"mean final {outcomes.metric} of the lower seeds", means[0], seeds=lower),
        Evidence(f"mean final {outcomes.metric} of the other seeds", means[1], seeds=upper),
    )
    names = ", ".join(map(str, sorted(lower)))
    share = {STUCK: "a quarter", FAILING: "half"}[limit]
    claim = (
        f"{len(lower)} of {count} seeds (seed {names}) gain less than {share} of the best: {outcomes.metric} "
        f"{figure(means[0])}, the others {figure(means[1])}"
    )
    is_behind = limit == FAILING and all(case.shapes[seed].answer == "still rising" for seed in lower)
    if is_behind:
        claim += "; they still rise, and may catch up"
    is_remark = is_behind or len(lower) < SEVERAL
    yield Sighting(evidence, claim, "low" if is_remark else None)


RULE = RunRule(
    id="seeds_disagree",
    kind="symptom",
    severity="medium",
    summary="some seeds learn, others do not",
    look=look,
    source="the rule of `rlx noise`: less than half of the best seed's gain; one such seed is a remark",
    cannot_see="two groups among fewer than three seeds",
    advice=(
        "report the share of seeds that succeed, not the mean",
        Advice("train more seeds before you change anything", "train --more {run} --seeds 5"),
        "explore more at the start",
    ),
)
