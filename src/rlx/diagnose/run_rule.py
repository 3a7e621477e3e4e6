"""Rules on a run: limits on its metrics, the config changes and commands that they suggest, and helpers to look."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from rlx.config import catalog
from rlx.diagnose.curve_shape import Floats, classify_curve
from rlx.diagnose.finding import AdvisedCommand, Evidence, Finding
from rlx.diagnose.rule import Look, Rule, Sighting
from rlx.diagnose.run_case import NOTHING, TERMS, RunCase, SeedCase
from rlx.number_format import figure

PPO = ("ppo", "maskable_ppo", "recurrent_ppo")
ON_POLICY = (*PPO, "a2c", "trpo")
Q_LEARNING = ("dqn", "qrdqn")
OFF_POLICY = (*Q_LEARNING, "sac", "tqc", "td3", "ddpg")

STATISTICS: Mapping[str, Callable[[Floats], Any]] = {
    "median": np.median, "mean": np.mean, "max": np.max, "min": np.min, "last": lambda values: values[-1],
    "high": lambda values: np.quantile(values, 0.9), "spread": np.std,
}  # fmt: skip
EARLY = (0.0, 0.3)
LATE = (0.6, 1.0)
ALL = (0.0, 1.0)
PART_NAMES = {EARLY: "early ", LATE: "late ", (0.0, 0.5): "first half: ", (0.8, 1.0): "last fifth: "}


@dataclass(frozen=True)
class Limit:
    """One threshold: a statistic of a metric over a part of the run, and the value that it must not cross.

    `per` divides by another metric's median over the same part, or by a config key (`config:algo.max_grad_norm`), so
    that the figure has no unit. `over` names a divisor that the rule computes itself. A value beyond `above` or `below`
    counts if the returns show harm too. A value beyond `strong` counts alone.
    """

    metric: str
    above: float | None = None
    below: float | None = None
    strong: float | None = None
    statistic: str = "median"
    part: tuple[float, float] = ALL
    per: str = ""
    over: str = ""

    @property
    def value(self) -> float:
        """The threshold."""
        thresholds = [value for value in (self.above, self.below, float("nan")) if value is not None]
        return thresholds[0]

    @property
    def what(self) -> str:
        """The measurement in words."""
        name = f"{PART_NAMES.get(self.part, '')}{self.statistic} {self.metric}"
        divisor = self.over or self.per.removeprefix("config:")
        if divisor:
            name += f" / {divisor}"
        return name

    def measure(self, seed: SeedCase, case: RunCase) -> float | None:
        """Return the figure of one seed, or None if its metrics are missing."""
        values = _part(seed, self.metric, self.part)
        if not values.size:
            return None
        value = float(STATISTICS[self.statistic](values))
        if not self.per:
            return value
        divisor = self._divisor(seed, case)
        return value / divisor if divisor else None

    def _divisor(self, seed: SeedCase, case: RunCase) -> float | None:
        if self.per.startswith("config:"):
            setting = case.setting(self.per.removeprefix("config:"))
            return float(setting) if isinstance(setting, (int, float)) else None
        values = _part(seed, self.per, self.part)
        return float(np.median(values)) if values.size else None

    def check(self, seed: SeedCase, case: RunCase) -> Evidence | None:
        """Measure a seed and judge the figure."""
        value = self.measure(seed, case)
        if value is None:
            return None
        return self.judge(value, seed, case)

    def judge(self, value: float, seed: SeedCase, case: RunCase) -> Evidence | None:
        """Return evidence if a figure crosses the strong limit, or crosses the limit and the seed's returns are bad."""
        if not self.is_crossed(value):
            return None
        is_strong = self.strong is not None and self._is_beyond(value, self.strong)
        if not is_strong and not case.is_harmed(seed):
            return None
        return self.evidence(value, seed)

    def is_crossed(self, value: float) -> bool:
        """Say whether a figure lies on the wrong side of the threshold."""
        return self._is_beyond(value, self.value)

    def _is_beyond(self, value: float, limit: float) -> bool:
        return value > limit if self.above is not None else value < limit

    def evidence(self, value: float, seed: SeedCase) -> Evidence:
        """Return a figure with its limit and the steps that it is from."""
        steps = seed.series[self.metric].steps
        first, last = (int(steps[0] + share * (steps[-1] - steps[0])) for share in self.part)
        return Evidence(self.what, value, self.value, (first, last), (seed.seed,))


def _part(seed: SeedCase, metric: str, part: tuple[float, float]) -> Floats:
    """Return the finite values of a metric within a part of the run."""
    series = seed.series.get(metric, NOTHING)
    if not len(series):
        return series.values
    first, last = (series.steps[0] + share * (series.steps[-1] - series.steps[0]) for share in part)
    return np.asarray(series.values[(series.steps >= first) & (series.steps <= last) & np.isfinite(series.values)])


@dataclass(frozen=True)
class SuggestedChange:
    """A config change that is worth a training: a key times a factor, or set to a value."""

    key: str
    times: float | None = None
    to: Any = None

    def apply(self, case: RunCase) -> dict[str, Any] | None:
        """Return the changed key, or None if the config does not have it or already has this value."""
        section, _, name = self.key.rpartition(".")
        holder = case.setting(section)
        if case.is_script or not isinstance(holder, Mapping) or name not in holder:
            return None
        changed = self.to
        if self.times is not None:
            changed = _scale(holder[name], self.times)
        if changed is None or changed == holder[name]:
            return None
        return {self.key: changed}


def _scale(value: Any, factor: float) -> Any:
    """Scale a number, or both ends of a schedule. Returns None for anything else."""
    if isinstance(value, Mapping):
        return {kind: [_scale(end, factor) for end in ends] for kind, ends in value.items() if isinstance(ends, list)}
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, int) and value:
        return max(1, round(value * factor))
    return float(f"{value * factor:.3g}")


@dataclass(frozen=True)
class Advice:
    """Something to try, with an rlx command that is printed if the run meets the requirement.

    In the command, `{run}` is the run, `{catalog}` its environment's catalog config and `{other}` the best other run.
    """

    text: str
    command: str
    requires: Literal["own config", "catalog", "other run", "reward terms"] = "own config"

    def __str__(self) -> str:
        return f"{self.text}: rlx {self.command.format(run='RUN', catalog='NAME', other='OTHER')}"

    def fill(self, case: RunCase) -> str:
        """Return the advice for a run, without the command if that cannot work."""
        line = self._line(case)
        return f"{self.text}: {line}" if line else self.text

    def command_for(self, case: RunCase) -> AdvisedCommand | None:
        """Return the command for a run, or None if it cannot work."""
        line = self._line(case)
        return AdvisedCommand(tuple(shlex.split(line)), self.text) if line else None

    def _line(self, case: RunCase) -> str:
        name = catalog.for_env(str(case.setting("env.id")))
        other = case.best_other_run.run if case.best_other_run else ""
        is_possible = {
            "own config": not case.is_script,
            "catalog": name is not None,
            "other run": bool(other),
            "reward terms": case.has(TERMS),
        }
        if not is_possible[self.requires]:
            return ""
        return f"rlx {self.command.format(run=case.name, catalog=name, other=other)}"


@dataclass(frozen=True, kw_only=True)
class RunRule(Rule[RunCase]):
    """A rule that looks at a run.

    `summary` is the claim without figures. `needs` are the metrics without which the rule is blind (`a|b`: either one).
    `limits` are all its thresholds. A rule that `is_sudden` may stop a run at once.
    """

    summary: str
    advice: tuple[str | Advice, ...] = ()
    needs: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()
    changes: tuple[SuggestedChange, ...] = ()
    algorithms: tuple[str, ...] = ()
    is_sudden: bool = False
    tries: tuple[str, ...] = field(default=(), init=False)

    def blindness(self, case: RunCase) -> str | None:
        """Say why this rule cannot look at a run, or return None if it can."""
        if self.algorithms and case.algorithm not in self.algorithms:
            return f"not for {case.algorithm or 'an unknown algorithm'}"
        absent = [need for need in self.needs if not any(case.has(metric) for metric in need.split("|"))]
        if not absent:
            return None
        return f"no {' and no '.join(need.replace('|', ' or ') for need in absent)}"

    def finding(self, sighting: Sighting, case: RunCase) -> Finding:
        """Turn a sighting into a finding, with the rule's advice for this run."""
        claim = sighting.claim or f"{self.summary}: {spell(sighting.evidence)}{seed_count(sighting.evidence, case)}"
        if sighting.has_own_advice:
            return super().finding(replace(sighting, claim=claim), case)
        advice = tuple(item if isinstance(item, str) else item.fill(case) for item in self.advice)
        changes = tuple(change for change in (change.apply(case) for change in self.changes) if change)
        commands = advised_commands(self.advice, case)
        tries = (*sighting.tries, *advice)
        sighting = replace(sighting, claim=claim, tries=tries, changes=changes, commands=commands)
        return super().finding(sighting, case)


def advised_commands(advice: Sequence[str | Advice], case: RunCase) -> tuple[AdvisedCommand, ...]:
    """Return the commands that pieces of advice name and that can work for a run."""
    commands = (item.command_for(case) for item in advice if isinstance(item, Advice))
    return tuple(command for command in commands if command is not None)


def spell(evidence: Sequence[Evidence]) -> str:
    """Put figures into words, as one range if several seeds show the same."""
    by_what: dict[str, list[Evidence]] = {}
    for item in evidence:
        by_what.setdefault(item.what, []).append(item)
    return ", ".join(f"{what} {_spell_values(items)}" for what, items in by_what.items())


def _spell_values(evidence: Sequence[Evidence]) -> str:
    numbers = [item.value for item in evidence if isinstance(item.value, (int, float))]
    if not numbers:
        return str(evidence[0].value)
    ends = dict.fromkeys((figure(min(numbers)), figure(max(numbers))))
    text = " to ".join(ends)
    if evidence[0].limit is not None:
        text += f" (limit {figure(evidence[0].limit)})"
    return text


def seed_count(evidence: Sequence[Evidence], case: RunCase) -> str:
    """Say on how many seeds of a run evidence was seen, if it has several."""
    seeds = {seed for item in evidence for seed in item.seeds}
    if len(case.seeds) < 2 or not seeds:
        return ""
    return f", on {len(seeds)} of {len(case.seeds)} seeds"


LookAtSeed = Callable[[SeedCase, RunCase], Sequence[Evidence | None] | Evidence | None]


def by_seed(look_at_seed: LookAtSeed, *, share: float = 0.5) -> Look[RunCase]:
    """Make a look from one that looks at a seed: at least `share` of the seeds (and one) must show the failure."""

    def look(case: RunCase) -> Iterator[Sighting]:
        seen: list[Evidence] = []
        count = 0
        for seed in case.seeds:
            items = look_at_seed(seed, case)
            if items is None or isinstance(items, Evidence):
                items = [items]
            evidence = [replace(item, seeds=item.seeds or (seed.seed,)) for item in items if item]
            count += bool(evidence)
            seen += evidence
        if count and count >= share * len(case.seeds):
            yield Sighting(tuple(seen))

    return look


def limit_rule(*limits: Limit, **fields: Any) -> RunRule:
    """Declare a rule that finds seeds which cross any of the limits. It needs one of their metrics."""

    def look_at_seed(seed: SeedCase, case: RunCase) -> list[Evidence | None]:
        return [limit.check(seed, case) for limit in limits]

    needs = "|".join(dict.fromkeys(limit.metric for limit in limits))
    return RunRule(look=by_seed(look_at_seed), limits=limits, needs=(needs,), **fields)


GAP_SHARE = 0.5
GAP_ERRORS = 3.0


def evaluation_gap(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return the share of the training gain that evaluation does not show, if it is at least half and certain."""
    floor = case.floor(seed)
    series = seed.series.get("rollout/return_mean")
    is_comparable = case.has_same_reward or case.setting("eval.env") is not None
    if series is None or seed.report is None or floor is None or not is_comparable:
        return None
    trained = classify_curve(series.steps, series.values, floor=floor)
    gain = trained.end - floor
    loss = trained.end - seed.report.mean
    error = max(seed.report.error, trained.visible / GAP_ERRORS)
    if not trained.is_learning or gain <= 0 or not loss > GAP_ERRORS * error or loss < GAP_SHARE * gain:
        return None
    what = "share of the training gain lost in evaluation"
    return Evidence(what, loss / gain, GAP_SHARE, (trained.settled, seed.step))
