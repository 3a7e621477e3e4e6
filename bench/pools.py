"""Make real return shapes for bench/verdict.py: CartPole trainings by rlx, resumable, written to bench/pools.json.

    nice -n 15 python bench/pools.py [--seeds 40] [--again]

It does nothing if the file has that many seeds, unless `--again` is given. It trains in bench/.pools (not committed): a
config that learns late on some seeds (`base`) and one with twice the epochs (`epochs`), 4,096 steps each, about 6 CPU
seconds per seed. The scores are the report evaluations of the final policies.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from rlx import files
from rlx.compare.comparison import required_scores
from rlx.runs.run import Run

HERE = Path(__file__).parent
WORK = HERE / ".pools"
FILE = HERE / "pools.json"
CONFIG = """\
env: {id: CartPole-v1, num_envs: 8}
algo:
  {name: ppo, total_timesteps: 4096, rollout_steps: 32, batch_size: 256, learning_rate: 0.001, gamma: 0.98,
   gae_lambda: 0.8}
eval: {every: 4096, episodes: 1}
checkpoint: {save_every: 4096, keep: 0}
"""
POOLS = {"base": 6, "epochs": 12}
"""The pools and their `algo.update_epochs`."""


def rlx(*words: str) -> None:
    """Run an `rlx` command in the work folder."""
    environment = {**os.environ, "RLX_ROOT": str(WORK)}
    subprocess.run([sys.executable, "-m", "rlx", *words], cwd=WORK, env=environment, check=False)


def trained(name: str, seeds: int) -> Run:
    """Return the finished run of a pool, training whatever is missing."""
    path = WORK / "runs" / f"{name}_001"
    if not path.is_dir():
        words = ("-s", f"run_name={name}", "-s", f"algo.update_epochs={POOLS[name]}")
        rlx("train", "config.yaml", "--seeds", str(seeds), *words)
    if Run(path).status != "completed":
        rlx("resume", path.name)
    missing = seeds - len(Run(path).seeds)
    if missing > 0:
        rlx("train", "--more", path.name, "--seeds", str(missing))
    run = Run(path)
    if run.status != "completed":
        sys.exit(f"{run.name} is {run.status}: run this again to resume")
    return run


def pool(run: Run) -> dict[str, object]:
    """Return a run's scores by seed, with what made them."""
    (fingerprint, reports), *_ = required_scores(run).items()
    return {
        "config": run.config,
        "fingerprint": fingerprint,
        "versions": run.seeds[0].attempts[-1]["versions"],
        "scores": {str(seed): reports[seed].score for seed in sorted(reports)},
    }


def known() -> dict[str, dict[str, dict[str, float]]]:
    """Return the pools the file has; an empty one for each that it lacks."""
    found = files.read_json(FILE)["pools"] if FILE.is_file() else {}
    return {name: found.get(name, {"scores": {}}) for name in POOLS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--again", action="store_true")
    args = parser.parse_args()
    if not args.again and all(len(one["scores"]) >= args.seeds for one in known().values()):
        print(f"{FILE.name} has {args.seeds} seeds of each pool")
        return
    WORK.mkdir(exist_ok=True)
    (WORK / "rlx.toml").touch()
    (WORK / "config.yaml").write_text(CONFIG, encoding="utf-8")
    pools = {name: pool(trained(name, args.seeds)) for name in POOLS}
    files.write_json(FILE, {"schema": 1, "pools": pools})
    print(f"wrote {FILE.name}: {', '.join(f'{name} {args.seeds} seeds' for name in pools)}")


if __name__ == "__main__":
    main()
