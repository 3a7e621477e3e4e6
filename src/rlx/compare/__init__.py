"""Is it better? Statistics on training seeds, a declared plan of looks, and the verdict drawn from them.

    from rlx.compare import iqm, judge, permutation_p
    judge(baseline_scores, candidate_scores).line()

Everything listed here is pure: values in, values out, a seed where there is randomness. A score array holds one number
a training run: (runs,), or (runs, tasks). `comparison` applies it to runs on disk.
"""

from __future__ import annotations

from rlx.compare.guardrails import Guardrail, Tail, block_on_harm, require_safety, tail_check
from rlx.compare.looks import PLAN, Look, Plan, Stage, holm_shares, take, with_failures
from rlx.compare.permutation import (
    permutation_interval,
    permutation_p,
    permutation_p_over_tasks,
    permutation_tails,
)
from rlx.compare.planning import detectable_effect, failure_bound, seeds_needed
from rlx.compare.stats import (
    Band,
    Interval,
    bootstrap_interval,
    iqm,
    mean,
    mean_band,
    median,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    profile_band,
)
from rlx.compare.verdict import Rules, Verdict, guarded, judge, judge_all

__all__ = [
    "PLAN",
    "Band",
    "Guardrail",
    "Interval",
    "Look",
    "Plan",
    "Rules",
    "Stage",
    "Tail",
    "Verdict",
    "block_on_harm",
    "bootstrap_interval",
    "detectable_effect",
    "failure_bound",
    "guarded",
    "holm_shares",
    "iqm",
    "judge",
    "judge_all",
    "mean",
    "mean_band",
    "median",
    "optimality_gap",
    "performance_profile",
    "permutation_interval",
    "permutation_p",
    "permutation_p_over_tasks",
    "permutation_tails",
    "probability_of_improvement",
    "profile_band",
    "require_safety",
    "seeds_needed",
    "tail_check",
    "take",
    "with_failures",
]
