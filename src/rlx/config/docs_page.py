"""The reference page of every config key, written from the schema."""

from __future__ import annotations

import json
from typing import Any

from rlx.config import catalog
from rlx.config.key_docs import MEANINGS
from rlx.config.schema import ALGORITHMS, Algo, Section
from rlx.config.schema_map import OUTSIDE, SECTIONS, expected, fields

_INTRO = """# Config

Generated from the code by `make docs`.

A config is YAML. Only `env.id` has no default. Keys can be overridden with `-s key=value` (the value is YAML), a key
set to `null` means its default, and an unknown key is refused with its line and what may have been meant.
`rlx config show CONFIG` prints a config with every default filled in, `rlx config check CONFIG` every problem,
`rlx config schema` the JSON Schema for editors.

`extends: base.yaml` (or `catalog:cartpole`, or a list) starts from another config: mappings merge, everything else is
replaced. If a config names another algorithm than the one it extends, it keeps only `total_timesteps` and `gamma`
of `algo`.

The table says which keys take a schedule: `{linear: [1e-3, 0]}` moves evenly from the first value to the second over
the run, `{cosine: [1e-3, 0]}` moves along half a cosine.
"""


def page() -> str:
    """Return the page as Markdown."""
    parts = [_INTRO, _catalog()]
    for name, model in SECTIONS.items():
        parts.append(_section(name or "top level", model, prefix=name))
        if name == "env.normalize":
            parts.append(_section("algo, every algorithm", Algo, prefix="algo"))
            parts += [_algorithm(algorithm, model) for algorithm, model in ALGORITHMS.items()]
    return "\n".join(parts)


def _catalog() -> str:
    rows = [f"| `catalog:{name}` | {entry.env_id} | {_seen(entry.seen)} |" for name, entry in catalog.ENTRIES.items()]
    return "\n".join(["## Catalog\n", "| config | environment | seen to reach |", "|---|---|---|", *rows, ""])


def _seen(seen: catalog.MeasuredReturn | None) -> str:
    if seen is None:
        return "not measured yet"
    cost = f"{seen.steps:,} steps, {seen.cpu_seconds:.0f} CPU-seconds per seed"
    return f"{seen.reward:g} in {seen.reached} of {seen.seeds} seeds ({cost})"


def _section(title: str, model: type[Section], *, prefix: str) -> str:
    rows = [_row(prefix, key, model) for key in fields(model)]
    rows += [f"| `{key}` | | | {MEANINGS[key]} |" for key in OUTSIDE if not prefix]
    return "\n".join([f"## {title}\n", *_HEAD, *rows, ""])


_HEAD = ("| key | takes | default | meaning |", "|---|---|---|---|")


def _algorithm(name: str, model: type[Algo]) -> str:
    """Return the keys an algorithm adds, and the common ones it has another default for."""
    common = Algo.model_fields
    own = [
        key
        for key, field in model.model_fields.items()
        if key != "name" and (key not in common or field.default != common[key].default)
    ]
    return "\n".join([f"### {name}\n", *_HEAD, *(_row("algo", key, model) for key in own), ""])


_FILLED_IN = {"algo": "", "algo.name": "`ppo`"}


def _row(prefix: str, key: str, model: type[Section]) -> str:
    field = fields(model)[key]
    name = f"{prefix}.{key}".removeprefix(".")
    default = _FILLED_IN.get(name, "required")
    if not field.is_required():
        default = _default(field.default)
    takes = expected(model, key).replace("|", "\\|")
    return f"| `{name}` | {takes} | {default} | {MEANINGS[name]} |"


def _default(value: Any) -> str:
    if value is None or isinstance(value, Section) or value == "":
        return ""
    return f"`{json.dumps(value)}`"
