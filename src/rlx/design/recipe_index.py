"""The recipes by name, and how one is run: each returns claims about numbers that it measured."""

from __future__ import annotations

import importlib
import importlib.util
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from rlx.design.recipes.recipe_claim import RecipeClaim
from rlx.errors import MissingExtra, NotFound, did_you_mean

FOLDER = Path(__file__).parent / "recipes"
ROOMS: dict[str, tuple[str, ...]] = {
    "networks": ("running-statistics", "frame-stacking", "gaussian-actor", "twin-critic", "ppo-losses",
                 "recurrent-ppo", "multimodal-extractor", "prioritized-replay", "hindsight-replay",
                 "integrated-gradients"),
    "from_data": ("behaviour-cloning", "dagger", "gail", "offline-dataset", "cql", "iql", "reward-model",
                  "preference-pipeline"),
    "worlds": ("potential-shaping", "truncation-bootstrap", "options-schema", "adr", "paired", "pettingzoo-checks",
               "independent-ppo", "qmix", "exploitability", "cross-play"),
    "measuring": ("episode-count", "interquartile-mean", "search-confirmation", "batch-calculator",
                  "placement-calculator", "checkpoint-retention", "ood-suite", "fgsm", "worst-of-k"),
}  # fmt: skip
NEEDS_TORCH = ("recurrent-ppo", "multimodal-extractor", "qmix")


@dataclass(frozen=True)
class RecipeRun:
    """The claims of one run of a recipe, and the CPU time that it took."""

    name: str
    claims: tuple[RecipeClaim, ...]
    cpu_seconds: float

    @property
    def holds(self) -> bool:
        return all(claim.holds for claim in self.claims)

    def document(self) -> dict[str, Any]:
        """Return the run as JSON-able data."""
        claims = [claim.document() for claim in self.claims]
        return {"recipe": self.name, "holds": self.holds, "cpu_seconds": round(self.cpu_seconds, 2), "claims": claims}


def recipe_names() -> list[str]:
    """Return the names of all recipes."""
    return [name for names in ROOMS.values() for name in names]


def recipe_path(name: str) -> Path:
    """Return the file of a recipe."""
    for room, names in ROOMS.items():
        if name in names:
            return FOLDER / room / f"{name.replace('-', '_')}.py"
    near = did_you_mean(name, recipe_names())
    raise NotFound(f"no recipe `{name}`", hint=f"rlx docs {near} --run" if near else "rlx docs topics")


def recipe_title(name: str) -> str:
    """Return the first sentence of a recipe's file."""
    return recipe_path(name).read_text(encoding="utf-8").removeprefix('"""').split("\n")[0].rstrip('"')


def _module(name: str) -> ModuleType:
    if name in NEEDS_TORCH and importlib.util.find_spec("torch") is None:
        raise MissingExtra("torch", extra="sb3", why=f"the recipe `{name}`")
    path = recipe_path(name)
    return importlib.import_module(f"rlx.design.recipes.{path.parent.name}.{path.stem}")


def run_recipe(name: str, *, scale: float = 1.0, seed: int = 0) -> RecipeRun:
    """Run a recipe. `scale` 1 is the full size, 0 the smallest one on which the claims are tested."""
    module = _module(name)
    if name in NEEDS_TORCH:
        import torch

        torch.set_num_threads(1)  # tiny networks are slower on many threads
    began = time.process_time()
    claims = module.run(scale, seed)
    return RecipeRun(name, tuple(claims), time.process_time() - began)
