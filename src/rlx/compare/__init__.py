"""Is it better? Statistics on training seeds, a declared plan of looks, and the verdict that follows from them.

    from rlx.compare import iqm, judge, permutation_p
    judge(baseline_scores, candidate_scores).line()

All functions listed here are pure: values in, values out, and a seed if there is randomness. A score array holds one
number per training run: (runs,), or (runs, tasks). `comparison` applies them to runs on disk.
"""

from __future__ import annotations

from typing import Any

from rlx import TYPE_CHECKING

if TYPE_CHECKING:
    from rlx.compare.guardrails import GuardrailResult, Tail, block_on_harm, require_safety, tail_check
    from rlx.compare.interim_plan import PLAN, InterimLook, InterimPlan, LookStage, holm_shares, take, with_failures
    from rlx.compare.permutation import (
        permutation_interval,
        permutation_p,
        permutation_p_over_tasks,
        permutation_tails,
    )
    from rlx.compare.power import detectable_effect, failure_bound, seeds_needed
    from rlx.compare.stats import (
        Band,
        Interval,
        bootstrap_interval,
        iqm,
        mean,
        mean_band,
        median,
        performance_profile,
        profile_band,
    )
    from rlx.compare.verdict import Verdict, VerdictRules, guarded, judge

__all__ = [
    "PLAN",
    "Band",
    "GuardrailResult",
    "InterimLook",
    "InterimPlan",
    "Interval",
    "LookStage",
    "Tail",
    "Verdict",
    "VerdictRules",
    "block_on_harm",
    "bootstrap_interval",
    "detectable_effect",
    "failure_bound",
    "guarded",
    "holm_shares",
    "iqm",
    "judge",
    "mean",
    "mean_band",
    "median",
    "performance_profile",
    "permutation_interval",
    "permutation_p",
    "permutation_p_over_tasks",
    "permutation_tails",
    "profile_band",
    "require_safety",
    "seeds_needed",
    "tail_check",
    "take",
    "with_failures",
]

_MODULES = {
    "guardrails": (
        "GuardrailResult",
        "Tail",
        "block_on_harm",
        "require_safety",
        "tail_check",
    ),
    "interim_plan": (
        "InterimLook",
        "InterimPlan",
        "LookStage",
        "PLAN",
        "holm_shares",
        "take",
        "with_failures",
    ),
    "permutation": (
        "permutation_interval",
        "permutation_p",
        "permutation_p_over_tasks",
        "permutation_tails",
    ),
    "power": (
        "detectable_effect",
        "failure_bound",
        "seeds_needed",
    ),
    "stats": (
        "Band",
        "Interval",
        "bootstrap_interval",
        "iqm",
        "mean",
        "mean_band",
        "median",
        "performance_profile",
        "profile_band",
    ),
    "verdict": (
        "Verdict",
        "VerdictRules",
        "guarded",
        "judge",
    ),
}
"""Which module has which name: they are imported on first use, because all of them need NumPy."""


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            import importlib

            return getattr(importlib.import_module(f"rlx.compare.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
