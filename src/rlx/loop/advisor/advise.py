"""Plan one improvement round for a run: what to try, why, at which cost. Training it is an ordinary sweep."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from rlx.config.labels import value_at
from rlx.diagnose.diagnose import diagnose
from rlx.diagnose.load_case import read_case
from rlx.diagnose.rules import load as load_rule
from rlx.errors import ConfigError, RlxError, UsageError
from rlx.evaluate.stored_code import stored_experiment
from rlx.launch import launch
from rlx.launch.resources import Slots
from rlx.loop.advisor.llm_endpoint import Endpoint
from rlx.loop.advisor.llm_vote import LlmPlanner
from rlx.loop.sweep import sweep_log
from rlx.loop.sweep.run_sweep import planned_cost
from rlx.loop.sweep.sweep_plan import (
    CONFIRM_SEEDS,
    LOCKED,
    LOCKED_SECTIONS,
    SweepBudget,
    SweepPlan,
    pinned_protocol,
    search_settings,
)
from rlx.runs import project
from rlx.runs.run import SNAPSHOT, Run
from rlx.runs.status import COMPLETED
from rlx.runs.summary import trained_seconds
from rlx.search.auto import settings_for
from rlx.search.halving import FULL_LENGTH
from rlx.search.minority_vote import LARGEST_SHARE
from rlx.search.observation import Observation
from rlx.search.planners.finding_variants import (
    Variant,
    VariantPlan,
    cross_checked,
    from_findings,
    space_of_variants,
    with_combinations,
)
from rlx.search.planners.neighbourhood import CHOICES, FACTORS, neighbourhood, single_steps
from rlx.search.samplers import sampler_named
from rlx.search.seed_race import SIZES, SeedRace
from rlx.search.space import Space, Values

PLANNERS = ("rules", "llm", "sampler")
DEFAULT_BUDGET = "40seeds"
MOST_VARIANTS = 8
FEW_VARIANTS = 4
NOT_KEPT = ("seeds", "schema", "backend")
"""Keys of a run's snapshot that a variant chooses again."""


@dataclass(frozen=True)
class AdvisorRequest:
    """What the user asks: the budget, the planner, the endpoint of a language model, and how many variants at most."""

    budget: str = DEFAULT_BUDGET
    planner: str = "rules"
    endpoint: str = ""
    is_strict: bool = False
    most: int | None = None


@dataclass(frozen=True)
class RoundPlan:
    """The plan of a round: the variants, those left out, the sweep that would train them, and the audit of a model."""

    run: str
    health: str
    plan: VariantPlan
    sweep: SweepPlan | None
    audit: tuple[Mapping[str, Any], ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the plan as JSON-able data."""
        cost = None
        name = None
        if self.sweep is not None:
            cost = round(planned_cost(self.sweep), 1)
            name = self.sweep.name
        return {
            "run": self.run,
            "health": self.health,
            "variants": [variant.document() for variant in self.plan.variants],
            "left_out": [left_out.document() for left_out in self.plan.left_out],
            "sweep": name,
            "full_trainings": cost,
            "audit": [dict(row) for row in self.audit],
        }


def advise(run: Run, request: AdvisorRequest, *, root: Path) -> RoundPlan:
    """Diagnose a run and plan the variants of one round."""
    from rlx.diagnose.analyze import analyze, health

    refuse_untrainable(run)
    if request.planner not in PLANNERS:
        raise UsageError(f"unknown planner `{request.planner}`", hint=f"--planner {'|'.join(PLANNERS)}")
    budget = in_seeds(read_budget(request.budget), run)
    case = read_case(run)
    report = diagnose(case)
    data = base_data(run)
    most = request.most or slots(budget)
    settings = settings_of(run)
    refusal = Refusals(run, data, root=root)
    found = cross_checked(
        from_findings(report.findings, describe=lambda rule: load_rule(rule).source),
        settings,
        refusal=refusal,
        most=most,
    )
    audit: list[Mapping[str, Any]] = []
    if request.planner == "llm":
        extra = _from_model(run, request, settings, found, audit)
        found = cross_checked([*extra, *found.variants], settings, refusal=refusal, most=most)
    if request.planner == "sampler" or len(found.variants) < min(FEW_VARIANTS, most):
        found = _filled(found, settings, refusal, most, is_alone=request.planner == "sampler")
    found = with_combinations(found, most=most)
    sweep = None
    if found.variants:
        sweep = sweep_plan(run, found.variants, budget, root=root)
    answer = health(report.findings, analyze(case).answer)
    return RoundPlan(run.name, answer, found, sweep, tuple(audit))


def refuse_untrainable(run: Run) -> None:
    """Raise if rlx cannot train variants of a run."""
    if run.is_script:
        message = f"your own script trains {run.name}, and rlx cannot run it"
        raise UsageError(message, hint=f"see what to change: rlx suggest {run.name}")
    if run.study:
        raise UsageError(f"{run.name} is a job of the study {run.study}", hint="rlx next")
    stored_experiment(run, root=project.root(run.path.parent.parent))  # refuses code from elsewhere


def read_budget(text: str) -> SweepBudget:
    """Read `40seeds`, `40` (the same) or `2h`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(seeds?|h|hours?|m|min)?\s*", text)
    if not match:
        raise UsageError(f"--budget {text}: expected seeds or hours", hint="--budget 40seeds, or --budget 2h")
    amount = float(match[1])
    unit = match[2] or "seeds"
    if unit.startswith("seed"):
        return SweepBudget(seeds=int(amount))
    if unit.startswith("m"):
        amount /= 60
    return SweepBudget(hours=amount)


def in_seeds(budget: SweepBudget, run: Run) -> SweepBudget:
    """Return a budget in seeds: hours count as the seeds that this machine trains in that time, as the run did."""
    if budget.hours is None:
        return budget
    seconds = [trained_seconds(seed) for seed in run.seeds if seed.status.state == COMPLETED]
    if not seconds:
        message = f"{run.name} has no completed seed, so rlx cannot tell how long one takes"
        raise UsageError(message, hint=f"--budget {DEFAULT_BUDGET}")
    places = len(Slots.of(run.config).places)
    return SweepBudget(seeds=max(1, int(budget.hours * 3600 * places / max(0.1, fmean(seconds)))))


def slots(budget: SweepBudget) -> int:
    """Return how many variants fit a budget: a third of the seeds that the confirmation leaves."""
    assert budget.seeds is not None
    left = budget.seeds - 2 * CONFIRM_SEEDS
    if left < 4:
        message = f"a budget of {budget.seeds} seeds is too small: the confirmation alone takes {2 * CONFIRM_SEEDS}"
        raise UsageError(message, hint="--budget 40seeds")
    return max(1, min(MOST_VARIANTS, math.floor(left / 3)))


def base_data(run: Run) -> dict[str, Any]:
    """Return a run's config as the base of variants."""
    return {key: value for key, value in run.config.items() if key not in NOT_KEPT}


def settings_of(run: Run) -> dict[str, Any]:
    """Return the present value of every key that a planner knows, and of all keys of the algorithm."""
    config = run.config
    keys = {f"algo.{key}" for key in config.get("algo") or {}} | set(FACTORS) | set(CHOICES)
    return {key: value_at(config, key) for key in sorted(keys) if value_at(config, key) is not None}


class Refusals:
    """Says why a change of a run's config cannot be tried at the same budget and protocol."""

    def __init__(self, run: Run, data: Mapping[str, Any], *, root: Path) -> None:
        self._root = root
        space = Space(())
        self._plan = SweepPlan(run.name, "", data, space, settings_for(2))

    def __call__(self, changes: Mapping[str, Any]) -> str:
        for key in changes:
            reason = LOCKED.get(key) or LOCKED_SECTIONS.get(key.split(".")[0])
            if key in ("seed", "seeds"):
                reason = "a seed is a replicate, never an improvement"
            if reason:
                return f"`{key}` is locked: {reason}"
        try:
            launch.check(self._plan.experiment(changes), root=self._root)
        except ConfigError as error:
            return f"not a valid config: {error.message.splitlines()[0]}"
        except RlxError as error:
            return error.message.splitlines()[0]
        return ""


def _filled(
    found: VariantPlan, settings: Mapping[str, Any], refusal: Refusals, most: int, *, is_alone: bool
) -> VariantPlan:
    """Add neighbours of the present config: for the planner `sampler`, or if the findings say too little."""
    wanted = FEW_VARIANTS
    changes = single_steps(settings)
    if is_alone:
        wanted = most
        changes = _sampled(settings, 2 * wanted)
    reason = "no finding proposes a change: a neighbour of the present config"
    neighbours = [Variant(change, "no finding", reason, "neighbourhood", "unknown", "sampler") for change in changes]
    first: Sequence[Variant] = () if is_alone else found.variants
    filled = cross_checked([*first, *neighbours], settings, refusal=refusal, most=min(most, max(wanted, len(first))))
    told = [left_out for left_out in filled.left_out if left_out.cause == "another variant"]
    return VariantPlan(filled.variants, (*found.left_out, *told))


def _sampled(settings: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """Return points of the space around the present config, as changes of it."""
    space = neighbourhood(settings)
    if not space.parameters:
        return []
    base = {parameter.key: settings[parameter.key] for parameter in space.parameters}
    proposed = sampler_named("sobol").propose(space, [Observation(base)], count, seed=0)
    changes = [{key: value for key, value in values.items() if value != base[key]} for values in proposed]
    return [change for change in changes if change]


def _from_model(
    run: Run,
    request: AdvisorRequest,
    settings: Mapping[str, Any],
    found: VariantPlan,
    audit: list[Mapping[str, Any]],
) -> list[Variant]:
    """Ask a language model for variants; at most 30 % of the round."""
    endpoint = Endpoint(request.endpoint)
    space = neighbourhood(settings, keys=12)
    base: Values = {parameter.key: settings[parameter.key] for parameter in space.parameters}
    data = {
        "run": run.name,
        "note": run.note,
        "tags": list(run.tags),
        "findings": [{"rule": variant.rule, "claim": variant.signal} for variant in found.variants],
    }
    planner = LlmPlanner(endpoint, is_strict=request.is_strict, audited=audit.append, data=data)
    budget = in_seeds(read_budget(request.budget), run)
    count = max(1, math.floor(LARGEST_SHARE * (request.most or slots(budget))))
    planned = planner.propose(space, base, [Observation(base, 0.0)], count)
    return [
        Variant(proposal.changes, proposal.signal, proposal.rationale, "language model", "unknown", "llm")
        for proposal in planned
    ]


def sweep_plan(run: Run, variants: Sequence[Variant], budget: SweepBudget, *, root: Path) -> SweepPlan:
    """Return the sweep that trains the variants and the present config, races them and confirms the winner."""
    settings = {key: value_at(run.config, key) for variant in variants for key in variant.changes}
    space, configs = space_of_variants(variants, settings)
    searched = search_settings(SweepBudget(trials=len(configs)), halving=FULL_LENGTH, confirm=CONFIRM_SEEDS)
    assert budget.seeds is not None
    race_budget = max(4.0, budget.seeds - 2 * CONFIRM_SEEDS - len(configs))
    searched = replace(searched, trials=len(configs), bracket=len(configs), race=SeedRace(SIZES, race_budget))
    return SweepPlan(
        name=sweep_log.free_name(f"advisor_{run.name}", folder=root / sweep_log.FOLDER),
        base=f"runs/{run.name}/{SNAPSHOT}",
        data=pinned_protocol(base_data(run), space),
        space=space,
        settings=searched,
        fixed={"backend": "auto"},
        sampler="grid",
        first=tuple(configs),
        confirm=CONFIRM_SEEDS,
    )
