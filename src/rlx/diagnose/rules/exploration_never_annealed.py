"""The policy still acts at random when training ends."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import LATE, Limit, RunRule, SuggestedChange, by_seed

EPSILON = Limit("train/exploration_rate", above=0.3, strong=0.5, statistic="last")
ENTROPY = Limit("train/entropy_share", above=0.97, part=LATE)
WIDTH = Limit("train/std", above=1.5, strong=3.0, part=LATE, over="its first value")
BONUS = Limit("train/ent_coef", above=1.0, part=LATE, per="reward/mean_abs")


def look_at_seed(seed: SeedCase, case: RunCase) -> list[Evidence | None]:
    """Return a rate, an entropy, a width or a bonus that stays high."""
    evidence = [EPSILON.check(seed, case), BONUS.check(seed, case)]
    if case.setting("algo.entropy_coef"):  # high entropy without a bonus is only a symptom
        evidence.append(ENTROPY.check(seed, case))
    late = WIDTH.measure(seed, case)
    widths = seed.values("train/std")
    if late is not None and widths[0] > 0:
        evidence.append(WIDTH.judge(late / float(widths[0]), seed, case))
    return evidence


RULE = RunRule(
    id="exploration_never_annealed",
    severity="high",
    summary="it still explores as much as at the start",
    look=by_seed(look_at_seed),
    limits=(EPSILON, ENTROPY, WIDTH, BONUS),
    needs=("train/exploration_rate|train/entropy_share|train/std|train/ent_coef",),
    source="Mnih et al. 2015 (ε ends at .05 to .1); entropy that does not fall: Jones, Debugging RL",
    cannot_see="noise that the environment adds itself",
    advice=("anneal earlier: algo.exploration_fraction 0.1, exploration_final 0.05", "lower algo.entropy_coef"),
    changes=(
        SuggestedChange("algo.exploration_fraction", to=0.1),
        SuggestedChange("algo.exploration_final", to=0.05),
        SuggestedChange("algo.entropy_coef", times=0.1),
    ),
)
