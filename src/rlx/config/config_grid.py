"""A grid in a config file: several values for some keys, which stand for one config per combination.

    grid:
      env.id: [CartPole-v1, Acrobot-v1]
      algo: [{name: ppo}, {name: dqn, learning_rate: 1.0e-3}]

A cell of the grid is the same file with one value per key, written as overrides. So whatever reads a config reads a
cell, and a file with a grid is refused where only one config makes sense.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx.config import yaml_lines
from rlx.errors import ConfigError

GRID = "grid"
EXAMPLE = "grid: {env.id: [CartPole-v1, Acrobot-v1], algo.name: [ppo, a2c]}"


@dataclass(frozen=True)
class GridCell:
    """One combination of a grid's values, and the overrides that choose it."""

    values: Mapping[str, Any]
    overrides: tuple[str, ...]


def cells(path: Path) -> tuple[GridCell, ...]:
    """Return the cells of a config file's grid, or none if the file has no grid."""
    if not path.is_file():
        return ()
    document = yaml_lines.read(path)
    grid = document.data.get(GRID)
    if grid is None:
        return ()
    check_grid(grid, str(document.place((GRID,))))
    combinations = itertools.product(*([(key, value) for value in values] for key, values in grid.items()))
    return tuple(
        GridCell(dict(combination), tuple(f"{key}={json.dumps(value)}" for key, value in combination))
        for combination in combinations
    )


def check_grid(grid: object, where: str) -> None:
    """Raise if a grid is not a mapping of keys to lists of values."""
    if not isinstance(grid, dict) or not grid:
        raise ConfigError(f"{where}: `grid` is not a mapping of keys to lists", hint=EXAMPLE)
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ConfigError(f"{where}: `grid` has no list of values for `{key}`", hint=EXAMPLE)
        parts = str(key).split(".")
        if "seed" in parts or "seeds" in parts:
            raise ConfigError(f"{where}: `{key}` is in the grid, but seeds are replicates", hint="seeds: 5")


def refuse_open_grid(grid: object, overrides: Sequence[str], *, source: str) -> None:
    """Raise if a file has a grid and the overrides do not choose one of its cells."""
    check_grid(grid, source)
    assert isinstance(grid, dict)
    chosen = {text.partition("=")[0].strip() for text in overrides}
    for key in grid:
        if key not in chosen:
            hint = f"rlx train {source} trains all of them; or choose one: -s {key}=VALUE"
            raise ConfigError(f"{source} is a grid of several configs: `{key}` has several values", hint=hint)
