"""The files of a new project: its config, `rlx.toml`, and an environment to fill in."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rlx.config import catalog

MARKER_TEXT = """# Marks the root of an rlx project: every rlx command finds it from the folders below.
schema = 1
"""
AGENTS_FILE = "AGENTS.md"
AGENTS_TEXT = """# For coding agents

This is an rlx project: reinforcement-learning experiments go through `rlx` (`rlx --help`, `rlx docs`).

- Every command takes `--json`; errors come with a hint, and exit codes mean something (`rlx docs rl-experiment`).
- Train with `rlx train CONFIG --seeds 5 --detach`, then `rlx wait RUN --timeout 300` until it ends.
- Is B better than A? `rlx settle A B`, or `rlx compare A B`; curves and single seeds decide nothing.
- A governed study: start with `rlx next --json`. Approving a contract is for a person.
- `runs/` and `.rlx/` are rlx's: read them through commands, never write there.
"""
IGNORED = ("/runs/", "/.rlx/", "/candidate.json")
FOLDERS = ("envs", "configs", "policies", "runs", "videos", "logs", "scripts", "analysis")
DEFAULT_ENV = "CartPole-v1"


@dataclass(frozen=True)
class ProjectEnv:
    """What the first config of a project depends on."""

    env_id: str
    policy: str = "mlp"
    is_continuous: bool = False
    has_masks: bool = False


def config_name(env_id: str) -> str:
    """Return the name of the config's file: the catalog's, or the environment's in lower case."""
    from rlx.config.defaults import slug

    last = re.sub(r"-v\d+$", "", re.split(r"[/:]", env_id)[-1])
    return catalog.for_env(env_id) or slug(last.lower()) or "experiment"


def config_text(world: ProjectEnv) -> str:
    """Return a config that trains, with a comment on each key: the catalog's, if this environment has one."""
    name = catalog.for_env(world.env_id)
    if name is None:
        return _default_text(world)
    return catalog.read(name)


def _default_text(world: ProjectEnv) -> str:
    from rlx.config.key_docs import MEANINGS

    lines = [
        f"# Settings that are fine for many tasks, on {world.env_id}: tune from here.",
        "# `rlx config show` prints every key with its default, `rlx config check` every problem.",
    ]
    for section, keys in _sections(world).items():
        lines.append(f"{section}:")
        for key, value in keys.items():
            lines.append(f"  {_inline(key, value):<36}  # {MEANINGS[f'{section}.{key}']}")
    return "\n".join(lines) + "\n"


def _inline(key: str, value: object) -> str:
    import yaml

    return f"{key}: {yaml.safe_dump([value], default_flow_style=True, width=10_000, allow_unicode=True).strip()[1:-1]}"


def _sections(world: ProjectEnv) -> dict[str, dict[str, object]]:
    env: dict[str, object] = {"id": world.env_id, "num_envs": 8}
    if world.is_continuous and world.policy == "mlp":
        env["normalize"] = {"obs": True, "reward": True}
    algorithm = "ppo"
    if world.has_masks:
        algorithm = "maskable_ppo"
    entropy_coef = 0.01
    if world.is_continuous:
        entropy_coef = 0.0
    return {
        "env": env,
        "algo": {
            "name": algorithm,
            "total_timesteps": 100_000,
            "rollout_steps": 256,
            "batch_size": 256,
            "update_epochs": 10,
            "learning_rate": 0.0003,
            "gamma": 0.99,
            "gae_lambda": 0.95,
            "entropy_coef": entropy_coef,
        },
        "policy": {"type": world.policy, "hidden_sizes": [64, 64]},
        "checkpoint": {"save_every": 20_000},
        "eval": {"every": 20_000, "episodes": 20},
    }


def env_text(class_name: str) -> str:
    """Return a small environment that works, for the user to change."""
    return _ENV.replace("CLASS", class_name)


_ENV = '''"""CLASS: find the goal on a line. It trains as it is; change `reset` and `step` into your own world."""

from __future__ import annotations

import gymnasium
import numpy as np
from gymnasium import spaces


class CLASS(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, render_mode=None, size=10, max_episode_steps=50):
        self.render_mode = render_mode
        self.size = size
        self.max_episode_steps = max_episode_steps
        self.observation_space = spaces.Box(0.0, 1.0, shape=(2,), dtype=np.float32)  # position and goal
        self.action_space = spaces.Discrete(3)  # left, stay, right

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)  # draw every random number from self.np_random: runs stay reproducible
        self.position, self.goal = (int(n) for n in self.np_random.choice(self.size, 2, replace=False))
        self.steps = 0
        return self._observation(), {}

    def step(self, action):
        self.position = min(max(self.position + int(action) - 1, 0), self.size - 1)
        self.steps += 1
        terminated = self.position == self.goal
        truncated = not terminated and self.steps >= self.max_episode_steps
        terms = {"goal": float(terminated), "time": -0.02}  # named parts of the reward; rlx logs each one
        info = {"is_success": terminated, "reward_terms": terms}
        return self._observation(), sum(terms.values()), terminated, truncated, info

    def render(self):
        picture = np.full((32, 32 * self.size, 3), 255, dtype=np.uint8)
        picture[:, 32 * self.goal : 32 * self.goal + 32] = (120, 200, 120)
        picture[8:24, 32 * self.position + 8 : 32 * self.position + 24] = (40, 60, 160)
        return picture

    def _observation(self):
        return np.array([self.position, self.goal], dtype=np.float32) / (self.size - 1)
'''
