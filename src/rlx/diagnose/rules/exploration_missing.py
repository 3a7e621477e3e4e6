"""A Q-learner that never tries anything but what it thinks best."""

from __future__ import annotations

from rlx.diagnose.rule import EARLY, Q_LEARNING, Change, Limit, Rule, any_of

EPSILON = Limit("train/exploration_rate", below=0.02, strong=0.005, statistic="max", part=EARLY)

RULE = Rule(
    id="exploration_missing",
    kind="cause",
    severity="medium",
    says="it never explores",
    look=any_of(EPSILON),
    limits=(EPSILON,),
    needs=("train/exploration_rate",),
    algorithms=Q_LEARNING,
    source="Mnih et al. 2015 (ε begins at 1); a greedy policy only ever sees what it does already",
    cannot_see="exploration by other means than ε",
    tries=("begin with algo.exploration_initial 1.0", "anneal over algo.exploration_fraction 0.1 or more"),
    changes=(Change("algo.exploration_initial", to=1.0), Change("algo.exploration_fraction", to=0.1)),
)
