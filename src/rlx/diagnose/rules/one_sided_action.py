"""One action is taken nearly always, or some never."""

from __future__ import annotations

from rlx.diagnose.rule import LATE, Change, Limit, Rule, any_of

TOP = Limit("action/top_share", above=0.98, part=LATE)
UNUSED = Limit("action/unused_share", above=0.3, part=(0.0, 0.3))

RULE = Rule(
    id="one_sided_action",
    kind="cause",
    severity="medium",
    says="actions are not used",
    look=any_of(TOP, UNUSED),
    limits=(TOP, UNUSED),
    needs=("action/top_share|action/unused_share",),
    source="DRLinter (Nikanjam et al. 2021); a policy without choice cannot learn",
    cannot_see="an action that is taken but does nothing (rlx check env does)",
    tries=("look for an action that does nothing: rlx check env RUN", "raise algo.entropy_coef"),
    changes=(Change("algo.entropy_coef", to=0.01),),
)
