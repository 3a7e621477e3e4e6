"""Measure what each catalog config reaches: five seeds each, resumable, one row at a time into bench/catalog.md.

    python bench/catalog.py [NAME ...] [--seeds 5]

It trains in bench/.catalog (not committed). An existing run is resumed or, if complete, read. A seed *reaches* a return
if the mean of its report evaluation is at least that: 20 episodes that selected nothing, last checkpoint.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from rlx import files
from rlx.config import catalog
from rlx.runs.run import Run

HERE = Path(__file__).parent
WORK = HERE / ".catalog"
TABLE = HERE / "catalog.md"
HEADER = """# What the catalog's configs reach

For anyone who starts from a catalog config. Written by `python bench/catalog.py`. Scores are the report evaluation of the
last checkpoint, on 20 episodes that selected nothing.

| config | algorithm | backend | steps | CPU s per seed (worst) | claim | seeds that reach it | mean | worst | date | versions |
|---|---|---|---|---|---|---|---|---|---|---|
"""  # noqa: E501
PACKAGES = {"fast": ("gymnasium", "numpy", "rlx"), "sb3": ("gymnasium", "stable-baselines3", "torch")}


def rlx(*words: str) -> None:
    """Run an `rlx` command in the work folder, showing its output."""
    environment = {**os.environ, "RLX_ROOT": str(WORK)}
    subprocess.run([sys.executable, "-m", "rlx", *words], cwd=WORK, env=environment, check=False)


def trained(name: str, seeds: int) -> Run:
    """Return the finished run of an entry, training whatever is missing."""
    path = WORK / "runs" / f"{name}_001"
    if not path.is_dir():
        rlx("train", f"catalog:{name}", "--seeds", str(seeds), "-s", f"run_name={name}")
    elif Run(path).status != "completed":
        rlx("resume", path.name)
    run = Run(path)
    if run.status != "completed":
        sys.exit(f"{run.name} is {run.status}: run this again to resume")
    return run


def scores(run: Run) -> dict[int, float]:
    """Return every seed's mean over its report evaluation."""
    reports = [document for document in run.evaluations() if document["name"].endswith("_latest")]
    return {document["seed"]: files.number(document["mean"]) for document in reports}


def row(name: str, run: Run) -> str:
    """Return the entry's row of the table."""
    found = scores(run)
    seen = catalog.ENTRIES[name].seen
    claim = seen.reward if seen else sorted(found.values())[len(found) // 5]
    reached = sum(score >= claim for score in found.values())
    cpu = max(files.number(seed.rows[-1]["time/cpu_seconds"]) for seed in run.seeds)
    versions = run.seeds[0].attempts[-1]["versions"]
    backend = run.metadata["backend"]
    packages = ", ".join(f"{package} {versions[package]}" for package in PACKAGES[backend])
    cells = [
        name,
        run.metadata["algorithm"],
        backend,
        f"{run.planned_steps:,}",
        f"{cpu:.0f}",
        f"{claim:g}",
        f"{reached}/{len(found)}",
        f"{sum(found.values()) / len(found):.4g}",
        f"{min(found.values()):.4g}",
        time.strftime("%Y-%m-%d", time.gmtime(run.metadata["created"])),
        packages,
    ]
    return "| " + " | ".join(cells) + " |"


def known_rows() -> dict[str, str]:
    """Return the rows of the table by config."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return {line.split("|")[1].strip(): line for line in lines if line.startswith("| ")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=catalog.names())
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    (WORK / "rlx.toml").touch()
    known = known_rows()
    for name in args.names:
        known[name] = row(name, trained(name, args.seeds))
        TABLE.write_text(
            HEADER + "".join(known[one] + "\n" for one in catalog.names() if one in known), encoding="utf-8"
        )
    print(TABLE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
