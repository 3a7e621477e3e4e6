"""Read a sweep file, or a config with `-p` parameters, as a plan. Files of rlx-workbench work unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlx.compare.question import STANDARD, ComparisonQuestion
from rlx.config import layers, yaml_lines
from rlx.config.catalog import PREFIX
from rlx.errors import ConfigError, NotFound, UsageError, hint_for
from rlx.evaluate.stored_code import refuse_stored_code
from rlx.loop.settle.plan import cap
from rlx.loop.sweep import sweep_log
from rlx.loop.sweep.sweep_plan import (
    AUTO_SAMPLER,
    CONFIRM_SEEDS,
    SOME_TRIALS,
    SweepBudget,
    SweepPlan,
    halving_for,
    pinned_protocol,
    search_settings,
)
from rlx.runs import project
from rlx.search.parse_space import parse_space, space_of
from rlx.search.samplers import SAMPLERS
from rlx.search.seed_race import SIZES
from rlx.search.space import SEED_KEYS, Space
from rlx.study.candidate.config_changes import nested

KEYS = (
    "name", "base", "space", "fixed", "sampler", "trials", "seeds", "hours", "halving", "race", "confirm", "tags",
    "seed", "audit_pruning", "warm", "planner", "metric", "schema",
)  # fmt: skip
WORKBENCH = {"base_config": "base", "grid": "space"}
"""rlx-workbench's words → ours."""


@dataclass(frozen=True)
class SweepRequest:
    """What a user asks for, before it is checked. None is not given."""

    base: str | Mapping[str, Any]
    space: Space
    name: str | None = None
    settings: Sequence[str] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    budget: SweepBudget = field(default_factory=SweepBudget)
    options: Mapping[str, Any] = field(default_factory=dict)
    question: ComparisonQuestion = STANDARD
    notes: tuple[str, ...] = ()


def is_sweep_file(path: Path) -> bool:
    """Say whether a YAML file is a sweep: it has a space or a grid."""
    if str(path).startswith(PREFIX) or not path.is_file():
        return False
    data = yaml_lines.read(path).data
    return bool({"space", *WORKBENCH} & set(data))


def read_file(path: Path) -> SweepRequest:
    """Read a sweep file."""
    data = dict(yaml_lines.read(path).data)
    is_workbench = any(word in data for word in WORKBENCH)
    data = {WORKBENCH.get(key, key): value for key, value in data.items()}
    for key in data:
        if key not in KEYS:
            known = f"a sweep file has {', '.join(KEYS[:-1])}"
            raise ConfigError(f"{path}: unknown key `{key}`", hint=hint_for(str(key), KEYS, otherwise=known))
    for key in ("base", "space"):
        if not data.get(key):
            raise ConfigError(f"{path}: `{key}` is missing", hint="base: configs/cartpole.yaml")
    if not isinstance(data["space"], Mapping):
        raise ConfigError(f"{path}: `space` is not a mapping", hint="space: {algo.gamma: [0.98, 0.99]}")
    notes: list[str] = []
    space = dict(data["space"])
    if is_workbench:
        notes += _take_seeds_out(space)
        data.setdefault("sampler", "grid")
    budget = SweepBudget(*(data.get(name) for name in ("trials", "seeds", "hours")))
    options = {key: data[key] for key in KEYS if key in data and key not in ("name", "base", "space", "fixed")}
    question = STANDARD
    if data.get("metric"):
        metric = str(data["metric"])
        question = ComparisonQuestion(metric.removesuffix(":lower"), metric.endswith(":lower"))
    return SweepRequest(
        _base_of(str(data["base"]), path),
        space_of(space, read=read_value),
        name=data.get("name"),
        fixed=dict(data.get("fixed") or {}),
        budget=budget,
        options=options,
        question=question,
        notes=tuple(notes),
    )


def _take_seeds_out(space: dict[str, Any]) -> list[str]:
    """Remove seeds from a grid of rlx-workbench: they are replicates, and the race trains them."""
    notes = []
    for key in SEED_KEYS:
        values = space.pop(key, None)
        if values is not None:
            notes.append(f"`{key}` is not a parameter: the race trains the best configs on more seeds instead")
    return notes


def _base_of(text: str, path: Path) -> str:
    """Return the base config: as it is written, or relative to the sweep file."""
    if text.startswith(PREFIX) or Path(text).is_file():
        return text
    beside = path.parent / text
    if beside.is_file():
        return str(beside)
    raise NotFound(f"{path}: the base config `{text}` does not exist", hint=yaml_lines.near_files(Path(text)))


def read_value(text: str) -> Any:
    """Read one value of a space as YAML."""
    return yaml_lines.value(text, source="-p")


def read_parameters(texts: Sequence[str]) -> Space:
    """Read the `-p` parameters of a command line."""
    return parse_space(texts, read=read_value)


def plan_for(request: SweepRequest, *, root: Path) -> SweepPlan:
    """Return the plan of a request; nothing is written yet."""
    options = request.options
    sampler = str(options.get("sampler") or AUTO_SAMPLER)
    if sampler != AUTO_SAMPLER and sampler not in SAMPLERS:
        known = f"samplers: {', '.join([AUTO_SAMPLER, *SAMPLERS])}"
        raise UsageError(f"unknown sampler `{sampler}`", hint=hint_for(sampler, list(SAMPLERS), otherwise=known))
    fixed = {**request.fixed, **_overrides(request.settings)}
    if "seeds" in fixed:
        raise UsageError("`seeds` cannot be fixed: a sweep chooses how many it trains", hint="leave it out")
    base = ""
    stem = "config"
    if isinstance(request.base, str):
        refuse_stored_code(Path(request.base), root=root)
        base = _relative(request.base, root)
        stem = _stem(request.base)
    data = _base_data(request.base, fixed)
    data = pinned_protocol(data, request.space)
    confirm = _confirm(options.get("confirm"))
    budget = request.budget
    if sampler == "grid" and budget == SweepBudget():
        budget = SweepBudget(trials=sum(1 for _ in request.space.grid()))
    trials = budget.trials
    if budget == SweepBudget() and request.space.size < SOME_TRIALS:
        trials = int(request.space.size)
    halving = halving_for(sampler, data, options.get("halving"), trials)
    settings = search_settings(
        budget,
        halving=halving,
        race_sizes=_race_sizes(options.get("race")),
        confirm=confirm,
        seed=int(options.get("seed") or 0),
    )
    settings = replace(settings, audits=bool(options.get("audit_pruning")))
    return SweepPlan(
        name=request.name or sweep_log.free_name(f"{stem}_sweep", folder=root / sweep_log.FOLDER),
        base=base,
        data=data,
        space=request.space,
        settings=settings,
        fixed=fixed,
        sampler=sampler,
        planner=str(options.get("planner") or ""),
        is_warm=bool(options.get("warm")),
        confirm=confirm,
        hours=budget.hours,
        tags=tuple(str(tag) for tag in options.get("tags") or ()),
        question=request.question,
    )


def _base_data(base: str | Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(base, str):
        project.refuse_worktree(Path(base))
        stacked = layers.stack(Path(base))
    else:
        stacked = layers.Layers(yaml_lines.Document("config", dict(base)))
    merged = layers.merge(stacked, yaml_lines.Document("fixed", nested(fixed)))
    return {key: value for key, value in merged.document.data.items() if key not in ("seeds", "schema")}


def _overrides(texts: Sequence[str]) -> dict[str, Any]:
    found = {}
    for text in texts:
        layers.override(text)  # raises if it is not `key=value`
        key, _, value = text.partition("=")
        found[key.strip()] = yaml_lines.value(value, source=f"-s {key}")
    return found


def _relative(base: str, root: Path) -> str:
    """Return the base as it is written into the log: relative to the project, so that a project can be moved."""
    if base.startswith(PREFIX):
        return base
    path = Path(base).resolve()
    if path.is_relative_to(root.resolve()):
        return str(path.relative_to(root.resolve()))
    return str(path)


def _stem(base: str) -> str:
    path = Path(base.removeprefix(PREFIX))
    if path.stem == "config_snapshot":
        return path.parent.name
    return path.stem


def _confirm(value: Any) -> int:
    if value is None or value is True:
        return CONFIRM_SEEDS
    if value is False or value == 0:
        return 0
    if not isinstance(value, int) or not cap(value):
        raise UsageError(f"confirm {value}: a confirmation takes at least 10 seeds per side", hint="--confirm 10")
    return cap(value)


def _race_sizes(value: Any) -> tuple[int, ...]:
    if value is None or value is True:
        return SIZES
    if value is False:
        return ()
    sizes = value
    if isinstance(value, int):
        sizes = [value]
    is_sound = isinstance(sizes, (list, tuple)) and all(isinstance(size, int) and size >= 2 for size in sizes)
    if not is_sound or list(sizes) != sorted(set(sizes)):
        raise UsageError(f"race {value}: expected growing numbers of seeds from 2 on", hint="--race 3,6,10")
    return tuple(sizes)
