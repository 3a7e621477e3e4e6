"""Check an environment that an agent built: API, determinism, scenarios, predicate, random floor, headroom, caps.

The checks play the person's judge (`evaluator/env.py:Task`) on the built environment, in a sandbox. The candidate's
code runs in the same process, so an answer is evidence for an honest candidate only. It is labelled `reported`.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rlx import files
from rlx.config.schema import Env
from rlx.envs.import_object import load_file
from rlx.envs.make import make_env
from rlx.envs.success_env import SuccessEnv
from rlx.errors import EvidenceInvalid, RlxError
from rlx.evaluate.foreign_code import ForeignCode, one_line

TASK = "evaluator/env.py:Task"
SCENARIOS = "evaluator/scenarios.py"
EPISODES = 40
BLIND_EPISODES = 10
MOST_ACTIONS = 16
MOST_CYCLES = 30
SEEDS = 5
LARGEST_OBSERVATION = 100_000
LEAST_STEPS = 1.5
"""Unsolved random episodes must last longer than this on average: one step is not an episode."""


def built_env_problems(root: Path, *, headroom: float, max_steps: int) -> tuple[list[str], dict[str, float]]:
    """Return the problems of the environment that a tree holds, and its figures: what blind policies solve."""
    made: Any = make_env(Env(id=TASK), root=root)
    judge = made.unwrapped
    problems = [*_api_problems(made), *_determinism_problems(made), *_scenario_problems(made, root)]
    floor, length, is_capped = _random_play(made, max_steps)
    constant, cycle = _blind_floors(made)
    blind = {"a random policy": floor, "always the same action": constant, "a cycle of two actions": cycle}
    easiest = max(blind, key=lambda name: blind[name])
    if blind[easiest] >= headroom:
        solved = f"{easiest} solves {blind[easiest]:.0%} of episodes"
        problems.append(f"headroom: {solved}; it may solve less than {headroom:.0%}")
    if length <= LEAST_STEPS:
        problems.append(f"horizon: unsolved episodes end after {length:.1f} steps on average")
    if not is_capped:
        problems.append(f"caps: an episode lasts longer than {max_steps} steps")
    if isinstance(judge, SuccessEnv):
        problems += _invariance_problems(judge, root)
    else:
        problems.append(f"{TASK} is not a subclass of rlx.envs.success_env.SuccessEnv")
    made.close()
    floors = {"random_floor": floor, "constant_floor": constant, "cycle_floor": cycle}
    return problems, {**floors, "unsolved_length": length}


def _api_problems(env: Any) -> Iterator[str]:
    size = int(np.prod(env.observation_space.shape or (1,)))
    if size > LARGEST_OBSERVATION:
        yield f"caps: an observation has {size:,} numbers"
    solved_at_start = 0
    for seed in range(SEEDS):
        observation, _ = env.reset(seed=seed)
        if observation not in env.observation_space:
            yield f"api: the observation after reset(seed={seed}) is not in {env.observation_space}"
            return
        solved_at_start += bool(env.unwrapped.solved(observation))
        observation, _, _, _, _ = env.step(env.action_space.sample())
        if observation not in env.observation_space:
            yield f"api: the observation after a step is not in {env.observation_space}"
            return
    if solved_at_start > SEEDS // 2:
        yield f"predicate: {solved_at_start} of {SEEDS} episodes are solved before the first action"


def _determinism_problems(env: Any) -> Iterator[str]:
    for seed in range(2):
        if _trace(env, seed) != _trace(env, seed):
            yield f"determinism: two episodes with seed {seed} and the same actions differ"
            return


def _trace(env: Any, seed: int) -> list[Any]:
    """Return what one episode with fixed actions shows."""
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=seed)
    rows = [np.asarray(observation).tolist()]
    for _ in range(50):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        rows.append([np.asarray(observation).tolist(), float(reward), bool(terminated), bool(truncated)])
        if terminated or truncated:
            break
    return rows


def _scenario_problems(env: Any, root: Path) -> Iterator[str]:
    """Yield the person's scenarios that do not lead where they should."""
    if not (root / SCENARIOS).is_file():
        return
    for scenario in load_file(SCENARIOS, root=root).SCENARIOS:
        name = str(scenario.get("name", "scenario"))
        is_solved = _play_scenario(env, scenario)
        if is_solved != bool(scenario["solved"]):
            expected = "solved" if scenario["solved"] else "unsolved"
            yield f"scenario {name}: expected {expected}, but it was {'solved' if is_solved else 'unsolved'}"


def _play_scenario(env: Any, scenario: dict[str, Any]) -> bool:
    observation, _ = env.reset(seed=int(scenario.get("seed", 0)))
    actions = scenario.get("actions")
    policy = scenario.get("policy")
    for step in range(int(scenario.get("within", 1000))):
        if policy is None and step >= len(actions or ()):
            return False
        action = policy(observation) if policy is not None else actions[step]  # type: ignore[index]
        observation, reward, terminated, truncated, _ = env.step(action)
        if reward > 0:
            return True
        if terminated or truncated:
            return False
    return False


def _random_play(env: Any, max_steps: int) -> tuple[float, float, bool]:
    """Return how often a random policy solves it, the mean length of unsolved episodes, and whether all end."""
    env.action_space.seed(0)
    solved = 0
    lengths = []
    is_capped = True
    for episode in range(EPISODES):
        env.reset(seed=1000 + episode)
        step = 0
        is_over = False
        while not is_over and step <= max_steps:
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            step += 1
            is_over = terminated or truncated
        is_capped = is_capped and step <= max_steps
        solved += reward > 0
        if reward <= 0:
            lengths.append(step)
    return solved / EPISODES, float(np.mean(lengths)) if lengths else float("inf"), is_capped


def _blind_floors(env: Any) -> tuple[float, float]:
    """Return how often the best constant action solves it, and the best cycle of two actions.

    Neither looks at the observation, so neither can have learned anything.
    """
    actions = _plain_actions(env.action_space)
    constant = max((_blind_share(env, (action,)) for action in actions), default=0.0)
    pairs = list(itertools.permutations(actions, 2))[:MOST_CYCLES]
    return constant, max((_blind_share(env, pair) for pair in pairs), default=0.0)


def _plain_actions(space: Any) -> list[Any]:
    """Return actions that need no look at the observation: discrete ones, or the ends and the middle of a box."""
    count = int(getattr(space, "n", 0))
    if count:
        first = int(getattr(space, "start", 0))
        return list(range(first, first + min(count, MOST_ACTIONS)))
    low = getattr(space, "low", None)
    high = getattr(space, "high", None)
    if low is None or high is None or not (np.isfinite(low).all() and np.isfinite(high).all()):
        return []
    return [low, high, ((low + high) / 2).astype(space.dtype)]


def _blind_share(env: Any, cycle: tuple[Any, ...]) -> float:
    """Return the share of episodes that a cycle of actions solves."""
    solved = 0
    for episode in range(BLIND_EPISODES):
        env.reset(seed=2000 + episode)
        is_over = False
        actions = itertools.cycle(cycle)
        while not is_over:
            _, reward, terminated, truncated, _ = env.step(next(actions))
            is_over = terminated or truncated
        solved += reward > 0
    return solved / BLIND_EPISODES


def _invariance_problems(judge: SuccessEnv, root: Path) -> Iterator[str]:
    """Yield whether scaled and shifted rewards of the built environment change the score."""
    import gymnasium

    class Scaled(type(judge)):  # type: ignore[misc]
        def make_built(self) -> Any:
            return gymnasium.wrappers.TransformReward(judge_built(root), lambda reward: 1000 * float(reward) + 5)

    def judge_built(root: Path) -> Any:
        return make_env(Env(id=judge.built), root=root)

    scaled = Scaled()
    if _trace(judge, 7) != _trace(scaled, 7):
        yield "invariance: the score changes when rewards are scaled and shifted"
    scaled.close()


def _as_rlx_error(error: Exception) -> RlxError:
    if isinstance(error, RlxError):
        return error
    return EvidenceInvalid(f"the environment raises {one_line(error)}")


def main(argv: list[str]) -> int:
    """Check the tree `argv[0]`; the request is on stdin, and the answer is the last line on stdout."""
    stdout = os.dup(1)
    os.dup2(2, 1)  # the project's own prints do not belong to the answer
    request = files.decode(sys.stdin.buffer.read())
    problems: list[str] = []
    figures: dict[str, float] = {}
    try:
        with ForeignCode(_as_rlx_error):
            problems, figures = built_env_problems(Path(argv[0]), **request)
    except RlxError as error:
        problems = [error.message]
    with os.fdopen(stdout, "wb") as stream:
        stream.write(files.encode({"problems": problems, "figures": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
