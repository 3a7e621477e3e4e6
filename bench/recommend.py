"""Ask `rlx recommend` about ten catalog environments, and let `rlx settle` decide between two algorithms on each.

    python bench/recommend.py [NAME ...] [--max-seeds 10]

A pair is fixed here, before it is trained: PPO and one of the other family, or A2C where that is too costly. An
algorithm with a catalog config uses it, the other one uses the start that `rlx recommend` prints. Both train for the
same few steps in the same environment. It works in bench/.recommend (not committed) and resumes: `settle` continues its
runs, and a settled row is read from bench/recommend.jsonl. The ranking is asked again on every call. A pair that stays
undecided is settled once more at four times the steps.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlx.config import catalog
from rlx.config.load import document, dump_data, load
from rlx.config.schema import Env
from rlx.design.env_profile import profile_env
from rlx.design.recommend import Recommendation, recommend
from rlx.design.step_cost import Throughput

HERE = Path(__file__).parent
WORK = HERE / ".recommend"
ROWS = HERE / "recommend.jsonl"
TABLE = HERE / "recommend.md"
NUM_ENVS = Throughput({}, 8)
"""Fixed, so that the pair does not depend on the load of the machine."""
HEADER = """# Does `rlx recommend` name the better algorithm?

For anyone who asks whether the ranking can be trusted. Written by `python bench/recommend.py`. `rlx settle` decided
each pair at the same number of steps. Budgets are short, so the table says which algorithm learns faster. An undecided
pair is settled once more at four times the steps; if it stays undecided, it counts as not contained. That second try
was added after Acrobot and Taxi were undecided. The pairs of Taxi and MountainCarContinuous and the steps of
LunarLander were cheaper ones than planned, chosen before their results were seen.

| environment | steps | pair | seeds | verdict of settle | better | first two of recommend | contained | is first |
|---|---|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Contest:
    """Two algorithms on the environment of a catalog config."""

    config: str
    base: str
    other: str
    steps: int


CONTESTS = (
    Contest("cartpole", "ppo", "dqn", 12_288),
    Contest("pendulum", "ppo", "sac", 4_096),
    Contest("mountain_car", "ppo", "dqn", 15_360),
    Contest("frozen_lake", "ppo", "dqn", 20_480),
    Contest("acrobot", "ppo", "dqn", 16_384),
    Contest("half_cheetah", "ppo", "sac", 4_096),
    Contest("mountain_car_continuous", "ppo", "a2c", 20_480),
    Contest("lunar_lander", "ppo", "dqn", 12_288),
    Contest("hopper", "ppo", "sac", 4_096),
    Contest("taxi", "ppo", "a2c", 20_480),
)
"""The steps are whole rollouts of PPO: a verdict needs equal step counts."""
LONGER = 4
"""How many times the steps an undecided pair gets."""


def environment(name: str) -> Env:
    """Return the environment of a catalog config with its wrappers, without what only training uses."""
    env = load(catalog.path(name)).env
    return Env(id=env.id, kwargs=env.kwargs, wrappers=env.wrappers)


def advice(contest: Contest) -> Recommendation:
    """Return what `rlx recommend` says about the environment."""
    return recommend(profile_env(environment(contest.config), root=WORK), NUM_ENVS)


def tuned(contest: Contest, algorithm: str) -> dict[str, Any] | None:
    """Return the catalog's config of an algorithm on the environment of a contest, if it has one."""
    wanted = catalog.ENTRIES[contest.config].env_id
    for name, entry in catalog.ENTRIES.items():
        experiment = load(catalog.path(name))
        if entry.env_id == wanted and experiment.algo.name == algorithm:
            return document(experiment)
    return None


def config(contest: Contest, algorithm: str, said: Recommendation) -> Path:
    """Write the config of an algorithm: tuned if there is one, else as recommended. The budget is the contest's."""
    path = WORK / "configs" / f"{contest.config}_{contest.steps}_{algorithm}.yaml"
    if path.exists():
        return path
    start = next(choice.config for choice in said.ranked if choice.name == algorithm)
    data = tuned(contest, algorithm) or start
    data["run_name"] = path.stem
    data["algo"]["total_timesteps"] = contest.steps
    data["eval"] = {"every": contest.steps // 2, "episodes": 20}
    data["checkpoint"] = {"save_every": contest.steps // 2}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dump_data(data), encoding="utf-8")
    return path


def asked(baseline: Path, candidate: Path, max_seeds: int) -> dict[str, Any]:
    """Ask `rlx settle` whether the candidate is better than the baseline."""
    words = ["settle", str(baseline), str(candidate), "--max-seeds", str(max_seeds), "--json"]
    environment_of = {**os.environ, "RLX_ROOT": str(WORK)}
    answer = subprocess.run(
        [sys.executable, "-m", "rlx", *words], cwd=WORK, env=environment_of, check=False, stdout=subprocess.PIPE
    )
    document: dict[str, Any] = json.loads(answer.stdout)
    return document


def settled(contest: Contest, said: Recommendation, max_seeds: int) -> dict[str, Any]:
    """Settle a contest: ask whether the other algorithm is better, and if not, whether the base is."""
    base, other = (config(contest, name, said) for name in (contest.base, contest.other))
    first = asked(base, other, max_seeds)
    if first["verdict"] == "better":
        return {"better": contest.other, **first}
    if first["verdict"] == "worse":
        return {"better": contest.base, **first}
    second = asked(other, base, max_seeds)
    better = {"better": contest.base, "worse": contest.other}.get(second["verdict"])
    return {"better": better, **second}


def known_rows() -> dict[tuple[str, int], dict[str, Any]]:
    """Return the settled rows by config and steps; the last one counts."""
    if not ROWS.exists():
        return {}
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    return {(row["config"], row["steps"]): row for row in rows}


def settle_once(contest: Contest, said: Recommendation, max_seeds: int) -> dict[str, Any]:
    """Settle a contest unless it is settled, and keep the row. More seeds than last time reopen an undecided one."""
    known = known_rows().get((contest.config, contest.steps))
    if known is not None and _still_holds(known, contest, max_seeds):
        return known
    found = settled(contest, said, max_seeds)
    row = {
        "config": contest.config,
        "steps": contest.steps,
        "pair": [contest.base, contest.other],
        "better": found["better"],
        "stopped": found["stopped"],
        "line": found["line"],
        "seeds": sum(found["seeds"].values()),
        "max_seeds": max_seeds,
        "cpu_seconds": found["cpu_seconds"],
    }
    with ROWS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    return row


def _still_holds(row: dict[str, Any], contest: Contest, max_seeds: int) -> bool:
    is_same_pair = row["pair"] == [contest.base, contest.other]
    return is_same_pair and (row["better"] is not None or row["max_seeds"] >= max_seeds)


def table_row(contest: Contest, row: dict[str, Any], said: Recommendation) -> str:
    """Return a contest's row of the table."""
    better = row["better"]
    first_two = [choice.name for choice in said.ranked[:2]]
    cells = [
        contest.config,
        f"{contest.steps:,}",
        " or ".join(row["pair"]),
        str(row["seeds"]),
        row["line"].replace("|", "/"),
        better or "not settled",
        ", ".join(first_two),
        "yes" if better in first_two else "no",
        "yes" if better == first_two[0] else "no",
    ]
    return "| " + " | ".join(cells) + " |\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="catalog configs (default: all ten)")
    parser.add_argument("--max-seeds", type=int, default=10)
    args = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    (WORK / "rlx.toml").touch()
    lines = []
    contained = first = 0
    for contest in CONTESTS:
        if args.names and contest.config not in args.names:
            continue
        said = advice(contest)
        row = settle_once(contest, said, args.max_seeds)
        if row["better"] is None:
            contest = replace(contest, steps=LONGER * contest.steps)
            row = settle_once(contest, said, args.max_seeds)
        better = row["better"]
        contained += better in [choice.name for choice in said.ranked[:2]]
        first += better == said.ranked[0].name
        lines.append(table_row(contest, row, said))
        print(lines[-1], flush=True)
    summary = f"\nContained: {contained} of {len(lines)}. The first choice alone: {first} of {len(lines)}.\n"
    TABLE.write_text(HEADER + "".join(lines) + summary, encoding="utf-8")
    print(summary)


if __name__ == "__main__":
    main()
