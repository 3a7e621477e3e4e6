"""Finds the settings that a program seeds its random numbers with, and tells by name which options are seeds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from rlx.adopt.repository import PythonFile, dotted, literal

_SEED = re.compile(
    r"((manual|random|rand|rng|train|training|global|np|numpy|torch|jax|env|base|start|initial|init|exp|experiment|master|main)_?)?"
    r"seeds?(_?(value|number|num|everything))?"
)
_SEEDS = re.compile(
    r"(manual_)?seed(_all|_everything|ing)?|(set|fix|setup|init|seed|make)_(the_)?((global|random|all|np|torch|rng)_)*(seeds?|rngs?|everything)"
    r"|set_random_seed|PRNGKey|key|default_rng|RandomState|SeedSequence|manual_seed_all|set_seed_everywhere"
)
_KEYS = ("PRNGKey", "jax.random.key", "random.key")


def is_seed(key: str) -> bool:
    """Return whether an option sets the seed of a training, by its name; those of evaluations are left out."""
    last = key.replace("-", "_").rpartition(".")[2]
    return bool(_SEED.fullmatch(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", last).lower()))


def seeded_keys(chain: Sequence[PythonFile]) -> set[str]:
    """Return the names of the settings from which programs seed: `rng` of `torch.manual_seed(args.rng)`."""
    return {name for file in chain for name in _seeded(file)}


def _seeded(file: PythonFile) -> Iterator[str]:
    for call in file.calls:
        name = dotted(call.func)
        tail = name.rpartition(".")[2]
        if not _SEEDS.fullmatch(tail) or (tail == "key" and name not in _KEYS):
            continue
        for argument in (*call.args[:1], *(word.value for word in call.keywords if word.arg == "seed")):
            if isinstance(argument, ast.Attribute) and isinstance(argument.value, ast.Name):
                if argument.value.id != "self":
                    yield argument.attr
            elif isinstance(argument, ast.Subscript) and isinstance(key := literal(argument.slice), str):
                yield key
