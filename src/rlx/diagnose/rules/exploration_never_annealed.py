"""The policy still acts at random when training ends."""

from __future__ import annotations

from rlx.diagnose.rule import LATE, Change, Limit, Rule, any_of

EPSILON = Limit("train/exploration_rate", above=0.3, strong=0.5, statistic="last")
ENTROPY = Limit("train/entropy_share", above=0.97, part=LATE)
BONUS = Limit("train/ent_coef", above=1.0, part=LATE, per="reward/mean_abs")

RULE = Rule(
    id="exploration_never_annealed",
    kind="cause",
    severity="high",
    says="it still explores as at the start",
    look=any_of(EPSILON, ENTROPY, BONUS),
    limits=(EPSILON, ENTROPY, BONUS),
    needs=("train/exploration_rate|train/entropy_share|train/ent_coef",),
    source="Mnih et al. 2015 (ε ends at .05 to .1); entropy that does not fall: Jones, Debugging RL",
    cannot_see="noise that the environment adds itself",
    tries=("anneal earlier: algo.exploration_fraction 0.1, exploration_final 0.05", "lower algo.entropy_coef"),
    changes=(
        Change("algo.exploration_fraction", to=0.1),
        Change("algo.exploration_final", to=0.05),
        Change("algo.entropy_coef", times=0.1),
    ),
)
