"""Runs every recipe at full size on several seeds: CPU seconds and claims. Writes bench/recipes.md."""

from __future__ import annotations

import sys
from pathlib import Path

from rlx.design.recipe_index import recipe_names, run_recipe

SEEDS = (0, 1, 2)
MOST_CPU_SECONDS = 60.0
PAGE = Path(__file__).parent / "recipes.md"


def main() -> int:
    rows = []
    failures = 0
    for name in recipe_names():
        runs = [run_recipe(name, scale=1.0, seed=seed) for seed in SEEDS]
        slowest = max(run.cpu_seconds for run in runs)
        broken = [claim.what for run in runs for claim in run.claims if not claim.holds]
        failures += bool(broken) or slowest > MOST_CPU_SECONDS
        first = "; ".join(
            f"{claim.what} {claim.value:.3g} ({claim.relation} {claim.limit:g})" for claim in runs[0].claims
        )
        rows.append(f"| {name} | {slowest:.1f} | {len(broken)} | {first} |")
        print(f"{name}: {slowest:.1f} CPU-s, {len(broken)} claims fail {broken}", flush=True)
    head = [
        "# Recipes",
        "",
        f"`bench/recipes.py`: full size, seeds {', '.join(map(str, SEEDS))}, slowest seed; figures of seed 0.",
        "",
        "| recipe | CPU-s | claims that fail | claims |",
        "|---|---|---|---|",
    ]
    PAGE.write_text("\n".join([*head, *rows]) + "\n", encoding="utf-8")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
