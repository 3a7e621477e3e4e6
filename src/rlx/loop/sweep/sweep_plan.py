"""The plan of a sweep: base config, space, sampler, budget, race and confirmation. It is fixed when the sweep starts.

A trial's config is the base config as it was then, with the trial's values on top. So a base file that changes later
does not change a sweep. All trials train the same number of steps and are measured under the base's protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rlx.compare.question import STANDARD, ComparisonQuestion
from rlx.config.labels import value_at
from rlx.errors import ConfigError, UsageError
from rlx.search.auto import SearchSettings, settings_for, settings_within
from rlx.search.halving import FULL_LENGTH, Halving
from rlx.search.parse_space import space_document, space_of
from rlx.search.seed_race import SIZES, SeedRace
from rlx.search.space import Space, Values
from rlx.study.candidate.config_changes import nested

if TYPE_CHECKING:
    from rlx.config.schema import Experiment

AUTO_SAMPLER = "auto"
CONFIRM_SEEDS = 10
DEFAULT_TRIALS = 32
HOURLY_TRIALS = 10_000
"""More than any sweep with a time limit can train: the clock ends its search, not the count."""
HOURLY_BRACKET = 9
FEW_TRIALS = 6
SOME_TRIALS = 12
LOCKED = {
    "algo.total_timesteps": "all trials train equally long, or the longest one wins",
    "run_name": "the sweep names its runs",
    "extends": "the base config is the same for all trials",
    "schema": "it is the version of the format",
}
LOCKED_SECTIONS = {"eval": "all trials are measured in the same way"}


@dataclass(frozen=True)
class SweepBudget:
    """How much to try: a number of trials, of full trainings with the confirmation included, or hours."""

    trials: int | None = None
    seeds: int | None = None
    hours: float | None = None

    def __post_init__(self) -> None:
        given = [name for name, value in vars(self).items() if value is not None]
        if len(given) > 1:
            raise UsageError(f"a sweep has one budget, not {' and '.join(given)}", hint="--trials 32")
        for name, value in vars(self).items():
            if value is not None and value <= 0:
                raise UsageError(f"--{name} {value:g}: a sweep needs more than that", hint=f"--{name} 32")


@dataclass(frozen=True)
class SweepPlan:
    """Everything that a sweep was started with. `data` is the base config with its `fixed` keys, as YAML data."""

    name: str
    base: str
    data: Mapping[str, Any]
    space: Space
    settings: SearchSettings
    fixed: Mapping[str, Any] = field(default_factory=dict)
    sampler: str = AUTO_SAMPLER
    planner: str = ""
    first: tuple[Values, ...] = ()
    is_warm: bool = False
    confirm: int = CONFIRM_SEEDS
    hours: float | None = None
    tags: tuple[str, ...] = ()
    question: ComparisonQuestion = STANDARD

    def document(self) -> dict[str, Any]:
        """Return the plan as JSON-able data, which `plan_of` reads back."""
        settings = self.settings
        return {
            "name": self.name,
            "base": self.base,
            "data": dict(self.data),
            "fixed": dict(self.fixed),
            "space": space_document(self.space),
            "sampler": self.sampler,
            "planner": self.planner,
            "first": [dict(values) for values in self.first],
            "warm": self.is_warm,
            "trials": settings.trials,
            "bracket": settings.bracket,
            "halving": {"shares": list(settings.halving.shares), "ratio": settings.halving.ratio},
            "race": {"sizes": list(settings.race.sizes), "budget": settings.race.budget},
            "seed": settings.seed,
            "audit_pruning": settings.audits,
            "confirm": self.confirm,
            "hours": self.hours,
            "tags": list(self.tags),
            "metric": self.question.metric,
            "is_lower_better": self.question.is_lower_better,
        }

    @cached_property
    def valid_space(self) -> Space:
        """The space without the configs that are not valid."""
        return replace(self.space, allows=self.is_valid)

    @property
    def planned_trials(self) -> int:
        """How many trials the sweep trains at most."""
        return int(min(self.settings.trials, self.valid_space.size))

    def is_valid(self, values: Mapping[str, Any]) -> bool:
        """Return whether some values give a valid config. Only its environment is not asked."""
        try:
            self.experiment(values)
        except ConfigError:
            return False
        return True

    def experiment(self, values: Mapping[str, Any], *, source: str = "") -> Experiment:
        """Return the checked config of a trial; raise `ConfigError` if it is not valid."""
        from rlx.config.load import parse

        return parse(self.trial_data(values), source=source or f"a trial of {self.name}")

    def trial_data(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the base config with the values on top, as YAML data."""
        from rlx.config.layers import Layers, merge
        from rlx.config.yaml_lines import Document

        merged = merge(Layers(Document(self.base, dict(self.data))), Document("trial", nested(values)))
        return {**merged.document.data, "run_name": self.name}

    def base_values(self) -> Values | None:
        """Return the base config as values of the space; None if it is not in the space."""
        from rlx.config.load import document

        config = document(self.experiment({}))
        values: Values = {}
        for parameter in self.space.parameters:
            if self.space.counts(parameter, values):
                values[parameter.key] = value_at(config, parameter.key)
        if self.space.point(values) is None:
            return None
        return values


def plan_of(document: Mapping[str, Any]) -> SweepPlan:
    """Read a plan back from a sweep's log."""
    settings = SearchSettings(
        trials=document["trials"],
        bracket=document["bracket"],
        halving=Halving(tuple(document["halving"]["shares"]), document["halving"]["ratio"]),
        race=SeedRace(tuple(document["race"]["sizes"]), document["race"]["budget"]),
        seed=document["seed"],
        audits=document["audit_pruning"],
    )
    return SweepPlan(
        name=document["name"],
        base=document["base"],
        data=document["data"],
        space=space_of(document["space"], read=str),
        settings=settings,
        fixed=document["fixed"],
        sampler=document["sampler"],
        planner=document["planner"],
        first=tuple(document["first"]),
        is_warm=document["warm"],
        confirm=document["confirm"],
        hours=document["hours"],
        tags=tuple(document["tags"]),
        question=ComparisonQuestion(document["metric"], document["is_lower_better"]),
    )


def search_settings(
    budget: SweepBudget,
    *,
    halving: Halving,
    race_sizes: tuple[int, ...] = SIZES,
    confirm: int = CONFIRM_SEEDS,
    seed: int = 0,
) -> SearchSettings:
    """Return how to search within a budget."""
    if budget.seeds is not None:
        runs = budget.seeds - 2 * confirm
        if runs < 4:
            message = f"a budget of {budget.seeds} seeds leaves {max(0, runs)} for the search"
            raise UsageError(f"{message}: the confirmation takes {2 * confirm}", hint=f"--seeds {2 * confirm + 20}")
        settings = settings_within(runs, halving=halving, seed=seed)
    elif budget.hours is not None:
        settings = replace(settings_for(2 * HOURLY_BRACKET, halving=halving, seed=seed), trials=HOURLY_TRIALS)
        settings = replace(settings, bracket=HOURLY_BRACKET)
    else:
        settings = settings_for(budget.trials or DEFAULT_TRIALS, halving=halving, seed=seed)
    return replace(settings, race=SeedRace(race_sizes, settings.race.budget))


def halving_for(sampler: str, data: Mapping[str, Any], wanted: Any, trials: int | None) -> Halving:
    """Return the rungs: none for a grid, for few trials or for a program that rlx cannot pause, unless asked for."""
    is_command = data.get("backend") == "command"
    if is_command and wanted:
        raise UsageError("rlx cannot pause a program of your own, so it cannot halve", hint="leave out --halving")
    if wanted is False or is_command or (wanted is None and sampler == "grid"):
        return FULL_LENGTH
    if isinstance(wanted, (list, tuple)):
        return _rungs(wanted)
    if wanted is None and trials is not None and trials < SOME_TRIALS:  # enough of them must be left for the race
        return FULL_LENGTH if trials < FEW_TRIALS else Halving((0.5, 1.0), 2.0)
    return Halving()


def _rungs(shares: Sequence[Any]) -> Halving:
    is_sound = all(isinstance(share, (int, float)) and 0 < share <= 1 for share in shares)
    if not is_sound or not shares or list(shares) != sorted(set(shares)) or shares[-1] != 1:
        raise UsageError(f"halving {list(shares)}: expected growing shares that end with 1", hint="--halving 0.3,0.6,1")
    return Halving(tuple(float(share) for share in shares))


def pinned_protocol(data: Mapping[str, Any], space: Space) -> dict[str, Any]:
    """Return the base with its evaluation environment written out, if trials change the training environment."""
    if not any(key.split(".")[0] == "env" for key in space.keys):
        return dict(data)
    env = dict(data.get("env") or {})
    evaluation = dict(data.get("eval") or {})
    own = {"id": env.get("id"), "kwargs": env.get("kwargs") or {}, "wrappers": env.get("wrappers") or []}
    given = {key: value for key, value in (evaluation.get("env") or {}).items() if value is not None}
    return {**data, "eval": {**evaluation, "env": {**own, **given}}}
