"""The policy still acts at random when training ends."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import LATE, Change, Limit, Rule, by_seed

EPSILON = Limit("train/exploration_rate", above=0.3, strong=0.5, statistic="last")
ENTROPY = Limit("train/entropy_share", above=0.97, part=LATE)
WIDTH = Limit("train/std", above=1.5, strong=3.0, part=LATE, over="its first value")
BONUS = Limit("train/ent_coef", above=1.0, part=LATE, per="reward/mean_abs")


def see(seed: SeedCase, case: Case) -> list[Evidence]:
    """Return a rate, an entropy or a bonus that stays high; an entropy that nothing keeps up is only a symptom."""
    limits = [EPSILON, BONUS, *([ENTROPY] if case.setting("algo.entropy_coef") else [])]
    late, widths = WIDTH.measure(seed, case), seed.values("train/std")
    width = WIDTH.judge(late / float(widths[0]), seed, case) if late is not None and widths[0] > 0 else None
    return [found for found in (*(limit.see(seed, case) for limit in limits), width) if found]


RULE = Rule(
    id="exploration_never_annealed",
    kind="cause",
    severity="high",
    says="it still explores as at the start",
    look=by_seed(see),
    limits=(EPSILON, ENTROPY, WIDTH, BONUS),
    needs=("train/exploration_rate|train/entropy_share|train/std|train/ent_coef",),
    source="Mnih et al. 2015 (ε ends at .05 to .1); entropy that does not fall: Jones, Debugging RL",
    cannot_see="noise that the environment adds itself",
    tries=("anneal earlier: algo.exploration_fraction 0.1, exploration_final 0.05", "lower algo.entropy_coef"),
    changes=(
        Change("algo.exploration_fraction", to=0.1),
        Change("algo.exploration_final", to=0.05),
        Change("algo.entropy_coef", times=0.1),
    ),
)
