"""The policy takes one action nearly always, or some actions never."""

from rlx.diagnose.run_rule import EARLY, LATE, Advice, Limit, SuggestedChange, limit_rule

TOP = Limit("action/top_share", above=0.98, part=LATE)
UNUSED = Limit("action/unused_share", above=0.3, part=EARLY)

RULE = limit_rule(
    TOP,
    UNUSED,
    id="one_sided_action",
    severity="medium",
    summary="the policy does not use all actions",
    source="DRLinter (Nikanjam et al. 2021); a policy without choice cannot learn",
    cannot_see="an action that is taken but does nothing (rlx check env does)",
    advice=(Advice("look for an action that does nothing", "check env {run}"), "raise algo.entropy_coef"),
    changes=(SuggestedChange("algo.entropy_coef", to=0.01),),
)
