"""A rule: one failure mode, the limits it goes by, where they come from, what it cannot see and what to try."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rlx.config import catalog
from rlx.diagnose.case import NOTHING, Case, SeedCase
from rlx.diagnose.curve import Floats
from rlx.diagnose.finding import Evidence, Finding, Severity
from rlx.figures import figure

Kind = Literal["broken", "cause", "symptom", "cost"]
KINDS: tuple[Kind, ...] = ("broken", "cause", "symptom", "cost")
"""In the order in which findings are shown: what explains comes before what it explains."""
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")

PPO = ("ppo", "maskable_ppo", "recurrent_ppo")
ON_POLICY = (*PPO, "a2c", "trpo")
Q_LEARNING = ("dqn", "qrdqn")
OFF_POLICY = (*Q_LEARNING, "sac", "tqc", "td3", "ddpg")

STATISTICS: Mapping[str, Callable[[Floats], Any]] = {
    "median": np.median, "mean": np.mean, "max": np.max, "min": np.min, "last": lambda values: values[-1],
    "high": lambda values: np.quantile(values, 0.9),
}  # fmt: skip
PLACES = re.compile("RUN|NAME|OTHER")
EARLY, LATE, ALL = (0.0, 0.3), (0.6, 1.0), (0.0, 1.0)


@dataclass(frozen=True)
class Limit:
    """One threshold: a statistic of a metric over a part of the run, and the value it must not cross.

    `per` divides by another metric's median over the same part, or by a config key (`config:algo.max_grad_norm`), so
    that the figure has no unit; `over` names a divisor that the rule itself knows. Beyond `above` or `below` it counts
    where the returns show harm too; beyond `strong` it counts alone.
    """

    metric: str
    above: float | None = None
    below: float | None = None
    strong: float | None = None
    statistic: str = "median"
    part: tuple[float, float] = ALL
    per: str | None = None
    over: str = ""

    @property
    def value(self) -> float:
        """The threshold."""
        return self.above if self.above is not None else self.below if self.below is not None else float("nan")

    @property
    def what(self) -> str:
        """What is measured, in words."""
        when = {EARLY: "early ", LATE: "late ", ALL: ""}.get(self.part, "")
        divisor = self.over or (self.per or "").removeprefix("config:")
        return f"{when}{self.statistic} {self.metric}" + (f" / {divisor}" if divisor else "")

    def measure(self, seed: SeedCase, case: Case) -> float | None:
        """Return the figure of one seed; None where it cannot be had."""
        values = _part(seed, self.metric, self.part)
        if not values.size:
            return None
        found = float(STATISTICS[self.statistic](values))
        if self.per is None:
            return found
        unit = self._unit(seed, case)
        return found / unit if unit else None

    def _unit(self, seed: SeedCase, case: Case) -> float | None:
        assert self.per is not None
        if self.per.startswith("config:"):
            told = case.setting(self.per.removeprefix("config:"))
            return float(told) if isinstance(told, (int, float)) else None
        values = _part(seed, self.per, self.part)
        return float(np.median(values)) if values.size else None

    def see(self, seed: SeedCase, case: Case) -> Evidence | None:
        """Return the evidence where a seed crosses the limit: and is harmed, or crosses the strong one."""
        found = self.measure(seed, case)
        return None if found is None else self.judge(found, seed, case)

    def judge(self, found: float, seed: SeedCase, case: Case) -> Evidence | None:
        """Return the evidence where a figure of a seed crosses the limit: and it is harmed, or the strong one."""
        if not self.is_crossed(found, self.value):
            return None
        is_strong = self.strong is not None and self.is_crossed(found, self.strong)
        return evidence(self, seed, found) if is_strong or case.is_harmed(seed) else None

    def is_crossed(self, found: float, limit: float) -> bool:
        """Say whether a figure lies on the wrong side of a limit."""
        return found > limit if self.above is not None else found < limit


def evidence(limit: Limit, seed: SeedCase, found: float) -> Evidence:
    """Return a measured figure beside its limit, with the steps it is from."""
    steps = seed.series[limit.metric].steps
    first, last = (float(steps[0] + share * (steps[-1] - steps[0])) for share in limit.part)
    return Evidence(limit.what, found, limit.value, (int(first), int(last)), (seed.seed,))


def _part(seed: SeedCase, metric: str, part: tuple[float, float]) -> Floats:
    """Return the finite values of a metric within a part of the run."""
    series = seed.series.get(metric, NOTHING)
    if not len(series):
        return series.values
    first, last = (series.steps[0] + share * (series.steps[-1] - series.steps[0]) for share in part)
    return np.asarray(series.values[(series.steps >= first) & (series.steps <= last) & np.isfinite(series.values)])


@dataclass(frozen=True)
class Change:
    """One change of the config worth a training: a key times a factor, or set to a value."""

    key: str
    times: float | None = None
    to: Any = None

    def of(self, case: Case) -> dict[str, Any] | None:
        """Return the changed key; None where the config has no such key, or has this value already."""
        now = case.setting(self.key)
        section, _, name = self.key.rpartition(".")
        holder = case.setting(section)
        if case.is_script or not isinstance(holder, Mapping) or name not in holder:
            return None
        changed = self.to if self.times is None else _scaled(now, self.times)
        return None if changed is None or changed == now else {self.key: changed}


def _scaled(value: Any, factor: float) -> Any:
    if isinstance(value, Mapping):
        return {kind: [_scaled(one, factor) for one in ends] for kind, ends in value.items() if isinstance(ends, list)}
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return max(1, round(value * factor)) if isinstance(value, int) and value else float(f"{value * factor:.3g}")


@dataclass(frozen=True)
class Sight:
    """What a rule saw: its figures; a sentence of its own where the rule's does not do."""

    evidence: tuple[Evidence, ...]
    claim: str = ""
    severity: Severity | None = None


Look = Callable[[Case], Sight | None]


@dataclass(frozen=True)
class Rule:
    """One failure mode. `says` is the claim without figures.

    `needs` are the metrics without which it is blind (`a|b`: either), `limits` all the thresholds it goes by, `source`
    where they come from. In `tries`, RUN stands for the run, NAME for its environment's catalog config, OTHER for the
    run that did best under the same evaluation. One that `is_sudden` needs no waiting to be acted upon.
    """

    id: str
    kind: Kind
    severity: Severity
    says: str
    look: Look
    source: str
    cannot_see: str
    tries: tuple[str, ...]
    needs: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()
    changes: tuple[Change, ...] = ()
    algorithms: tuple[str, ...] = ()
    is_sudden: bool = False

    def blindness(self, case: Case) -> str | None:
        """Say why this rule cannot look at a run; None where it can."""
        if self.algorithms and case.algorithm not in self.algorithms:
            return f"not for {case.algorithm or 'an unknown algorithm'}"
        absent = [need for need in self.needs if not any(case.has(metric) for metric in need.split("|"))]
        return f"no {' and no '.join(need.replace('|', ' or ') for need in absent)}" if absent else None

    def find(self, case: Case) -> Finding | None:
        """Look at a run; None where there is nothing to see, or this rule cannot see it."""
        sight = self.look(case) if self.blindness(case) is None else None
        if sight is None:
            return None
        changes = [change.of(case) for change in self.changes]
        return Finding(
            self.id,
            sight.severity or self.severity,
            sight.claim or f"{self.says}: {spell(sight.evidence)}{_where(sight.evidence, case)}",
            sight.evidence,
            tuple(fill(line, case) for line in self.tries),
            tuple(change for change in changes if change),
        )


def fill(line: str, case: Case) -> str:
    """Name the run in a line of advice; a command that this run gives no ground for is left out."""
    advice, _, command = line.rpartition(": rlx ")
    if not advice:
        return line
    env = case.setting("env.id")
    known = catalog.for_env(env) if isinstance(env, str) else None
    is_open = known if "catalog:NAME" in command else not case.is_script
    is_open = is_open if "OTHER" not in command else case.precedent is not None
    if not (case.has("reward/term/*") if command.startswith("reflect ") else is_open):
        return advice
    names = {"RUN": case.name, "NAME": known or "", "OTHER": case.precedent.run if case.precedent else ""}
    return f"{advice}: rlx {PLACES.sub(lambda place: names[place[0]], command)}"


def spell(found: Sequence[Evidence]) -> str:
    """Put figures into words, one seed's for all where several seeds show the same."""
    by_what: dict[str, list[Evidence]] = {}
    for one in found:
        by_what.setdefault(one.what, []).append(one)
    return ", ".join(f"{what} {_value(some)}" for what, some in by_what.items())


def _value(some: Sequence[Evidence]) -> str:
    numbers = [one.value for one in some if isinstance(one.value, (int, float))]
    if not numbers:
        return str(some[0].value)
    limit = "" if some[0].limit is None else f" (limit {figure(some[0].limit)})"
    low, high = figure(min(numbers)), figure(max(numbers))
    return (low if low == high else f"{low} to {high}") + limit


def _where(found: Sequence[Evidence], case: Case) -> str:
    shown = {seed for one in found for seed in one.seeds}
    return f", on {len(shown)} of {len(case.seeds)} seeds" if len(case.seeds) > 1 and shown else ""


See = Callable[[SeedCase, Case], Sequence[Evidence] | Evidence | None]


def by_seed(see: See, *, share: float = 0.5) -> Look:
    """Make a look out of what one seed shows: seen where at least `share` of the seeds (and one) show it."""

    def look(case: Case) -> Sight | None:
        seen = [_listed(see(seed, case)) for seed in case.seeds]
        count = sum(bool(one) for one in seen)
        if not count or count < share * len(case.seeds):
            return None
        return Sight(tuple(replace_seeds(one, seed.seed) for one_seed, seed in zip(seen, case.seeds, strict=True)
                           for one in one_seed))  # fmt: skip

    return look


def replace_seeds(found: Evidence, seed: int) -> Evidence:
    """Return evidence that names its seed."""
    return found if found.seeds else replace(found, seeds=(seed,))


def _listed(found: Sequence[Evidence] | Evidence | None) -> Sequence[Evidence]:
    return () if found is None else (found,) if isinstance(found, Evidence) else found


def any_of(*limits: Limit) -> Look:
    """Make a look that sees a seed which crosses any of the limits."""

    def see(seed: SeedCase, case: Case) -> list[Evidence]:
        return [found for found in (limit.see(seed, case) for limit in limits) if found]

    return by_seed(see)


def all_of(*limits: Limit) -> Look:
    """Make a look that sees a seed which crosses all of the limits."""

    def see(seed: SeedCase, case: Case) -> list[Evidence]:
        found = [limit.see(seed, case) for limit in limits]
        return [one for one in found if one] if all(found) else []

    return by_seed(see)
