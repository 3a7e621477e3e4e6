"""What differs between several configs, as short labels: `lr 3e-4, batch 256`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlx.config.diff import is_same

ASIDE = ("run_name", "seed", "seeds", "device", "backend", "resources", "log", "checkpoint", "stop")
"""Keys that do not change the training itself."""
SHORT = {
    "learning_rate": "lr", "total_timesteps": "steps", "batch_size": "batch", "entropy_coef": "entropy",
    "hidden_sizes": "net", "num_envs": "envs", "rollout_steps": "rollout", "update_epochs": "epochs",
    "clip_range": "clip", "gae_lambda": "lambda", "buffer_size": "buffer", "learning_starts": "starts",
}  # fmt: skip
MOST_KEYS = 3


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a config by dotted keys. Lists and schedules are single values."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value and not set(value) <= {"linear", "cosine"}:
            flat |= flatten(value, f"{name}.")
        elif not isinstance(value, Mapping) or value:
            flat[name] = value
    return flat


def value_at(config: Mapping[str, Any], key: str) -> Any:
    """Return a value by its dotted key, or None if it is not set."""
    value: Any = config
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def differing_keys(configs: Sequence[Mapping[str, Any]], *, shown: Sequence[str] = ()) -> list[str]:
    """Return the dotted keys in which configs differ, without those that say nothing or that are `shown` anyway."""
    flat = [flatten(config) for config in configs]
    keys = dict.fromkeys(key for config in flat for key in config)
    differing = []
    for key in keys:
        if key.split(".")[0] in ASIDE or key in shown:
            continue
        first = flat[0].get(key)
        if not all(is_same(first, config.get(key)) for config in flat[1:]):
            differing.append(key)
    return differing


def spell(value: Any) -> str:
    """Write a config value in a few characters."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        text = f"{value:g}"
        if value and abs(value) < 0.01:
            mantissa, _, power = f"{value:.2e}".partition("e")
            text = f"{float(mantissa):g}e{int(power)}"
        return text
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return "×".join(map(spell, value))
    if isinstance(value, Mapping):
        return " ".join(
            f"{kind} {'→'.join(map(spell, ends))}" for kind, ends in value.items() if isinstance(ends, list)
        )
    return str(value)


def short_name(key: str) -> str:
    """Return a short name of a key: `algo.learning_rate` is `lr`."""
    last = key.rpartition(".")[2]
    return SHORT.get(last, last)


def label(config: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Spell some keys of a config, at most three: `lr 3e-4, batch 256`."""
    parts = [f"{short_name(key)} {spell(value_at(config, key))}" for key in keys[:MOST_KEYS]]
    if len(keys) > MOST_KEYS:
        parts.append(f"and {len(keys) - MOST_KEYS} more")
    return ", ".join(parts)


def labels(configs: Sequence[Mapping[str, Any]], *, shown: Sequence[str] = ()) -> list[str]:
    """Return a label for each config that says how it differs from the others; empty if nothing differs.

    If they differ in many keys, a label names only those in which a config differs from most of the others.
    """
    keys = differing_keys(configs, shown=shown)
    if len(keys) <= MOST_KEYS or len(configs) <= 2:
        return [label(config, keys) for config in configs]
    usual = {key: _most_common([value_at(config, key) for config in configs]) for key in keys}
    return [
        label(config, [key for key in keys if not is_same(value_at(config, key), usual[key])]) for config in configs
    ]


def _most_common(values: Sequence[Any]) -> Any:
    """Return the most frequent value; the first of several that are equally frequent."""
    counts = [sum(is_same(value, other) for other in values) for value in values]
    return values[counts.index(max(counts))]
