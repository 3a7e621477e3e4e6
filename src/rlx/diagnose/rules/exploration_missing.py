"""A Q-learner that never explores."""

from rlx.diagnose.run_rule import EARLY, Q_LEARNING, Limit, SuggestedChange, limit_rule

EPSILON = Limit("train/exploration_rate", below=0.02, strong=0.005, statistic="max", part=EARLY)

RULE = limit_rule(
    EPSILON,
    id="exploration_missing",
    severity="medium",
    summary="it never explores",
    algorithms=Q_LEARNING,
    source="Mnih et al. 2015 (ε starts at 1); a greedy policy sees only the results of its own actions",
    cannot_see="exploration by other means than ε",
    advice=("start with algo.exploration_initial 1.0", "anneal over algo.exploration_fraction 0.1 or more"),
    changes=(SuggestedChange("algo.exploration_initial", to=1.0), SuggestedChange("algo.exploration_fraction", to=0.1)),
)
