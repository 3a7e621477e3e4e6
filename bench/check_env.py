"""Count what `rlx check env` finds: planted defects per environment, and its findings on Gymnasium's own environments.

Run: python bench/check_env.py [WORD]   only the pairs whose name contains WORD
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from rlx.config.schema import Env
from rlx.diagnose.env_checks.env_findings import check_env
from rlx.envs.inspect.inspect_env import inspect

ROOT = Path(__file__).parent.parent
CART, ACRO, PEND, CAR, GRID = "CartPole-v1", "Acrobot-v1", "Pendulum-v1", "MountainCar-v0", "Grid"
LAKE, TAXI, LANDER, WALKER = "FrozenLake-v1", "Taxi-v4", "LunarLander-v3", "BipedalWalker-v3"
CHEETAH, HOPPER, CONTINUOUS = "HalfCheetah-v5", "Hopper-v5", "LunarLanderContinuous-v3"
ACTIONS = {CART: 2, ACRO: 3, CAR: 3, LAKE: 4, TAXI: 6, LANDER: 4, GRID: 4, PEND: 1, CHEETAH: 6, HOPPER: 3, WALKER: 4,
           CONTINUOUS: 2}  # fmt: skip
NUMERIC = (CART, ACRO, PEND, CAR, LANDER, GRID, CHEETAH, HOPPER, WALKER)
Case = tuple[str, str, str, dict[str, Any]]


def planted() -> list[Case]:
    """Return every pair: the rule that must find it, the environment, the defect and its settings."""
    cases: list[Case] = []
    terminating = (CART, ACRO, CAR, LANDER, GRID, LAKE, TAXI, HOPPER, WALKER)
    cases += [("termination_as_truncation", env, "EndsTruncated", {}) for env in terminating]
    cases += [
        ("time_limit_as_termination", env, "LimitTerminates", {}) for env in (CART, ACRO, PEND, CAR, GRID, CHEETAH)
    ]
    for env in (*NUMERIC, LAKE, TAXI):
        afters = (30, 50) if env in (LAKE, GRID) else (30, 50, 100)  # theirs end after 100 steps
        cases += [("reward_sign_flips", env, "Flips", {"after": after}) for after in afters]
    cases += [("reward_sign_flips", env, "FlipsUnseen", {"after": 50}) for env in (*NUMERIC, TAXI)]
    for env in NUMERIC:
        cases += [("obs_shuffled", env, "Shuffled", {"source": source}) for source in ("seed", "own", "global")]
    for env, count in ACTIONS.items():
        cases += [("dead_action", env, "DeadAction", {"which": which}) for which in range(count)]
    for env in (*NUMERIC, LAKE, TAXI):
        cases += [("seed_ignored", env, "SeedIgnored", {"fixed": fixed}) for fixed in (None, 3)]
    cases += [("obs_outside_space", env, "Outside", {}) for env in (CART, ACRO, PEND, CAR, LAKE, TAXI, GRID, WALKER)]
    cases += [("obs_aliased", env, "Aliased", {}) for env in NUMERIC]
    return cases


SOUND = (
    "CartPole-v0", CART, CAR, "MountainCarContinuous-v0", PEND, ACRO, LANDER, CONTINUOUS, WALKER,
    "BipedalWalkerHardcore-v3", "CarRacing-v3", "Blackjack-v1", LAKE, "FrozenLake8x8-v1", "CliffWalking-v1",
    "CliffWalkingSlippery-v1", TAXI, "Reacher-v5", "Pusher-v5", "InvertedPendulum-v5", "InvertedDoublePendulum-v5",
    CHEETAH, HOPPER, "Swimmer-v5", "Walker2d-v5", "Ant-v5", "Humanoid-v5", "HumanoidStandup-v5",
)  # fmt: skip


def main(word: str) -> None:
    """Print one line per pair, then the totals."""
    found = total = 0
    for rule, env, defect, settings in planted():
        name = f"{defect} {env} {settings or ''}"
        if word in name:
            kwargs = {"env": env, "defect": defect, **settings}
            rules, seconds = look(Env(id="tests/diagnose/planted.py:plant", kwargs=kwargs))
            is_found = rule in rules
            found, total = found + is_found, total + 1
            print(
                f"{'found ' if is_found else 'MISSED'} {seconds:5.1f} s  {name}: {', '.join(sorted(rules))}", flush=True
            )
    for env in SOUND:
        if word in f"sound {env}":
            rules, seconds = look(Env(id=env))
            print(f"sound  {seconds:5.1f} s  {env}: {', '.join(sorted(rules)) or 'nothing'}", flush=True)
    print(f"found {found} of {total} planted defects")


def look(env: Env) -> tuple[set[str], float]:
    """Return the rules that report a defect or a doubt, and the CPU time."""
    began = time.process_time()
    findings = check_env(inspect(env, root=ROOT))
    return {each.rule for each in findings if each.severity != "low"}, time.process_time() - began


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
